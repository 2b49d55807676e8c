//! Rigid motions as ROS messages carry them: a translation in metres and a quaternion x, y, z, w.

use nalgebra::{Isometry3, Quaternion, Translation3, Unit, UnitQuaternion};

use crate::words::{Number, numbers};

/// How far the squared length of a quaternion may be from 1; tf2 has the same limit. Less is rounding, for instance of
/// numbers typed into a launch file, and is normalised away.
const MAX_LENGTH_ERROR: f64 = 1e-2;

/// Why numbers are not a rigid motion.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RigidError {
    #[error("its translation ({}) is not finite", numbers(.0))]
    Translation([f64; 3]),
    #[error(
        "its quaternion (x {}, y {}, z {}, w {}) has length {:.4}; that of a rotation has length 1",
        Number(xyzw[0]), Number(xyzw[1]), Number(xyzw[2]), Number(xyzw[3]), Number(*.length)
    )]
    Quaternion { xyzw: [f64; 4], length: f64 },
}

/// The motion `x -> rotation * x + translation`. A quaternion and its negative are the same rotation and give the same
/// bits.
///
/// # Errors
/// A number that is not finite, or a quaternion that is not normalised: nothing tells what its author meant.
pub fn rigid(xyz: [f64; 3], xyzw: [f64; 4]) -> Result<Isometry3<f64>, RigidError> {
    if !xyz.iter().all(|value| value.is_finite()) {
        return Err(RigidError::Translation(xyz));
    }
    let [x, y, z, w] = xyzw;
    let squared = x * x + y * y + z * z + w * w;
    // Asked this way, a NaN is not near.
    let near_one = (squared - 1.0).abs() <= MAX_LENGTH_ERROR;
    if !near_one {
        return Err(RigidError::Quaternion { xyzw, length: squared.sqrt() });
    }
    let length = squared.sqrt();
    let [x, y, z, w] = upper_half(xyzw.map(|value| value / length));
    let rotation = Unit::new_unchecked(Quaternion::new(w, x, y, z));
    Ok(Isometry3::from_parts(Translation3::from(xyz), rotation))
}

/// The quaternion x, y, z, w of a rotation, w not negative.
pub fn quaternion_xyzw(rotation: &UnitQuaternion<f64>) -> [f64; 4] {
    upper_half([rotation.i, rotation.j, rotation.k, rotation.w])
}

/// The one of `xyzw` and its negative whose last component that is not zero is positive.
fn upper_half(xyzw: [f64; 4]) -> [f64; 4] {
    let last = xyzw.iter().rev().find(|value| **value != 0.0);
    if last.is_some_and(|value| *value < 0.0) {
        // Adding zero takes the sign from a zero.
        xyzw.map(|value| -value + 0.0)
    } else {
        xyzw.map(|value| value + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Vector3;
    use proptest::prelude::*;

    #[test]
    fn the_order_is_x_y_z_w() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let turn = rigid([1.0, 2.0, 3.0], [0.0, 0.0, half, half]).expect("a quarter turn about z");
        let moved = turn * nalgebra::Point3::new(1.0, 0.0, 0.0);
        assert!((moved.coords - Vector3::new(1.0, 3.0, 3.0)).norm() < 1e-15, "{moved}");
        assert_eq!(quaternion_xyzw(&turn.rotation), [0.0, 0.0, half, half]);
    }

    #[test]
    fn what_is_no_rotation_is_refused() {
        for xyzw in [
            [0.0; 4],
            [0.0, 0.0, 0.0, 2.0],
            [0.5, 0.5, 0.5, 0.6],
            [f64::NAN, 0.0, 0.0, 1.0],
            [0.0, f64::INFINITY, 0.0, 1.0],
        ] {
            let error = rigid([0.0; 3], xyzw).expect_err("not normalised").to_string();
            assert!(error.contains("that of a rotation has length 1"), "{error}");
        }
        let error = rigid([0.0, f64::NAN, 0.0], [0.0, 0.0, 0.0, 1.0]).expect_err("translation");
        assert!(matches!(error, RigidError::Translation(_)));
    }

    #[test]
    fn rounding_is_normalised_away() {
        let turn = rigid([0.0; 3], [0.707, 0.0, 0.0, 0.707]).expect("typed by hand");
        assert!((turn.rotation.norm() - 1.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_quaternion_and_its_negative_give_the_same_bits(
            xyzw in prop::array::uniform4(-1.0..1.0f64),
            zeros in 0usize..4,
        ) {
            let mut xyzw = xyzw;
            xyzw[..zeros].fill(0.0);
            let length = xyzw.iter().map(|value| value * value).sum::<f64>().sqrt();
            prop_assume!(length > 1e-3);
            let unit = xyzw.map(|value| value / length);
            let bits = |xyzw| {
                let turn = rigid([0.0; 3], xyzw).expect("normalised");
                let matrix = turn.rotation.to_rotation_matrix().into_inner();
                (matrix.map(f64::to_bits), quaternion_xyzw(&turn.rotation).map(f64::to_bits))
            };
            prop_assert_eq!(bits(unit), bits(unit.map(|value| -value)));
        }
    }
}
