//! How the recorded robot moves: it picks a pear from the table and puts it on a plate.
//!
//! Every motion is a minimum-jerk curve between knots, computed with the four basic operations alone, so that the
//! recording is the same to the bit on every machine.

/// Length of the recorded motion, seconds.
pub const DURATION_S: f64 = 5.0;

/// The moments between which everything moves, seconds from the start: the hand is at home, above the pear, around
/// it, closed; lifted, above the plate, lowered, open; at home again.
pub const KNOTS_S: [f64; 9] = [0.2, 1.0, 1.4, 1.8, 2.3, 3.1, 3.5, 3.8, 4.8];
const KNOTS: usize = KNOTS_S.len();

/// A quantity given at [`KNOTS_S`] and joined by minimum-jerk curves, at rest in every knot.
pub struct Track<const N: usize>(pub [[f64; N]; KNOTS]);

impl<const N: usize> Track<N> {
    /// Value and rate of change at `seconds` from the start.
    pub fn at(&self, seconds: f64) -> ([f64; N], [f64; N]) {
        let after = KNOTS_S.partition_point(|knot| *knot <= seconds);
        if after == 0 || after == KNOTS {
            return (self.0[after.saturating_sub(1)], [0.0; N]);
        }
        let (from, to) = (&self.0[after - 1], &self.0[after]);
        let span = KNOTS_S[after] - KNOTS_S[after - 1];
        let s = (seconds - KNOTS_S[after - 1]) / span;
        let blend = s * s * s * (10.0 + s * (6.0 * s - 15.0));
        let blend_rate = 30.0 * s * s * (1.0 - s) * (1.0 - s) / span;
        let value = std::array::from_fn(|i| from[i] + (to[i] - from[i]) * blend);
        let rate = std::array::from_fn(|i| (to[i] - from[i]) * blend_rate);
        (value, rate)
    }
}

/// Joints of the recording, their positions in radians and their velocities in radians per second.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSample {
    pub name: Vec<String>,
    pub position: Vec<f64>,
    pub velocity: Vec<f64>,
}

/// Joint names of one arm without their side, shoulder to wrist.
const ARM: [&str; 7] = [
    "shoulder_pitch_joint",
    "shoulder_roll_joint",
    "shoulder_yaw_joint",
    "elbow_pitch_joint",
    "wrist_yaw_joint",
    "wrist_roll_joint",
    "wrist_pitch_joint",
];
/// Joint names of one hand without their side.
const HAND: [&str; 6] = [
    "index_proximal_joint",
    "middle_proximal_joint",
    "ring_proximal_joint",
    "pinky_proximal_joint",
    "thumb_proximal_yaw_joint",
    "thumb_proximal_pitch_joint",
];
const WAIST: [&str; 3] = ["waist_yaw_joint", "waist_pitch_joint", "waist_roll_joint"];
const HEAD: [&str; 3] = ["head_yaw_joint", "head_pitch_joint", "head_roll_joint"];
/// Joint names of one leg without their side, hip to ankle.
const LEG: [&str; 6] = [
    "hip_roll_joint",
    "hip_yaw_joint",
    "hip_pitch_joint",
    "knee_pitch_joint",
    "ankle_pitch_joint",
    "ankle_roll_joint",
];

const RIGHT_ARM: Track<7> = Track([
    [0.05, -0.18, -0.05, -1.35, 0.10, 0.00, 0.05],
    [-0.42, -0.34, 0.12, -1.18, 0.34, -0.08, -0.16],
    [-0.58, -0.30, 0.16, -0.98, 0.40, -0.10, -0.22],
    [-0.58, -0.30, 0.16, -0.98, 0.40, -0.10, -0.22],
    [-0.50, -0.26, 0.10, -1.30, 0.32, -0.06, -0.10],
    [-0.62, 0.06, 0.42, -1.22, 0.05, 0.10, -0.14],
    [-0.72, 0.08, 0.45, -1.02, 0.02, 0.12, -0.20],
    [-0.72, 0.08, 0.45, -1.02, 0.02, 0.12, -0.20],
    [0.05, -0.18, -0.05, -1.35, 0.10, 0.00, 0.05],
]);

/// The left arm only steadies the robot.
const LEFT_ARM: Track<7> = Track([
    [0.10, 0.20, 0.02, -1.25, -0.08, 0.00, 0.04],
    [0.06, 0.22, 0.02, -1.28, -0.08, 0.01, 0.05],
    [0.02, 0.24, 0.03, -1.30, -0.10, 0.02, 0.05],
    [0.02, 0.24, 0.03, -1.30, -0.10, 0.02, 0.05],
    [0.04, 0.23, 0.03, -1.29, -0.09, 0.02, 0.06],
    [0.12, 0.26, 0.05, -1.22, -0.06, 0.01, 0.08],
    [0.13, 0.26, 0.05, -1.21, -0.06, 0.01, 0.08],
    [0.13, 0.26, 0.05, -1.21, -0.06, 0.01, 0.08],
    [0.10, 0.20, 0.02, -1.25, -0.08, 0.00, 0.04],
]);

