//! Plain numbers. These messages have no header: only the time of receipt dates them.

use serde::Deserialize;

use super::{MessageError, parse};

/// `std_msgs/msg/Float64`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Float64(pub f64);

/// `std_msgs/msg/Float64MultiArray`
#[derive(Clone, Debug, PartialEq)]
pub struct Float64MultiArray {
    pub dimensions: Vec<Dimension>,
    /// Values in front of the first one that counts.
    pub data_offset: u32,
    pub data: Vec<f64>,
}

/// `std_msgs/msg/MultiArrayDimension`, without the stride, which follows from the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    pub label: String,
    pub size: u32,
}

#[derive(Deserialize)]
struct Float64Wire {
    data: f64,
}

#[derive(Deserialize)]
struct DimensionWire {
    label: String,
    size: u32,
    #[serde(rename = "stride")]
    _stride: u32,
}

#[derive(Deserialize)]
struct Float64MultiArrayWire {
    dim: Vec<DimensionWire>,
    data_offset: u32,
    data: Vec<f64>,
}

impl Float64 {
    pub const TYPE: &str = "std_msgs/msg/Float64";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<Float64Wire>(Self::TYPE, bytes)?;
        Ok(Self(wire.data))
    }
}

impl Float64MultiArray {
    pub const TYPE: &str = "std_msgs/msg/Float64MultiArray";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<Float64MultiArrayWire>(Self::TYPE, bytes)?;
        let dimension = |wire: DimensionWire| Dimension { label: wire.label, size: wire.size };
        Ok(Self {
            dimensions: wire.dim.into_iter().map(dimension).collect(),
            data_offset: wire.data_offset,
            data: wire.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Writer;
    use super::*;

    #[test]
    fn reads_numbers_and_arrays() {
        let bytes = Writer::new().double(-0.25).message();
        assert_eq!(Float64::from_cdr(&bytes), Ok(Float64(-0.25)));
        assert!(Float64::from_cdr(&bytes[..11]).is_err());

        let fields = Writer::new().u32(1).text("height").u32(2).u32(2).u32(0);
        let bytes = fields.doubles(&[0.5, 1.5]).message();
        let expected = Float64MultiArray {
            dimensions: vec![Dimension { label: "height".to_owned(), size: 2 }],
            data_offset: 0,
            data: vec![0.5, 1.5],
        };
        assert_eq!(Float64MultiArray::from_cdr(&bytes), Ok(expected));
        for length in 0..bytes.len() {
            assert!(Float64MultiArray::from_cdr(&bytes[..length]).is_err());
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), count in any::<u32>()) {
            let message = [&[0, 1, 0, 0][..], &count.to_le_bytes(), &bytes].concat();
            let _ = (Float64::from_cdr(&message), Float64MultiArray::from_cdr(&message));
        }
    }
}
