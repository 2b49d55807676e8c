//! Bytes of DRAM as the card has them: pages that are dealt out over its banks.

use crate::backend::blackhole::arena::Arena;
use crate::backend::blackhole::grid::BANKS;
use crate::backend::blackhole::interpreter::{Part, Tiles};
use crate::backend::blackhole::lowered::{DramBuffer, DramTable};
use crate::program::View;

/// Bytes of a page of the arena. Pages that follow one another in a bank lie side by side there.
pub const ARENA_PAGE_BYTES: usize = 16 * 1024;

/// Bytes of a page, and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    pub page_bytes: u32,
    pub pages: u32,
}

/// A page for each tile.
pub fn pages_of_buffer(buffer: &DramBuffer) -> Pages {
    Pages { page_bytes: buffer.format.tile_bytes(), pages: buffer.tiles() }
}

/// A page for each row.
pub fn pages_of_table(table: &DramTable) -> Pages {
    Pages { page_bytes: table.row_bytes, pages: table.rows }
}

/// The tiles of `[rows, columns]` of a buffer; what fills them up is zero.
pub fn tiles(buffer: &DramBuffer, values: &[f32]) -> Vec<u8> {
    let mut image = vec![0; buffer.tiles() as usize * buffer.format.tile_bytes() as usize];
    Tiles::buffer(buffer).store(&mut image, Part::new(buffer.rows, buffer.columns), values);
    image
}

/// The values of a view in the image of its buffer, row by row.
pub fn values(buffer: &DramBuffer, image: &[u8], view: View) -> Vec<f32> {
    let part = Part { row: view.row, rows: view.rows, column: view.col, columns: view.cols };
    Tiles::buffer(buffer).load(image, part)
}

/// Pages of an arena. Page `p` lies in bank `p % 8`, so that every bank has its bytes one after the other.
pub fn pages_of_arena(arena: &Arena) -> Pages {
    let longest = (0..BANKS).map(|bank| arena.bank(bank).len()).max().unwrap_or_default();
    // A card has no buffers of nothing.
    let pages = longest.div_ceil(ARENA_PAGE_BYTES).max(1) * usize::from(BANKS);
    Pages { page_bytes: ARENA_PAGE_BYTES as u32, pages: pages as u32 }
}

/// The bytes of a run of pages of an arena, those of the number `row` in each bank and behind it; what banks do not have is
/// zero.
pub fn arena_pages(arena: &Arena, row: usize, rows: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows * usize::from(BANKS) * ARENA_PAGE_BYTES);
    for row in row..row + rows {
        for bank in 0..BANKS {
            let end = bytes.len() + ARENA_PAGE_BYTES;
            let rest = arena.bank(bank).get(row * ARENA_PAGE_BYTES..).unwrap_or_default();
            bytes.extend_from_slice(&rest[..rest.len().min(ARENA_PAGE_BYTES)]);
            bytes.resize(end, 0);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::lowered::BlockFormat;
    use crate::program::BufferId;

    #[test]
    fn values_come_back_from_tiles() {
        for format in [BlockFormat::Bf16, BlockFormat::F32] {
            let buffer = DramBuffer { name: "x".to_owned(), rows: 51, columns: 70, format };
            let stored: Vec<f32> = (0..51 * 70).map(|value| (value % 251) as f32).collect();
            let image = tiles(&buffer, &stored);
            let pages = pages_of_buffer(&buffer);
            assert_eq!(image.len(), (pages.page_bytes * pages.pages) as usize);
            let view = View { buffer: BufferId(0), row: 31, rows: 3, col: 15, cols: 40 };
            let expected: Vec<f32> =
                (31..34).flat_map(|row| stored[row * 70 + 15..][..40].iter().copied()).collect();
            assert_eq!(values(&buffer, &image, view), expected);
        }
    }
}
