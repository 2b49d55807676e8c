//! Why a matrix was not packed or unpacked.

/// Sizes that do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumericsError {
    /// Rows would share elements.
    #[error("rows of {cols} values overlap at a stride of {stride}")]
    Stride { cols: usize, stride: usize },
    /// The values do not reach to the end of the matrix.
    #[error("[{rows}, {cols}] at a stride of {stride} needs {needed} values, found {found}")]
    Values { rows: usize, cols: usize, stride: usize, needed: usize, found: usize },
    /// The packed bytes are not those of whole tiles of this matrix.
    #[error("[{rows}, {cols}] packed as {format} has {expected} bytes, found {found}")]
    PackedBytes { format: &'static str, rows: usize, cols: usize, expected: usize, found: usize },
    /// More bytes than can be addressed.
    #[error("[{rows}, {cols}] is too large")]
    TooLarge { rows: usize, cols: usize },
}
