//! Rigid motions: reading, composing and writing the poses of end effectors (spec N1.7, section 8.1).

use nalgebra::{Matrix3, RealField, UnitQuaternion, Vector3};

use super::PoseError;
use crate::contract::PoseFormat;

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
            let identity = [0.0, 0.0, 0.0, 1.0];
            let is_off =
                |(value, expected): (&f64, f64)| !((value - expected).abs() <= LAST_ROW_TOLERANCE);
            if wide[12..].iter().zip(identity).any(is_off) {
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
                columns[3..6].copy_from_slice(&rows(0));
                columns[6..9].copy_from_slice(&rows(1));
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
    // The comparison is the other way round so that it fails on NaN.
    if !(across_length / length(second) >= min_sine) {
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
    if !(rotation.determinant() > 0.0) {
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
