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

/// Exchanges rows and columns; gives whichever of the two arrays holds the result, row after row.
///
/// Shuffling two halves together moves the highest bit of every place to its end. Five times put the row behind the column;
/// each time is a loop that becomes vector code, which a loop over single values does not.
#[inline(always)]
pub(super) fn transpose<'a, T: Copy>(
    tile: &'a mut [TileRow<T>; SIDE],
    spare: &'a mut [TileRow<T>; SIDE],
) -> &'a [T] {
    let (mut from, mut to) = (tile.as_flattened_mut(), spare.as_flattened_mut());
    for _ in 0..SIDE.ilog2() {
        shuffle(from, to);
        std::mem::swap(&mut from, &mut to);
    }
    from
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
        let mut tile: [TileRow<(usize, usize)>; SIDE] =
            std::array::from_fn(|row| std::array::from_fn(|column| (row, column)));
        let mut spare = tile;
        let turned = transpose(&mut tile, &mut spare);
        for (place, value) in turned.iter().enumerate() {
            assert_eq!(*value, (place % SIDE, place / SIDE));
        }
    }
}
