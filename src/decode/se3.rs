//! Rigid motions: reading, composing and writing the poses of end effectors (spec N1.7, section 8.1).

use nalgebra::{Matrix3, RealField, UnitQuaternion, Vector3};

use super::PoseError;
use crate::contract::PoseFormat;
use crate::rotation;

/// Smallest sine of the angle between the two rows of a rotation. Below, their plane is made of rounding errors.
const MIN_SINE_F64: f64 = 1e-10;
const MIN_SINE_F32: f32 = 1e-5;
/// How far the last row of a state's 4x4 matrix may be from 0, 0, 0, 1.
const LAST_ROW_TOLERANCE: f64 = 1e-3;
/// Newton's iteration squares its error, so that a step this small is the last that changes anything.
const POLAR_TOLERANCE: f64 = 1e-9;
/// A matrix of condition number 1e12 takes about 45 steps.
const POLAR_STEPS: usize = 60;
/// Below this angle (radians), the sine of half the angle is half the angle to the last bit.
const SMALL_ANGLE: f64 = 1e-8;

/// A rigid motion: `x -> rotation * x + translation`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    pub rotation: Matrix3<f64>,
    /// Metres.
    pub translation: Vector3<f64>,
}

impl Pose {
    /// Reads the pose of an observation, `[format.dim()]`.
    ///
    /// The rows of a 6-D rotation are made orthogonal in f32, as the reference does with f32 states.
    ///
    /// # Errors
    /// Numbers from which no orientation follows, or a matrix whose last row is not 0, 0, 0, 1.
    ///
    /// # Panics
    /// If `columns` is not `format.dim()` long.
    pub fn from_state(format: PoseFormat, columns: &[f32]) -> Result<Self, PoseError> {
        let wide: Vec<f64> = columns.iter().map(|&value| f64::from(value)).collect();
        if format == PoseFormat::Matrix {
            let last_row = wide[12..].iter().zip([0.0, 0.0, 0.0, 1.0]);
            let mut deviations = last_row.map(|(value, expected)| (value - expected).abs());
            // Asked this way, a NaN is no match.
            if !deviations.all(|deviation| deviation <= LAST_ROW_TOLERANCE) {
                return Err(PoseError::LastRow);
            }
        }
        let rotation = match format {
            PoseFormat::Rot6d => {
                let rows = orthonormal_rows(&columns[3..9], MIN_SINE_F32)?;
                nearest_rotation(rows.map(f64::from))?
            }
            PoseFormat::Rotvec | PoseFormat::Matrix => read_rotation(format, &wide)?,
        };
        Ok(Self { rotation, translation: read_translation(format, &wide) })
    }

    /// Reads a predicted pose, `[format.dim()]`.
    ///
    /// The last row of a matrix is ignored, as the reference does.
    ///
    /// # Errors
    /// Numbers from which no orientation follows.
    ///
    /// # Panics
    /// If `columns` is not `format.dim()` long.
    pub fn from_action(format: PoseFormat, columns: &[f64]) -> Result<Self, PoseError> {
        Ok(Self {
            rotation: read_rotation(format, columns)?,
            translation: read_translation(format, columns),
        })
    }

    /// The pose that `relative`, given in the frame of this pose, has in the frame that this pose is given in.
    pub fn compose(&self, relative: &Pose) -> Pose {
        Pose {
            rotation: self.rotation * relative.rotation,
            translation: self.rotation * relative.translation + self.translation,
        }
    }

    /// Writes the pose into `columns`, `[format.dim()]`.
    ///
    /// # Panics
    /// If `columns` is not `format.dim()` long.
    pub fn write(&self, format: PoseFormat, columns: &mut [f64]) {
        let (r, t) = (&self.rotation, &self.translation);
        let rows = |row: usize| [r[(row, 0)], r[(row, 1)], r[(row, 2)]];
        match format {
            PoseFormat::Rot6d => {
                columns[..3].copy_from_slice(t.as_slice());
                columns[3..9].copy_from_slice(&rotation::to_6d(r));
            }
            PoseFormat::Rotvec => {
                columns[..3].copy_from_slice(t.as_slice());
                columns[3..6].copy_from_slice(rotation_vector(r).as_slice());
            }
            PoseFormat::Matrix => {
                for row in 0..3 {
                    columns[4 * row..4 * row + 3].copy_from_slice(&rows(row));
                    columns[4 * row + 3] = t[row];
                }
                columns[12..16].copy_from_slice(&[0.0, 0.0, 0.0, 1.0]);
            }
        }
    }
}

