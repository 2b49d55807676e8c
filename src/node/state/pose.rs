//! How a state group writes a pose, or a part of one, and what the checkpoint says about it.

use std::fmt;
use std::str::FromStr;

use nalgebra::Isometry3;

use super::super::rigid::quaternion_xyzw;
use crate::contract::{ActionReference, Embodiment, PoseFormat, RotationFormat, StateEncoding};
use crate::decode::Pose;
use crate::rotation;

/// The values of a group that is observed as a pose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoseLayout {
    /// Position and orientation.
    Pose(PoseFormat),
    /// x, y, z.
    Position,
    QuaternionXyzw,
    QuaternionWxyz,
    /// Axis times angle, angle in [0, pi].
    Rotvec,
    /// First two rows of the rotation matrix.
    Rot6d,
    /// Rotation matrix, row by row.
    RotationMatrix,
}

/// Names as in the parameter `format`.
const NAMES: [(&str, PoseLayout); 9] = [
    ("xyz_rot6d", PoseLayout::Pose(PoseFormat::Rot6d)),
    ("xyz_rotvec", PoseLayout::Pose(PoseFormat::Rotvec)),
    ("matrix", PoseLayout::Pose(PoseFormat::Matrix)),
    ("xyz", PoseLayout::Position),
    ("quaternion_xyzw", PoseLayout::QuaternionXyzw),
    ("quaternion_wxyz", PoseLayout::QuaternionWxyz),
    ("rotvec", PoseLayout::Rotvec),
    ("rot6d", PoseLayout::Rot6d),
    ("rotation_matrix", PoseLayout::RotationMatrix),
];

impl FromStr for PoseLayout {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, layout)| layout).ok_or(())
    }
}

