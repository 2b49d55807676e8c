//! The formats in which data sets hold rotations.

/// Three angles in radians about the axes of the turning frame, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EulerOrder {
    /// 0, 1 and 2 for x, y and z, each once.
    axes: [usize; 3],
}

impl EulerOrder {
    /// The order that letters name, such as `rpy`: roll about x, pitch about y, yaw about z.
    pub fn from_letters(letters: &str) -> Option<Self> {
        let axes = match letters {
            "rpy" => [0, 1, 2],
            "ryp" => [0, 2, 1],
            "pry" => [1, 0, 2],
            "pyr" => [1, 2, 0],
            "yrp" => [2, 0, 1],
            "ypr" => [2, 1, 0],
            _ => return None,
        };
        Some(Self { axes })
    }

    /// The axes that the angles turn about, 0, 1 and 2 for x, y and z.
    pub fn axes(self) -> [usize; 3] {
        self.axes
    }
}

/// How the values of a group stand for a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationFormat {
    /// Scalar first: w, x, y, z; of any length but 0.
    Quaternion,
    /// Axis times angle in radians.
    AxisAngle,
    Euler(EulerOrder),
    /// The first two rows of the rotation matrix.
    Rotation6d,
}

impl RotationFormat {
    /// Number of values.
    pub fn dim(self) -> usize {
        match self {
            RotationFormat::Quaternion => 4,
            RotationFormat::AxisAngle | RotationFormat::Euler(_) => 3,
            RotationFormat::Rotation6d => 6,
        }
    }
}