fn read_translation(format: PoseFormat, columns: &[f64]) -> Vector3<f64> {
    match format {
        PoseFormat::Rot6d | PoseFormat::Rotvec => Vector3::from_column_slice(&columns[..3]),
        PoseFormat::Matrix => Vector3::new(columns[3], columns[7], columns[11]),
    }
}

fn read_rotation(format: PoseFormat, columns: &[f64]) -> Result<Matrix3<f64>, PoseError> {
    match format {
        PoseFormat::Rot6d => nearest_rotation(orthonormal_rows(&columns[3..9], MIN_SINE_F64)?),
        PoseFormat::Rotvec => {
            let vector = Vector3::from_column_slice(&columns[3..6]);
            Ok(UnitQuaternion::from_scaled_axis(vector).to_rotation_matrix().into_inner())
        }
        PoseFormat::Matrix => {
            nearest_rotation(Matrix3::from_fn(|row, column| columns[4 * row + column]))
        }
    }
}

/// The rotation whose first two rows are those of `rot6d`, `[6]`, after Gram-Schmidt.
///
/// Sums run from left to right without fused multiply-adds, so that f32 rounds as in the reference.
fn orthonormal_rows<T: RealField + Copy>(
    rot6d: &[T],
    min_sine: T,
) -> Result<Matrix3<T>, PoseError> {
    let first = [rot6d[0], rot6d[1], rot6d[2]];
    let second = [rot6d[3], rot6d[4], rot6d[5]];
    let length = |row: [T; 3]| dot(row, row).sqrt();

    let first_length = length(first);
    let a = first.map(|value| value / first_length);
    let along = dot(a, second);
    let across = [second[0] - along * a[0], second[1] - along * a[1], second[2] - along * a[2]];
    let across_length = length(across);
    // Asked this way, a NaN counts as no plane.
    let spans_plane = across_length / length(second) >= min_sine;
    if !spans_plane {
        return Err(PoseError::Rows);
    }
    let b = across.map(|value| value / across_length);
    let c = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    Ok(Matrix3::new(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]))
}

fn dot<T: RealField + Copy>(left: [T; 3], right: [T; 3]) -> T {
    left[0] * right[0] + left[1] * right[1] + left[2] * right[2]
}

/// The rotation nearest to `matrix`: its orthogonal polar factor, by Newton's iteration.
fn nearest_rotation(matrix: Matrix3<f64>) -> Result<Matrix3<f64>, PoseError> {
    let mut rotation = matrix / matrix.norm();
    let right_handed = rotation.determinant() > 0.0;
    if !right_handed {
        return Err(PoseError::Matrix);
    }
    for _ in 0..POLAR_STEPS {
        let inverse = rotation.try_inverse().ok_or(PoseError::Matrix)?;
        let next = (rotation + inverse.transpose()) * 0.5;
        let step = (next - rotation).amax();
        rotation = next;
        if step <= POLAR_TOLERANCE {
            return Ok(rotation);
        }
    }
    Err(PoseError::Matrix)
}

/// Axis times angle of a rotation, angle in [0, pi].
fn rotation_vector(r: &Matrix3<f64>) -> Vector3<f64> {
    let (mut w, mut v) = quaternion(r);
    if w < 0.0 {
        (w, v) = (-w, -v);
    }
    let half_sine = v.norm();
    let angle = 2.0 * half_sine.atan2(w);
    if angle < SMALL_ANGLE { v * 2.0 } else { v * (angle / half_sine) }
}

