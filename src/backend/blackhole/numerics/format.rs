//! Formats of a tile and their sizes.

use super::error::NumericsError;
use super::tile::{SIDE, VALUES};

/// Exponents at the start of a tile in block floating point: one for each row of each face.
pub(super) const EXPONENT_BYTES: usize = 64;

/// How a tile is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileFormat {
    Bf16,
    Bfp8B,
    Bfp4B,
}

impl TileFormat {
    pub const ALL: [Self; 3] = [Self::Bf16, Self::Bfp8B, Self::Bfp4B];

    /// As tables and messages have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Bfp8B => "bfp8_b",
            Self::Bfp4B => "bfp4_b",
        }
    }

    pub const fn tile_bytes(self) -> usize {
        match self {
            Self::Bf16 => 2 * VALUES,
            Self::Bfp8B => EXPONENT_BYTES + VALUES,
            Self::Bfp4B => EXPONENT_BYTES + VALUES / 2,
        }
    }

    /// Bytes of a packed matrix, with what fills its last tiles.
    pub fn matrix_bytes(self, rows: usize, cols: usize) -> Result<usize, NumericsError> {
        (rows.div_ceil(SIDE).checked_mul(cols.div_ceil(SIDE)))
            .and_then(|tiles| tiles.checked_mul(self.tile_bytes()))
            .ok_or(NumericsError::TooLarge { rows, cols })
    }

    /// That `found` is [`Self::matrix_bytes`].
    pub(super) fn check_bytes(
        self,
        rows: usize,
        cols: usize,
        found: usize,
    ) -> Result<(), NumericsError> {
        let expected = self.matrix_bytes(rows, cols)?;
        if found == expected {
            return Ok(());
        }
        Err(NumericsError::PackedBytes { format: self.name(), rows, cols, expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_whole_tiles() {
        let bytes = |rows, cols| TileFormat::ALL.map(|format| format.matrix_bytes(rows, cols).ok());
        assert_eq!(bytes(1, 1), [Some(2048), Some(1088), Some(576)]);
        assert_eq!(bytes(33, 64), [Some(4 * 2048), Some(4 * 1088), Some(4 * 576)]);
        assert_eq!(bytes(0, 5), [Some(0); 3]);
        assert_eq!(bytes(usize::MAX, usize::MAX), [None; 3]);
    }
}
