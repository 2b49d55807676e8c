//! Rotation matrices from and to the formats of data sets, in the reference's conventions (spec n15 section 6).

use nalgebra::{Matrix3, Matrix3x1};

use crate::contract::{EulerOrder, RotationFormat};

/// Below this angle (radians) the half sine over the angle comes from its series, as in the reference.
const SMALL_ANGLE: f64 = 1e-6;

/// The rotation that `values`, `[format.dim()]`, stand for; `None` where they stand for none.
///
/// # Panics
/// If `values` is not `format.dim()` long.
pub fn to_matrix(format: RotationFormat, values: &[f64]) -> Option<Matrix3<f64>> {
    assert_eq!(values.len(), format.dim(), "values of a rotation in format {format:?}");
    let matrix = match format {
        RotationFormat::Quaternion => from_quaternion([values[0], values[1], values[2], values[3]]),
        RotationFormat::AxisAngle => from_axis_angle([values[0], values[1], values[2]]),
        RotationFormat::Euler(order) => {
            let [first, second, third] = order.axes();
            about(first, values[0]) * about(second, values[1]) * about(third, values[2])
        }
        RotationFormat::Rotation6d => from_rows(values),
    };
    matrix.iter().all(|entry| entry.is_finite()).then_some(matrix)
}

/// The first two rows of a rotation matrix.
pub fn to_6d(matrix: &Matrix3<f64>) -> [f64; 6] {
    std::array::from_fn(|i| matrix[(i / 3, i % 3)])
}

/// The angles of a rotation; where the middle one is a quarter turn, of the many that there are.
pub fn to_euler(order: EulerOrder, matrix: &Matrix3<f64>) -> [f64; 3] {
    let [i, j, k] = order.axes();
    let cyclic = (i + 1) % 3 == j;
    let sign = if cyclic { 1.0 } else { -1.0 };
    [
        (-sign * matrix[(j, k)]).atan2(matrix[(k, k)]),
        // Rounding may carry the sine past one.
        (sign * matrix[(i, k)]).clamp(-1.0, 1.0).asin(),
        (-sign * matrix[(i, j)]).atan2(matrix[(i, i)]),
    ]
}

/// A turn about axis 0, 1 or 2.
fn about(axis: usize, angle: f64) -> Matrix3<f64> {
    let (sin, cos) = angle.sin_cos();
    let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut matrix = Matrix3::identity();
    matrix[(next, next)] = cos;
    matrix[(next, last)] = -sin;
    matrix[(last, next)] = sin;
    matrix[(last, last)] = cos;
    matrix
}

/// The reference's order of evaluation: states must agree to the last bit of f32.
fn from_quaternion([w, x, y, z]: [f64; 4]) -> Matrix3<f64> {
    let two = 2.0 / (w * w + x * x + y * y + z * z);
    Matrix3::new(
        1.0 - two * (y * y + z * z),
        two * (x * y - z * w),
        two * (x * z + y * w),
        two * (x * y + z * w),
        1.0 - two * (x * x + z * z),
        two * (y * z - x * w),
        two * (x * z - y * w),
        two * (y * z + x * w),
        1.0 - two * (x * x + y * y),
    )
}

fn from_axis_angle(vector: [f64; 3]) -> Matrix3<f64> {
    let [x, y, z] = vector;
    let angle = (x * x + y * y + z * z).sqrt();
    let half = 0.5 * angle;
    let half_sine_by_angle =
        if angle < SMALL_ANGLE { 0.5 - angle * angle / 48.0 } else { half.sin() / angle };
    let [x, y, z] = vector.map(|value| value * half_sine_by_angle);
    from_quaternion([half.cos(), x, y, z])
}

/// Gram-Schmidt: the first row keeps its direction, the second its plane.
fn from_rows(rows: &[f64]) -> Matrix3<f64> {
    let first = Matrix3x1::from_column_slice(&rows[..3]).normalize();
    let second = Matrix3x1::from_column_slice(&rows[3..]);
    let second = (second - first * first.dot(&second)).normalize();
    let third = first.cross(&second);
    Matrix3::from_columns(&[first, second, third]).transpose()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORDERS: [&str; 6] = ["rpy", "ryp", "pry", "pyr", "yrp", "ypr"];

    fn order(letters: &str) -> EulerOrder {
        EulerOrder::from_letters(letters).unwrap()
    }

    #[test]
    fn yaw_turns_x_to_y() {
        let quarter = std::f64::consts::FRAC_PI_2;
        let half = (quarter / 2.0).sin();
        for (format, values) in [
            (RotationFormat::Euler(order("rpy")), vec![0.0, 0.0, quarter]),
            (RotationFormat::Euler(order("ypr")), vec![quarter, 0.0, 0.0]),
            (RotationFormat::AxisAngle, vec![0.0, 0.0, quarter]),
            (RotationFormat::Quaternion, vec![3.0 * half, 0.0, 0.0, 3.0 * half]),
            (RotationFormat::Rotation6d, vec![0.0, -2.0, 0.0, 0.5, 7.0, 0.0]),
        ] {
            let matrix = to_matrix(format, &values).unwrap();
            let turned = matrix * Matrix3x1::new(1.0, 0.0, 0.0);
            assert!((turned - Matrix3x1::new(0.0, 1.0, 0.0)).amax() < 1e-15, "{format:?}");
        }
    }

    #[test]
    fn values_that_stand_for_no_rotation_are_refused() {
        for (format, values) in [
            (RotationFormat::Quaternion, vec![0.0; 4]),
            (RotationFormat::Quaternion, vec![f64::NAN; 4]),
            (RotationFormat::AxisAngle, vec![f64::INFINITY, 0.0, 0.0]),
            (RotationFormat::Rotation6d, vec![0.0; 6]),
            (RotationFormat::Rotation6d, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
        ] {
            assert_eq!(to_matrix(format, &values), None, "{format:?} {values:?}");
        }
    }

    proptest! {
        #[test]
        fn angles_come_back(
            a in -3.1f64..3.1, b in -1.5f64..1.5, c in -3.1f64..3.1, letters in prop::sample::select(&ORDERS[..]),
        ) {
            let matrix = to_matrix(RotationFormat::Euler(order(letters)), &[a, b, c]).unwrap();
            let back = to_euler(order(letters), &matrix);
            for (angle, found) in [a, b, c].into_iter().zip(back) {
                prop_assert!((angle - found).abs() < 1e-12, "{letters}: {back:?}");
            }
            let rows = to_matrix(RotationFormat::Rotation6d, &to_6d(&matrix)).unwrap();
            prop_assert!((rows - matrix).amax() < 1e-14);
        }
    }
}
