//! Tiles of a buffer, and how they are dealt out over the cores.

use std::ops::Range;

use crate::backend::blackhole::grid::{COLUMNS, ROWS};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::program::View;

/// Cores that the tiles of a result are dealt out over: all there are.
pub const CORES: usize = COLUMNS as usize * ROWS as usize;

/// A rectangle of the values of a DRAM buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Number of the buffer.
    pub buffer: u32,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Area {
    /// A view whose buffer has this number in DRAM.
    pub fn of(buffer: u32, view: View) -> Self {
        let View { row, rows, col: column, cols: columns, .. } = view;
        Self { buffer, row, rows, column, columns }
    }

    /// Rows `first .. first + count` of this area.
    pub fn slice_rows(self, first: usize, count: usize) -> Self {
        Self { row: self.row + first, rows: count, ..self }
    }

    /// Columns `first .. first + count` of this area.
    pub fn slice_columns(self, first: usize, count: usize) -> Self {
        Self { column: self.column + first, columns: count, ..self }
    }

    pub fn is_empty(self) -> bool {
        self.rows == 0 || self.columns == 0
    }

    /// Where its first row and column stand in their tile.
    pub fn in_tile(self) -> (usize, usize) {
        (self.row % SIDE, self.column % SIDE)
    }
}

/// A rectangle of the tiles of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRange {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// The numbers of the tiles that hold these rows or columns.
fn tiles_of(first: usize, count: usize) -> Range<usize> {
    first / SIDE..(first + count).div_ceil(SIDE)
}

impl TileRange {
    /// All tiles that hold a value of an area.
    pub fn covering(area: Area) -> Self {
        let (rows, columns) = (tiles_of(area.row, area.rows), tiles_of(area.column, area.columns));
        Self { row: rows.start, rows: rows.len(), column: columns.start, columns: columns.len() }
    }

    pub fn count(self) -> usize {
        self.rows * self.columns
    }

    pub fn row_range(self) -> Range<usize> {
        self.row..self.row + self.rows
    }

    pub fn column_range(self) -> Range<usize> {
        self.column..self.column + self.columns
    }

    /// One after the other, row by row.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let tile = move |row, column| Self { row, rows: 1, column, columns: 1 };
        self.row_range()
            .flat_map(move |row| self.column_range().map(move |column| tile(row, column)))
    }

    /// Those of some rows of tiles.
    pub fn of_rows(self, rows: Range<usize>) -> Self {
        Self { row: rows.start, rows: rows.len(), ..self }
    }

    /// Those of some columns of tiles.
    pub fn of_columns(self, columns: Range<usize>) -> Self {
        Self { column: columns.start, columns: columns.len(), ..self }
    }

    /// What of an area lies in these tiles; it is empty if nothing does.
    pub fn part_of(self, area: Area) -> Area {
        let rows = clip(area.row, area.rows, self.row, self.rows);
        let columns = clip(area.column, area.columns, self.column, self.columns);
        Area {
            row: rows.start,
            rows: rows.len(),
            column: columns.start,
            columns: columns.len(),
            ..area
        }
    }

    /// Whether some tile is in both.
    pub fn meets(self, other: Self) -> bool {
        let meet = |a: Range<usize>, b: Range<usize>| a.start < b.end && b.start < a.end;
        meet(self.row_range(), other.row_range()) && meet(self.column_range(), other.column_range())
    }
}

fn clip(first: usize, count: usize, tile: usize, tiles: usize) -> Range<usize> {
    let start = first.max(tile * SIDE);
    start..(first + count).min((tile + tiles) * SIDE).max(start)
}

/// `range` in pieces of at most `most`, all but the last of them equally long.
pub fn pieces(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(most).map(move |start| start..(start + most).min(end))
}

/// Part `number` of `parts` about equal ones of `range`.
fn share(range: &Range<usize>, number: usize, parts: usize) -> Range<usize> {
    let at = |number: usize| range.start + range.len() * number / parts;
    at(number)..at(number + 1)
}

/// Tiles one below the other, dealt out evenly: for every core pieces of one column each, of at most `most` tiles.
pub fn by_columns(tiles: TileRange, most: usize) -> Vec<Vec<TileRange>> {
    let of_core = |core: usize| {
        let mut mine = Vec::new();
        // Counted down one column after the other.
        let mut next = share(&(0..tiles.count()), core, CORES);
        while !next.is_empty() {
            let (column, first) = (next.start / tiles.rows, next.start % tiles.rows);
            let count = next.len().min(tiles.rows - first).min(most);
            let rows = tiles.row + first..tiles.row + first + count;
            mine.push(
                tiles.of_rows(rows).of_columns(tiles.column + column..tiles.column + column + 1),
            );
            next.start += count;
        }
        mine
    };
    (0..CORES).map(of_core).collect()
}

