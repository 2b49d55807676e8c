//! What a checkpoint declares about one robot: its cameras, state groups and action groups.

use super::{EulerOrder, RotationFormat};

/// One robot that a checkpoint serves, with everything that encoding and decoding need to know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Embodiment {
    /// The checkpoint's tag, such as `gr1`.
    pub tag: String,
    /// Row of the per-embodiment weight tables.
    pub slot: usize,
    /// Camera keys in the order in which the model sees them.
    pub cameras: Vec<String>,
    /// Frame times in control steps relative to now, oldest first; `[0]` for a single frame.
    pub frame_deltas: Vec<i32>,
    /// In the order in which their values are concatenated.
    pub state: Vec<StateGroupSpec>,
    /// In the order of the columns of the model's output.
    pub action: Vec<ActionGroupSpec>,
    /// Rows of a decoded chunk.
    pub horizon: usize,
    /// The data set's key of the instruction, for information.
    pub language_key: String,
}

impl Embodiment {
    /// Pictures of one observation.
    pub fn pictures(&self) -> usize {
        self.cameras.len() * self.frame_deltas.len()
    }

    /// Columns of a decoded chunk, all groups together.
    pub fn action_dim(&self) -> usize {
        self.action.iter().map(|group| group.dim).sum()
    }
}

/// One group of state values.
#[derive(Clone, Debug, PartialEq)]
pub struct StateGroupSpec {
    pub name: String,
    /// Number of raw values.
    pub dim: usize,
    pub encoding: StateEncoding,
}

/// How raw state values become model input.
#[derive(Clone, Debug, PartialEq)]
pub enum StateEncoding {
    /// Sines of all values, then cosines of all values.
    SinCos,
    /// `(v - mean) / std`; a dimension whose `std` is 0 is passed through.
    MeanStd { mean: Vec<f64>, std: Vec<f64> },
    /// `2 (v - min) / (max - min) - 1`; a dimension without range becomes 0; clipped to [-1, 1] if `clip`.
    MinMax { min: Vec<f64>, max: Vec<f64>, clip: bool },
    /// N1.5: computed in f64 throughout, from the values as they were observed. A `rotation` in the given format first
    /// becomes the first two rows of its matrix.
    Double { rotation: Option<RotationFormat>, scaling: StateScaling },
}

/// How N1.5 scales state values, unclipped.
#[derive(Clone, Debug, PartialEq)]
pub enum StateScaling {
    None,
    /// Sines of all values, then cosines of all values.
    SinCos,
    /// `2 (v - min) / (max - min) - 1`; a dimension whose bounds are equal becomes 0.
    MinMax {
        min: Vec<f64>,
        max: Vec<f64>,
    },
}

impl StateScaling {
    fn name(&self) -> &'static str {
        match self {
            StateScaling::None => "none",
            StateScaling::SinCos => "sin_cos",
            StateScaling::MinMax { .. } => "min_max",
        }
    }
}

impl StateEncoding {
    /// Name as in messages and tables.
    pub fn name(&self) -> &'static str {
        match self {
            StateEncoding::SinCos => "sin_cos",
            StateEncoding::MeanStd { .. } => "mean_std",
            StateEncoding::MinMax { .. } => "min_max",
            StateEncoding::Double { rotation: None, scaling } => scaling.name(),
            StateEncoding::Double { rotation: Some(_), scaling: StateScaling::None } => "rot6d",
            StateEncoding::Double { rotation: Some(_), scaling: StateScaling::SinCos } => {
                "rot6d_sin_cos"
            }
            StateEncoding::Double { rotation: Some(_), scaling: StateScaling::MinMax { .. } } => {
                "rot6d_min_max"
            }
        }
    }

    /// Bounds of the scaling, each `[dim]`, where it has any.
    pub fn bounds(&self) -> Option<(&Vec<f64>, &Vec<f64>)> {
        match self {
            StateEncoding::MinMax { min, max, .. }
            | StateEncoding::Double { scaling: StateScaling::MinMax { min, max }, .. } => {
                Some((min, max))
            }
            StateEncoding::SinCos
            | StateEncoding::MeanStd { .. }
            | StateEncoding::Double { .. } => None,
        }
    }

    /// Columns that a group of `dim` raw values takes up in the model's state vector.
    pub fn encoded_dim(&self, dim: usize) -> usize {
        match self {
            StateEncoding::SinCos => 2 * dim,
            StateEncoding::MeanStd { .. } | StateEncoding::MinMax { .. } => dim,
            StateEncoding::Double { rotation, scaling } => {
                let converted = rotation.map_or(dim, |_| RotationFormat::Rotation6d.dim());
                if *scaling == StateScaling::SinCos { 2 * converted } else { converted }
            }
        }
    }
}