/// Finger flexion is negative when the hand closes.
const RIGHT_HAND: Track<6> = Track([
    [-0.30, -0.30, -0.32, -0.35, 0.40, 0.10],
    [-0.12, -0.10, -0.10, -0.14, 0.95, 0.05],
    [-0.12, -0.10, -0.10, -0.14, 1.05, 0.05],
    [-0.92, -0.98, -0.96, -0.90, 1.15, 0.42],
    [-0.94, -1.00, -0.98, -0.92, 1.15, 0.44],
    [-0.94, -1.00, -0.98, -0.92, 1.15, 0.44],
    [-0.92, -0.98, -0.96, -0.90, 1.15, 0.42],
    [-0.12, -0.10, -0.10, -0.14, 1.05, 0.05],
    [-0.30, -0.30, -0.32, -0.35, 0.40, 0.10],
]);

const LEFT_HAND: Track<6> = Track([[-0.25, -0.26, -0.28, -0.30, 0.35, 0.08]; KNOTS]);

const WAIST_MOTION: Track<3> = Track([
    [0.00, 0.04, 0.00],
    [-0.10, 0.09, 0.01],
    [-0.12, 0.12, 0.01],
    [-0.12, 0.12, 0.01],
    [-0.08, 0.09, 0.01],
    [0.10, 0.10, -0.01],
    [0.11, 0.13, -0.01],
    [0.11, 0.13, -0.01],
    [0.00, 0.04, 0.00],
]);

/// Head and legs belong to no group of the embodiment; a real driver reports them all the same. The head keeps the
/// still camera still.
const HEAD_POSE: [f64; 3] = [0.0, 0.55, 0.0];
const LEG_POSE: [f64; 6] = [0.01, 0.0, -0.26, 0.52, -0.26, -0.01];

/// The state of every joint at `seconds` from the start, in the order of the recorded robot's driver, which is not
/// the order of the checkpoint's groups: names tell which value is which, positions do not.
pub fn joints_at(seconds: f64) -> JointSample {
    let mut sample = JointSample { name: vec![], position: vec![], velocity: vec![] };
    let mut push = |prefix: &str, names: &[&str], position: &[f64], velocity: &[f64]| {
        sample.name.extend(names.iter().map(|name| format!("{prefix}{name}")));
        sample.position.extend_from_slice(position);
        sample.velocity.extend_from_slice(velocity);
    };
    let (waist, waist_rate) = WAIST_MOTION.at(seconds);
    let (left_arm, left_arm_rate) = LEFT_ARM.at(seconds);
    let (left_hand, left_hand_rate) = LEFT_HAND.at(seconds);
    let (right_arm, right_arm_rate) = RIGHT_ARM.at(seconds);
    let (right_hand, right_hand_rate) = RIGHT_HAND.at(seconds);
    push("left_", &LEG, &LEG_POSE, &[0.0; 6]);
    push("right_", &LEG, &LEG_POSE, &[0.0; 6]);
    push("", &WAIST, &waist, &waist_rate);
    push("", &HEAD, &HEAD_POSE, &[0.0; 3]);
    push("left_", &ARM, &left_arm, &left_arm_rate);
    push("L_", &HAND, &left_hand, &left_hand_rate);
    push("right_", &ARM, &right_arm, &right_arm_rate);
    push("R_", &HAND, &right_hand, &right_hand_rate);
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_pass_through_their_knots_at_rest() {
        for (knot, expected) in KNOTS_S.into_iter().zip(RIGHT_ARM.0) {
            let (value, rate) = RIGHT_ARM.at(knot);
            assert_eq!(value, expected);
            assert_eq!(rate, [0.0; 7]);
        }
        assert_eq!(RIGHT_ARM.at(-1.0).0, RIGHT_ARM.0[0]);
        assert_eq!(RIGHT_ARM.at(DURATION_S).0, RIGHT_ARM.0[KNOTS - 1]);
    }

    #[test]
    fn velocity_is_the_derivative_of_position() {
        let step = 1e-5;
        for tick in 1..1000 {
            let seconds = 0.005 * f64::from(tick);
            let (now, later) = (joints_at(seconds - step), joints_at(seconds + step));
            let middle = joints_at(seconds);
            for joint in 0..middle.name.len() {
                let slope = (later.position[joint] - now.position[joint]) / (2.0 * step);
                let velocity = middle.velocity[joint];
                assert!((slope - velocity).abs() < 2e-3, "{} at {seconds} s", middle.name[joint]);
            }
        }
    }

    #[test]
    fn names_are_distinct_and_the_motion_ends_where_it_began() {
        let (start, end) = (joints_at(0.0), joints_at(DURATION_S));
        assert_eq!(start.position, end.position);
        assert_eq!(start.name.len(), 44);
        let distinct: std::collections::BTreeSet<_> = start.name.iter().collect();
        assert_eq!(distinct.len(), start.name.len());
    }
}