/// Rows of tiles, each cut into so many strips that every core gets one where there are enough columns; of at most `most`
/// columns each. `cells` are columns of tiles that a strip may not reach beyond.
pub fn by_rows(tiles: TileRange, cells: &[Range<usize>], most: usize) -> Vec<Vec<TileRange>> {
    let strips_each = CORES / (tiles.rows * cells.len()).max(1);
    let mut units = Vec::new();
    for row in tiles.row_range() {
        for cell in cells {
            let strips = strips_each.clamp(1, cell.len()).max(cell.len().div_ceil(most));
            let unit = |number| tiles.of_rows(row..row + 1).of_columns(share(cell, number, strips));
            units.extend((0..strips).map(unit));
        }
    }
    deal(units)
}

/// One unit after the other to the cores in turn.
pub fn deal<T>(units: Vec<T>) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..CORES).map(|_| Vec::new()).collect();
    for (number, unit) in units.into_iter().enumerate() {
        dealt[number % CORES].push(unit);
    }
    dealt
}

/// Heads whose columns begin and end where tiles do, taken together: `heads` of `width` columns each, from column `first` of
/// a buffer on. Before the first head and behind the last one anything may begin and end.
pub fn head_groups(first: usize, heads: usize, width: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    for end in 1..=heads {
        if end == heads || (first + end * width).is_multiple_of(SIDE) {
            groups.push(start..end);
            start = end;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(row: usize, rows: usize, column: usize, columns: usize) -> Area {
        Area { buffer: 0, row, rows, column, columns }
    }

    /// How often each tile is dealt out.
    fn times(tiles: TileRange, dealt: &[Vec<TileRange>]) -> Vec<usize> {
        let mut times = vec![0; tiles.count()];
        for unit in dealt.iter().flatten() {
            for row in unit.row_range() {
                for column in unit.column_range() {
                    times[(row - tiles.row) * tiles.columns + column - tiles.column] += 1;
                }
            }
        }
        times
    }

    #[test]
    fn areas_have_the_tiles_that_hold_their_values() {
        let all = area(31, 2, 64, 40);
        let found = TileRange::covering(all);
        assert_eq!(found, TileRange { row: 0, rows: 2, column: 2, columns: 2 });
        let lower = found.of_rows(1..2).of_columns(3..4);
        assert_eq!(lower.part_of(all), area(32, 1, 96, 8));
        assert!(lower.part_of(area(0, 5, 64, 40)).is_empty());
        assert!(found.meets(lower) && !lower.meets(found.of_columns(2..3)));
        assert_eq!(all.slice_rows(1, 1).slice_columns(8, 4), area(32, 1, 72, 4));
        assert_eq!(all.in_tile(), (31, 0));
    }

    #[test]
    fn every_tile_goes_to_one_core() {
        for (rows, columns) in [(1, 1), (2, 48), (16, 64), (56, 32), (14, 128), (300, 3)] {
            let tiles = TileRange { row: 1, rows, column: 2, columns };
            for dealt in [by_columns(tiles, 32), by_rows(tiles, &[tiles.column_range()], 16)] {
                assert_eq!(dealt.len(), CORES);
                assert!(times(tiles, &dealt).iter().all(|times| *times == 1), "{tiles:?}");
                let loads =
                    dealt.iter().map(|units| units.iter().map(|t| t.count()).sum::<usize>());
                assert!(loads.max().unwrap_or(0) <= 32 * tiles.count().div_ceil(CORES));
            }
            let columns = by_columns(tiles, 32);
            assert!(columns.iter().flatten().all(|unit| unit.columns == 1 && unit.rows <= 32));
            let most =
                columns.iter().map(|units| units.iter().map(|t| t.rows).sum::<usize>()).max();
            assert_eq!(most, Some(tiles.count().div_ceil(CORES)));
        }
    }

    #[test]
    fn heads_that_share_a_tile_stay_together() {
        assert_eq!(head_groups(0, 4, 72), vec![0..4]);
        assert_eq!(head_groups(0, 8, 72), vec![0..4, 4..8]);
        assert_eq!(head_groups(0, 3, 64), vec![0..1, 1..2, 2..3]);
        // The first tile of these is not theirs alone.
        assert_eq!(head_groups(48, 3, 16), vec![0..1, 1..3]);
    }
}