/// Unit quaternion (scalar, vector) of a rotation, computed from its largest component, which stays far from zero.
/// That component is positive: where two signs are possible, at an angle of pi, this is the reference's choice.
fn quaternion(r: &Matrix3<f64>) -> (f64, Vector3<f64>) {
    let trace = r.trace();
    let largest = if r[(0, 0)] >= r[(1, 1)] && r[(0, 0)] >= r[(2, 2)] {
        0
    } else if r[(1, 1)] >= r[(2, 2)] {
        1
    } else {
        2
    };
    let (w, v) = if trace > r[(largest, largest)] {
        let vector =
            Vector3::new(r[(2, 1)] - r[(1, 2)], r[(0, 2)] - r[(2, 0)], r[(1, 0)] - r[(0, 1)]);
        (1.0 + trace, vector)
    } else {
        let (i, j, k) = (largest, (largest + 1) % 3, (largest + 2) % 3);
        let mut vector = Vector3::zeros();
        vector[i] = 1.0 - trace + 2.0 * r[(i, i)];
        vector[j] = r[(j, i)] + r[(i, j)];
        vector[k] = r[(k, i)] + r[(i, k)];
        (r[(k, j)] - r[(j, k)], vector)
    };
    let length = (w * w + v.norm_squared()).sqrt();
    (w / length, v / length)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use proptest::prelude::*;

    use super::*;

    fn rotation(axis_angle: [f64; 3]) -> Matrix3<f64> {
        let columns = [0.0, 0.0, 0.0, axis_angle[0], axis_angle[1], axis_angle[2]];
        Pose::from_action(PoseFormat::Rotvec, &columns).unwrap().rotation
    }

    fn matrix_columns(rotation: Matrix3<f64>, translation: [f64; 3]) -> [f64; 16] {
        let mut columns = [0.0; 16];
        Pose { rotation, translation: translation.into() }.write(PoseFormat::Matrix, &mut columns);
        columns
    }

    #[test]
    fn rotation_vectors_turn_by_the_right_hand_rule() {
        let turned = rotation([0.0, 0.0, FRAC_PI_2]) * Vector3::x();
        assert!((turned - Vector3::y()).norm() < 1e-15, "{turned}");
    }

    #[test]
    fn the_relative_pose_is_given_in_the_frame_of_the_state() {
        let state = [1.0_f32, 2.0, 3.0, 0.0, 0.0, std::f32::consts::FRAC_PI_2];
        let reference = Pose::from_state(PoseFormat::Rotvec, &state).unwrap();
        let relative =
            Pose::from_action(PoseFormat::Rotvec, &[0.5, 0.0, 0.0, 0.0, 0.0, 0.25]).unwrap();
        let mut columns = [0.0; 6];
        reference.compose(&relative).write(PoseFormat::Rotvec, &mut columns);
        let expected = [1.0, 2.5, 3.0, 0.0, 0.0, FRAC_PI_2 + 0.25];
        for (found, expected) in columns.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-7, "{columns:?}");
        }
    }

    #[test]
    fn half_turns_keep_the_sign_of_the_largest_component() {
        for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.8, -0.6, 0.0]] {
            // Exactly symmetric, as only a rotation by pi is.
            let n = Vector3::from(axis);
            let half_turn = n * n.transpose() * 2.0 - Matrix3::identity();
            let vector = rotation_vector(&half_turn);
            assert!((vector - n * PI).norm() < 1e-14, "{axis:?}: {vector}");
        }
    }

    #[test]
    fn angles_next_to_zero_and_pi_keep_their_digits() {
        for angle in [0.0, 1e-300, 1e-12, 1e-8, 1e-4, 3.0, PI - 1e-4, PI - 1e-9] {
            let vector = Vector3::new(0.6, 0.0, -0.8) * angle;
            let back = rotation_vector(&rotation(vector.into()));
            assert!((back - vector).norm() <= 1e-15 + 4e-16 * angle, "{angle}: {back} {vector}");
        }
        // Past pi the same turn is shorter the other way round.
        let back = rotation_vector(&rotation([PI + 0.5, 0.0, 0.0]));
        assert!((back - Vector3::new(0.5 - PI, 0.0, 0.0)).norm() < 1e-14, "{back}");
    }

    #[test]
    fn scaled_and_sheared_matrices_give_the_nearest_rotation() {
        let turn = rotation([0.3, -1.2, 0.7]);
        for scale in [1e-6, 0.5, 1.0, 1e6] {
            assert!((nearest_rotation(turn * scale).unwrap() - turn).amax() < 1e-14, "{scale}");
        }
        // R * P with P symmetric and positive has the polar factor R.
        let axes = rotation([0.9, 0.4, -0.5]);
        let shear = axes * Matrix3::from_diagonal(&Vector3::new(2.0, 1.0, 1e-5)) * axes.transpose();
        assert!((nearest_rotation(turn * shear).unwrap() - turn).amax() < 1e-10);
    }

    #[test]
    fn numbers_that_are_no_rotation_are_refused() {
        let read = |rows: [f64; 6]| {
            let columns = [&[0.0; 3][..], &rows].concat();
            Pose::from_action(PoseFormat::Rot6d, &columns)
        };
        for rows in [
            [0.0; 6],
            [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1.0, 2.0, 3.0, -2.0, -4.0, -6.0],
            [0.1, 0.2, 0.3, 0.3, 0.6, 0.9],
            [f64::NAN, 0.0, 0.0, 0.0, 1.0, 0.0],
        ] {
            assert_eq!(read(rows), Err(PoseError::Rows), "{rows:?}");
        }
        // In f32 rounding leaves a plane between parallel rows, which is made of nothing else.
        let parallel = [0.0_f32, 0.0, 0.0, 0.1, 0.2, 0.3, 0.3, 0.6, 0.9];
        assert_eq!(Pose::from_state(PoseFormat::Rot6d, &parallel), Err(PoseError::Rows));

        let mirror =
            matrix_columns(Matrix3::from_diagonal(&Vector3::new(1.0, 1.0, -1.0)), [0.0; 3]);
        for columns in [mirror, [0.0; 16], [f64::NAN; 16], [1.0; 16]] {
            assert_eq!(Pose::from_action(PoseFormat::Matrix, &columns), Err(PoseError::Matrix));
        }
    }

    #[test]
    fn a_state_matrix_in_column_order_is_refused() {
        let rows = matrix_columns(rotation([0.1, 0.2, 0.3]), [0.4, 0.5, 0.6]);
        let narrow = rows.map(|value| value as f32);
        assert!(Pose::from_state(PoseFormat::Matrix, &narrow).is_ok());
        let transposed: Vec<f32> = (0..16).map(|i| narrow[i % 4 * 4 + i / 4]).collect();
        assert_eq!(Pose::from_state(PoseFormat::Matrix, &transposed), Err(PoseError::LastRow));
    }

    proptest! {
        /// Writing and reading a pose in any layout gives it back, and so does composing with its inverse.
        #[test]
        fn layouts_agree_with_each_other(
            axis_angle in prop::array::uniform3(-1.8_f64..1.8),
            place in prop::array::uniform3(-2.0_f64..2.0),
        ) {
            let pose = Pose { rotation: rotation(axis_angle), translation: place.into() };
            for format in [PoseFormat::Rot6d, PoseFormat::Rotvec, PoseFormat::Matrix] {
                let mut columns = vec![0.0; format.dim()];
                pose.write(format, &mut columns);
                let back = Pose::from_action(format, &columns).unwrap();
                prop_assert!((back.rotation - pose.rotation).amax() < 1e-14);
                prop_assert_eq!(back.translation, pose.translation);
            }
            let inverse = Pose {
                rotation: pose.rotation.transpose(),
                translation: -(pose.rotation.transpose() * pose.translation),
            };
            let identity = pose.compose(&inverse);
            prop_assert!((identity.rotation - Matrix3::identity()).amax() < 1e-14);
            prop_assert!(identity.translation.amax() < 1e-14);
        }
    }
}