/// Absolute and relative part of the tolerance under which a dimension counts as without range.
const NO_RANGE_ABSOLUTE: f64 = 1e-8;
const NO_RANGE_RELATIVE: f64 = 1e-5;

/// Whether a dimension with these bounds never moved in the data set, up to rounding; either bound may be the larger.
pub fn has_no_range(min: f64, max: f64) -> bool {
    (max - min).abs() <= NO_RANGE_ABSOLUTE + NO_RANGE_RELATIVE * min.abs()
}

/// Layout of an end-effector pose in a group's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoseFormat {
    /// x, y, z, first two rows of the rotation matrix: 9 columns.
    Rot6d,
    /// x, y, z, axis times angle: 6 columns.
    Rotvec,
    /// 4x4 homogeneous matrix, row-major: 16 columns.
    Matrix,
}

impl PoseFormat {
    pub fn dim(self) -> usize {
        match self {
            PoseFormat::Rot6d => 9,
            PoseFormat::Rotvec => 6,
            PoseFormat::Matrix => 16,
        }
    }
}

/// How an action group relates to the state of the observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionReference {
    /// Absolute as it stands.
    Absolute,
    /// A change per step, passed on as it stands.
    Delta,
    /// Added to the named state group of the observation.
    RelativeJoint { state_group: String },
    /// Composed onto the pose in the named state group: `T_abs = T_state * T_rel`.
    RelativePose { state_group: String, format: PoseFormat },
}

/// One group of action values.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionGroupSpec {
    pub name: String,
    pub dim: usize,
    pub normalization: ActionNormalization,
    pub reference: ActionReference,
    /// Set when the group's absolute values are poses.
    pub pose: Option<PoseFormat>,
}

/// How the model's output in [-1, 1] becomes physical values.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionNormalization {
    /// Bounds of each dimension, the same for every step; `[dim]`.
    MinMax { min: Vec<f64>, max: Vec<f64> },
    /// Bounds of each dimension at each step; `[horizon, dim]`, row-major.
    MinMaxPerStep { min: Vec<f64>, max: Vec<f64> },
    /// `x * std + mean`, unclipped; a dimension whose `std` is 0 is passed through.
    MeanStd { mean: Vec<f64>, std: Vec<f64> },
    /// As `MeanStd`, with statistics of each dimension at each step; `[horizon, dim]`, row-major.
    MeanStdPerStep { mean: Vec<f64>, std: Vec<f64> },
    /// N1.5: computed in f32 throughout, statistics rounded to f32 first. With `euler`, the result is axis times angle
    /// and becomes angles of that order.
    Single { scaling: ActionScaling, euler: Option<EulerOrder> },
}

/// How N1.5 scales actions, unclipped.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionScaling {
    None,
    /// `(x + 1) / 2 * (max - min) + min`.
    MinMax {
        min: Vec<f64>,
        max: Vec<f64>,
    },
    /// `x * std + mean`.
    MeanStd {
        mean: Vec<f64>,
        std: Vec<f64>,
    },
    /// 1 above one half, else 0.
    Binary,
}

impl ActionNormalization {
    /// Name as in messages and tables.
    pub fn name(&self) -> &'static str {
        match self {
            ActionNormalization::MinMax { .. } => "min_max",
            ActionNormalization::MinMaxPerStep { .. } => "min_max_per_step",
            ActionNormalization::MeanStd { .. } => "mean_std",
            ActionNormalization::MeanStdPerStep { .. } => "mean_std_per_step",
            ActionNormalization::Single { scaling, .. } => match scaling {
                ActionScaling::None => "none",
                ActionScaling::MinMax { .. } => "min_max",
                ActionScaling::MeanStd { .. } => "mean_std",
                ActionScaling::Binary => "binary",
            },
        }
    }

    /// Lowest and highest values, `[dim]` or `[horizon, dim]`, where the output is scaled by them.
    pub fn bounds(&self) -> Option<(&Vec<f64>, &Vec<f64>)> {
        match self {
            ActionNormalization::MinMax { min, max }
            | ActionNormalization::MinMaxPerStep { min, max }
            | ActionNormalization::Single { scaling: ActionScaling::MinMax { min, max }, .. } => {
                Some((min, max))
            }
            ActionNormalization::MeanStd { .. }
            | ActionNormalization::MeanStdPerStep { .. }
            | ActionNormalization::Single { .. } => None,
        }
    }
}
