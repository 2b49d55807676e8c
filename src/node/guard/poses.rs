//! Limits of poses: how far and how much they may turn from one row to the next.

use nalgebra::{Matrix3, Rotation3, UnitQuaternion};

use super::{ObservedState, OnViolation, Violation};
use crate::contract::PoseFormat;
use crate::decode::Pose;

/// What rounding to f32 does to a rotation, radians.
const ROTATION_ROUNDING: f64 = 1e-6;
/// A step that is limited becomes this much shorter than its limit, so that rounding does not carry it beyond.
const INSIDE: f64 = 1.0 - 1e-6;

/// The limits of an action group that is a pose, in m and rad; infinite for none.
#[derive(Clone, Debug, PartialEq)]
pub struct PoseLimits {
    pub group: String,
    pub format: PoseFormat,
    pub translation_step: f64,
    pub rotation_step: f64,
    /// The state group, of the same format, that the first row is a step from.
    pub observed: Option<String>,
}

impl PoseLimits {
    pub(super) fn check(
        &self,
        values: &mut [f32],
        observed: &ObservedState,
        on_violation: OnViolation,
    ) -> Result<usize, Violation> {
        let mut limited = 0;
        let mut before = self.observed_pose(observed);
        for (row, columns) in values.chunks_exact_mut(self.format.dim()).enumerate() {
            let pose = self.pose(row, columns)?;
            let Some(from) = before.replace(pose) else { continue };
            let violations = self.violations(row, &from, &pose);
            let [translation, rotation] = &violations;
            let Some(first) = translation.as_ref().or(rotation.as_ref()) else { continue };
            if on_violation == OnViolation::Refuse {
                return Err(first.clone());
            }
            let mut nearer = pose;
            if let Some(Violation::Translation { value, limit, .. }) = translation {
                let share = INSIDE * limit / value;
                nearer.translation =
                    from.translation + (pose.translation - from.translation) * share;
            }
            if let Some(Violation::Rotation { value, limit, .. }) = rotation {
                let share = INSIDE * limit / value;
                nearer.rotation = turned(&from.rotation, &pose.rotation, share);
            }
            self.write(&nearer, columns, violations.each_ref().map(Option::is_some));
            before = Some(self.pose(row, columns)?);
            limited += violations.iter().flatten().count();
        }
        Ok(limited)
    }

    fn pose(&self, row: usize, columns: &[f32]) -> Result<Pose, Violation> {
        let wide: Vec<f64> = columns.iter().map(|&value| f64::from(value)).collect();
        Pose::from_action(self.format, &wide).map_err(|problem| Violation::NoPose {
            group: self.group.clone(),
            row,
            problem,
        })
    }

    fn observed_pose(&self, observed: &ObservedState) -> Option<Pose> {
        let values = observed.get(self.observed.as_ref()?)?;
        let columns: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let is_whole = columns.len() == self.format.dim();
        // What is no pose has been refused when the chunk was composed onto it.
        is_whole.then(|| Pose::from_state(self.format, &columns).ok()).flatten()
    }

    /// What is wrong with the step between two poses: with its translation, with its rotation.
    fn violations(&self, row: usize, from: &Pose, to: &Pose) -> [Option<Violation>; 2] {
        let length = (to.translation - from.translation).norm();
        let rounding = f64::from(f32::EPSILON) * (from.translation.norm() + to.translation.norm());
        let angle = quaternion(&from.rotation).angle_to(&quaternion(&to.rotation));
        let too_far = length > self.translation_step + rounding;
        let too_much = angle > self.rotation_step + ROTATION_ROUNDING;
        let group = || self.group.clone();
        [
            too_far.then(|| Violation::Translation {
                group: group(),
                row,
                value: length,
                limit: self.translation_step,
            }),
            too_much.then(|| Violation::Rotation {
                group: group(),
                row,
                value: angle,
                limit: self.rotation_step,
            }),
        ]
    }

    /// Writes the parts of a pose that have changed; the others keep their bytes.
    fn write(&self, pose: &Pose, columns: &mut [f32], [translation, rotation]: [bool; 2]) {
        let mut written = vec![0.0; self.format.dim()];
        pose.write(self.format, &mut written);
        for (column, (value, written)) in columns.iter_mut().zip(written).enumerate() {
            let of_translation = match self.format {
                PoseFormat::Rot6d | PoseFormat::Rotvec => column < 3,
                PoseFormat::Matrix => column < 12 && column % 4 == 3,
            };
            if if of_translation { translation } else { rotation } {
                *value = written as f32;
            }
        }
    }
}

/// The rotation that lies at `share` of the shortest way between two.
fn turned(from: &Matrix3<f64>, to: &Matrix3<f64>, share: f64) -> Matrix3<f64> {
    let from = quaternion(from);
    let way = (from.inverse() * quaternion(to)).scaled_axis();
    (from * UnitQuaternion::from_scaled_axis(way * share)).to_rotation_matrix().into_inner()
}

fn quaternion(rotation: &Matrix3<f64>) -> UnitQuaternion<f64> {
    let rotation =
        UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(*rotation));
    UnitQuaternion::new_normalize(rotation.into_inner())
}
