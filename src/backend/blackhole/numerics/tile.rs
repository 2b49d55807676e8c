//! Where the values of a tile lie: in four faces of 16 x 16, each row by row.
//!
//! ```text
//!             columns 0..16   columns 16..32
//! rows  0..16    face 0           face 1
//! rows 16..32    face 2           face 3
//! ```

/// Rows and columns of a tile.
pub const SIDE: usize = 32;
/// Rows and columns of a face.
pub const FACE: usize = 16;
/// Values of a tile.
pub const VALUES: usize = SIDE * SIDE;

/// A row of a tile.
pub(super) type TileRow<T> = [T; SIDE];
/// A row of a face: the values that share an exponent.
pub(super) type FaceRow<T> = [T; FACE];

/// Number of the row of a face that holds the columns from `FACE * side` on of a tile's row.
pub(super) const fn face_row(row: usize, side: usize) -> usize {
    (row / FACE * 2 + side) * FACE + row % FACE
}

/// Place of a value among the values of its tile.
pub const fn place(row: usize, column: usize) -> usize {
    face_row(row, column / FACE) * FACE + column % FACE
}

/// Exchanges rows and columns of a tile whose rows lie one after the other.
///
/// Shuffling two halves together moves the highest bit of every place to its end. Five times swap row and column; each time
/// is a loop that becomes vector code, which a loop over single values does not.
#[inline(always)]
pub(super) fn transpose<T: Copy>(tile: &mut [TileRow<T>; SIDE], spare: &mut [TileRow<T>; SIDE]) {
    const {
        assert!(SIDE == 1 << 5);
    }
    for _ in 0..5 {
        shuffle(tile.as_flattened(), spare.as_flattened_mut());
        std::mem::swap(tile, spare);
    }
}

#[inline(always)]
fn shuffle<T: Copy>(from: &[T], to: &mut [T]) {
    let (first, second) = from.split_at(from.len() / 2);
    for ((pair, first), second) in to.chunks_exact_mut(2).zip(first).zip(second) {
        pair[0] = *first;
        pair[1] = *second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_face_by_face() {
        assert_eq!(place(0, 0), 0);
        assert_eq!(place(0, 15), 15);
        assert_eq!(place(1, 0), 16);
        assert_eq!(place(0, 16), 256);
        assert_eq!(place(16, 0), 512);
        assert_eq!(place(31, 31), 1023);
        let mut places: Vec<usize> = (0..VALUES).map(|i| place(i / SIDE, i % SIDE)).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..VALUES));
    }

    #[test]
    fn transposing_swaps_rows_and_columns() {
        let mut tile = std::array::from_fn(|row| std::array::from_fn(|column| (row, column)));
        let mut spare = tile;
        transpose(&mut tile, &mut spare);
        for (row, values) in tile.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                assert_eq!(*value, (column, row));
            }
        }
    }
}
