//! The poses of a chunk as other programs take them: position and unit quaternion.

use nalgebra::{Quaternion, Rotation3, UnitQuaternion, Vector3};

use super::rigid::quaternion_xyzw;
use crate::contract::{ActionGroup, PoseFormat};
use crate::decode::{Pose, PoseError};

/// One pose: x, y, z in metres, and the unit quaternion x, y, z, w with w >= 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoseValues {
    pub xyz: [f64; 3],
    pub xyzw: [f64; 4],
}

impl PoseValues {
    /// The pose at `part` of the way to `other`: straight ahead, turning evenly and by the shorter way.
    pub fn towards(&self, other: &PoseValues, part: f64) -> PoseValues {
        let xyz = self.position().lerp(&other.position(), part).into();
        let (from, to) = (self.rotation(), other.rotation());
        // Exactly opposite ways have no shorter one.
        let rotation = from.try_slerp(&to, part, f64::EPSILON).unwrap_or(from);
        PoseValues { xyz, xyzw: quaternion_xyzw(&rotation) }
    }

    /// Metres and radians from here to `other`.
    pub fn distance(&self, other: &PoseValues) -> (f64, f64) {
        let metres = (other.position() - self.position()).norm();
        (metres, self.rotation().angle_to(&other.rotation()))
    }

    fn position(&self) -> Vector3<f64> {
        self.xyz.into()
    }

    fn rotation(&self) -> UnitQuaternion<f64> {
        let [x, y, z, w] = self.xyzw;
        UnitQuaternion::new_normalize(Quaternion::new(w, x, y, z))
    }
}

/// The poses of a group, one per row.
///
/// # Errors
/// A row that is no pose; then there are none at all.
pub fn poses(group: &ActionGroup, format: PoseFormat) -> Result<Vec<PoseValues>, PoseError> {
    let pose = |row: &[f32]| {
        let wide: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        let pose = Pose::from_action(format, &wide)?;
        let rotation = Rotation3::from_matrix_unchecked(pose.rotation);
        let rotation = UnitQuaternion::from_rotation_matrix(&rotation);
        let rotation = UnitQuaternion::new_normalize(rotation.into_inner());
        Ok(PoseValues { xyz: pose.translation.into(), xyzw: quaternion_xyzw(&rotation) })
    };
    group.values.chunks_exact(format.dim()).map(pose).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rigid::rigid;
    use super::super::state::pose::PoseLayout;
    use super::*;
    use crate::contract::Representation;

    fn group(format: PoseFormat, values: Vec<f32>) -> ActionGroup {
        ActionGroup {
            name: "eef".to_owned(),
            representation: Representation::PoseRot6d,
            dim: format.dim(),
            values,
        }
    }

    #[test]
    fn a_quarter_turn_from_every_layout() {
        let half = std::f64::consts::FRAC_1_SQRT_2 as f32;
        let quarter = std::f32::consts::FRAC_PI_2;
        let rot6d = vec![1.0, 2.0, 3.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0];
        let matrix =
            vec![0.0, -1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 1.0];
        for (format, values) in [
            (PoseFormat::Rot6d, rot6d),
            (PoseFormat::Rotvec, vec![1.0, 2.0, 3.0, 0.0, 0.0, quarter]),
            (PoseFormat::Matrix, matrix),
        ] {
            let made = poses(&group(format, values), format).expect("a pose");
            assert_eq!(made[0].xyz, [1.0, 2.0, 3.0]);
            let expected = [0.0, 0.0, half, half];
            let near = |(a, b): (&f64, f32)| (a - f64::from(b)).abs() < 1e-7;
            assert!(made[0].xyzw.iter().zip(expected).all(near), "{format:?}: {made:?}");
        }
    }

    #[test]
    fn rows_that_are_no_pose_give_none() {
        let mut values = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        values.extend([0.0; 9]);
        let group = group(PoseFormat::Rot6d, values);
        assert_eq!(poses(&group, PoseFormat::Rot6d), Err(PoseError::Rows));
    }

    proptest! {
        /// What goes in as a quaternion comes out as the same rotation.
        #[test]
        fn reading_and_writing_agree(
            xyz in prop::array::uniform3(-2.0..2.0f64),
            xyzw in prop::array::uniform4(-1.0..1.0f64),
            format in prop::sample::select(vec![PoseFormat::Rot6d, PoseFormat::Rotvec, PoseFormat::Matrix]),
        ) {
            let length = xyzw.iter().map(|value| value * value).sum::<f64>().sqrt();
            prop_assume!(length > 1e-2);
            let pose = rigid(xyz, xyzw.map(|value| value / length)).expect("normalised");
            let values = PoseLayout::Pose(format).values(&pose).iter().map(|&v| v as f32).collect();
            let made = poses(&group(format, values), format).expect("a pose")[0];
            let back = rigid(made.xyz, made.xyzw).expect("normalised");
            let length = made.xyzw.iter().map(|value| value * value).sum::<f64>();
            prop_assert!((length - 1.0).abs() < 1e-14);
            prop_assert!(back.rotation.angle_to(&pose.rotation) < 2e-6);
            prop_assert!((back.translation.vector - pose.translation.vector).norm() < 1e-6);
        }
    }
}