impl fmt::Display for PoseLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.into_iter().find(|(_, layout)| layout == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl PoseLayout {
    /// The layout of a state group, if the checkpoint says one: that of the relative actions that are composed onto it,
    /// or of the action group that has its name.
    pub fn declared(embodiment: &Embodiment, group: &str) -> Option<Self> {
        let composed = embodiment.action.iter().find_map(|action| match &action.reference {
            ActionReference::RelativePose { state_group, format } => {
                (state_group == group).then_some(*format)
            }
            _ => None,
        });
        let namesake = || {
            let action = embodiment.action.iter().find(|action| action.name == group)?;
            let state = embodiment.state.iter().find(|state| state.name == group)?;
            action.pose.filter(|_| action.dim == state.dim)
        };
        composed.or_else(namesake).map(PoseLayout::Pose).or_else(|| {
            let state = embodiment.state.iter().find(|state| state.name == group)?;
            let StateEncoding::Double { rotation, .. } = &state.encoding else { return None };
            PoseLayout::of_rotation((*rotation)?)
        })
    }

    /// The layout of a group that N1.5 takes for a rotation; none for Euler angles, whose convention in the data set
    /// nothing says: the model reads them as turns about turning axes, whatever they were.
    fn of_rotation(format: RotationFormat) -> Option<Self> {
        match format {
            RotationFormat::Quaternion => Some(PoseLayout::QuaternionWxyz),
            RotationFormat::AxisAngle => Some(PoseLayout::Rotvec),
            RotationFormat::Rotation6d => Some(PoseLayout::Rot6d),
            RotationFormat::Euler(_) => None,
        }
    }

    /// Number of values.
    pub fn dim(self) -> usize {
        match self {
            PoseLayout::Pose(format) => format.dim(),
            PoseLayout::Position | PoseLayout::Rotvec => 3,
            PoseLayout::QuaternionXyzw | PoseLayout::QuaternionWxyz => 4,
            PoseLayout::Rot6d => 6,
            PoseLayout::RotationMatrix => 9,
        }
    }

    /// The values of a pose, `[dim]`. Of a quaternion and its negative, the one with w >= 0.
    pub fn values(self, pose: &Isometry3<f64>) -> Vec<f64> {
        let write = |format: PoseFormat| {
            let rotation = pose.rotation.to_rotation_matrix().into_inner();
            let translation = pose.translation.vector;
            let mut columns = vec![0.0; format.dim()];
            Pose { rotation, translation }.write(format, &mut columns);
            columns
        };
        /// Columns of the position in front of an orientation.
        const POSITION: usize = 3;
        match self {
            PoseLayout::Pose(format) => write(format),
            PoseLayout::Position => pose.translation.vector.as_slice().to_vec(),
            PoseLayout::QuaternionXyzw => quaternion_xyzw(&pose.rotation).to_vec(),
            PoseLayout::QuaternionWxyz => {
                let [x, y, z, w] = quaternion_xyzw(&pose.rotation);
                vec![w, x, y, z]
            }
            PoseLayout::Rotvec => write(PoseFormat::Rotvec)[POSITION..].to_vec(),
            PoseLayout::Rot6d => {
                rotation::to_6d(&pose.rotation.to_rotation_matrix().into_inner()).to_vec()
            }
            PoseLayout::RotationMatrix => {
                let rotation = pose.rotation.to_rotation_matrix().into_inner();
                rotation.transpose().as_slice().to_vec()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::Vector3;

    use super::super::super::rigid::rigid;
    use super::*;
    use crate::contract::EulerOrder;
    use crate::rotation::to_matrix;

    /// Rotations about x, y and z, applied in this order to the axes that turn along.
    fn intrinsic_xyz([a, b, c]: [f64; 3]) -> nalgebra::UnitQuaternion<f64> {
        let about = |axis, angle| nalgebra::UnitQuaternion::from_axis_angle(&axis, angle);
        about(Vector3::x_axis(), a) * about(Vector3::y_axis(), b) * about(Vector3::z_axis(), c)
    }

    #[test]
    fn case_14_rows_of_the_rotation_matrix() {
        // Golden values: numpy, R = Rx(2.9) Ry(0.3) Rz(-0.7), as DROID's cartesian_position has it.
        let rotation = intrinsic_xyz([2.9, 0.3, -0.7]);
        let [x, y, z, w] = quaternion_xyzw(&rotation);
        let pose = rigid([0.4, -0.1, 0.3], [x, y, z, w]).expect("normalised");
        let values = PoseLayout::Pose(PoseFormat::Rot6d).values(&pose);
        let expected = [
            0.4,
            -0.1,
            0.3,
            0.730_681_649_936,
            0.615_444_663_558,
            0.295_520_206_661,
            0.679_585_069_301,
            -0.697_081_636_430,
            -0.228_563_614_197,
        ];
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{values:?}");
        }
        assert_eq!(PoseLayout::Rot6d.values(&pose), values[3..]);
        assert_eq!(PoseLayout::Position.values(&pose), values[..3]);
        assert_eq!(PoseLayout::RotationMatrix.values(&pose)[..6], values[3..]);
    }

    #[test]
    fn the_frame_of_droid_is_a_fixed_turn_of_its_flange() {
        // config/droid.yaml gives this quaternion for the static transform from the flange.
        let flange_to_tip = rigid([0.0; 3], [0.5, -0.5, -0.5, 0.5]).expect("normalised");
        let flange = intrinsic_xyz([2.9, 0.3, -0.7]);
        let pose = Isometry3::from_parts(Default::default(), flange) * flange_to_tip;
        let values = PoseLayout::Rot6d.values(&pose);
        // numpy: first two rows of R C, C = [[0, 0, -1], [-1, 0, 0], [0, 1, 0]] (spec N1.7, section 8.2).
        let expected = [
            -0.615_444_663_558,
            0.295_520_206_661,
            -0.730_681_649_936,
            0.697_081_636_430,
            -0.228_563_614_197,
            -0.679_585_069_301,
        ];
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{values:?}");
        }
    }

    #[test]
    fn a_quarter_turn_in_every_layout() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let pose = rigid([1.0, 2.0, 3.0], [0.0, 0.0, -half, -half]).expect("normalised");
        let quarter = std::f64::consts::FRAC_PI_2;
        for (layout, expected) in [
            (PoseLayout::QuaternionXyzw, vec![0.0, 0.0, half, half]),
            (PoseLayout::QuaternionWxyz, vec![half, 0.0, 0.0, half]),
            (PoseLayout::Rotvec, vec![0.0, 0.0, quarter]),
            (PoseLayout::Rot6d, vec![0.0, -1.0, 0.0, 1.0, 0.0, 0.0]),
            (PoseLayout::RotationMatrix, vec![0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
            (PoseLayout::Pose(PoseFormat::Rotvec), vec![1.0, 2.0, 3.0, 0.0, 0.0, quarter]),
        ] {
            let values = layout.values(&pose);
            assert_eq!(values.len(), layout.dim());
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-15;
            assert!(values.iter().zip(&expected).all(near), "{layout}: {values:?}");
        }
        let matrix = PoseLayout::Pose(PoseFormat::Matrix).values(&pose);
        assert_eq!((matrix[3], matrix[7], matrix[11], matrix[15]), (1.0, 2.0, 3.0, 1.0));
    }

    #[test]
    fn rotations_of_n15_come_back_from_every_format() {
        let formats = [
            (RotationFormat::Quaternion, PoseLayout::QuaternionWxyz),
            (RotationFormat::AxisAngle, PoseLayout::Rotvec),
            (RotationFormat::Rotation6d, PoseLayout::Rot6d),
        ];
        let turns = [[0.0; 3], [2.9, 0.3, -0.7], [-1.2, 1.5, 0.4], [3.1, -0.1, 3.0]];
        for (format, layout) in formats {
            assert_eq!(PoseLayout::of_rotation(format), Some(layout));
            assert_eq!(layout.dim(), format.dim());
            for turn in turns {
                let turn = intrinsic_xyz(turn);
                let values = layout.values(&Isometry3::from_parts(Default::default(), turn));
                // What the encoder makes of the values.
                let matrix = to_matrix(format, &values).expect("a rotation");
                let expected = turn.to_rotation_matrix().into_inner();
                assert!((matrix - expected).amax() < 1e-12, "{layout}: {values:?}");
            }
        }
        let rpy = EulerOrder::from_letters("rpy").expect("an order");
        assert_eq!(PoseLayout::of_rotation(RotationFormat::Euler(rpy)), None);
    }

    #[test]
    fn every_layout_has_its_name() {
        for (name, layout) in NAMES {
            assert_eq!((name.parse(), layout.to_string()), (Ok(layout), name.to_owned()));
        }
        assert_eq!("auto".parse::<PoseLayout>(), Err(()));
    }
}
