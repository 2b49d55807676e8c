//! Attention and rotary positions: a core has the heads that share tiles, and some of their rows.

use std::ops::Range;

use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::blackhole::trace::core::Block;
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{
    Area, CORES, TileRange, deal, head_groups, pieces,
};
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::program::{AttentionShape, View};

/// Rows of tiles that a core works on at a time.
const MOST_ROWS: usize = 8;

/// Heads, and the tiles of the result that hold some of their rows.
type Unit = (Range<usize>, TileRange);

/// Every group of heads in so many pieces that all cores have one, if there are enough rows.
fn units(out: Area, heads: usize, width: usize) -> Vec<Vec<Unit>> {
    let tiles = TileRange::covering(out);
    let groups = head_groups(out.column, heads, width);
    let pieces_each = (CORES / groups.len()).clamp(1, tiles.rows);
    let most = tiles.rows.div_ceil(pieces_each).min(MOST_ROWS);
    let mut units = Vec::new();
    for group in groups {
        let columns = (out.column + group.start * width) / SIDE
            ..(out.column + group.end * width).div_ceil(SIDE);
        let pieces = pieces(tiles.row_range(), most);
        units.extend(
            pieces.map(|rows| (group.clone(), tiles.of_rows(rows).of_columns(columns.clone()))),
        );
    }
    deal(units)
}

/// The largest numbers of rows and columns of tiles.
fn largest(units: &[Vec<Unit>]) -> (usize, usize) {
    let tiles = || units.iter().flatten().map(|(_, tiles)| tiles);
    let (rows, columns) = (tiles().map(|t| t.rows).max(), tiles().map(|t| t.columns).max());
    (rows.unwrap_or(0), columns.unwrap_or(0))
}

pub fn rope(
    program: &mut ProgramWriter<'_>,
    x: View,
    cos: View,
    sin: View,
) -> Result<(), TraceError> {
    let half = cos.cols;
    let (x, cos, sin) = (program.area(x)?, program.area(cos)?, program.area(sin)?);
    program.check_bf16(cos)?;
    program.check_bf16(sin)?;
    let units = units(x, x.columns / (2 * half), 2 * half);
    let (rows, columns) = largest(&units);
    let tables = ["cos", "sin"]
        .map(|name| program.block(name, BlockFormat::Bf16, rows, half.div_ceil(SIDE)));
    let staging = (rows as u32 + 1) * BlockFormat::F32.tile_bytes();
    let staging = program.region("staging", staging);
    let block = program.block("x", program.format(x), rows, columns);
    for (core, units) in units.into_iter().enumerate() {
        for (heads, tiles) in units {
            let block = block.of_tiles(tiles.rows, tiles.columns);
            let mine = x.slice_columns(heads.start * 2 * half, heads.len() * 2 * half);
            let part = tiles.part_of(mine);
            let (first_row, column) = part.in_tile();
            for (area, table) in [cos, sin].into_iter().zip(tables) {
                let rows = area.slice_rows(part.row - x.row, part.rows);
                let table = table.of_tiles(tiles.rows, table.column_tiles);
                program.load(core, rows, table, (first_row, 0), false, staging);
            }
            program.begin_out(core, x, tiles, block, true);
            program.core(core).compute(Instruction::Rope {
                x: block.address,
                format: block.format,
                row_tiles: tiles.rows as u32,
                first_row: first_row as u32,
                rows: part.rows as u32,
                column: column as u32,
                columns: part.columns as u32,
                half: half as u32,
                cos: tables[0].address,
                sin: tables[1].address,
            });
            program.store(core, x, tiles, block);
        }
    }
    Ok(())
}

/// What is attended to, and where it stands on every core.
struct Attention {
    q: Area,
    k: Area,
    v: Area,
    shape: AttentionShape,
    out: Area,
    blocks: Blocks,
}

struct Blocks {
    q: Block,
    k: Block,
    v: Block,
    context: Block,
    out: Block,
    staging: u32,
}

pub fn attention(
    program: &mut ProgramWriter<'_>,
    [q, k, v]: [View; 3],
    shape: AttentionShape,
    out: View,
) -> Result<(), TraceError> {
    let (q, k, v) = (program.area(q)?, program.area(k)?, program.area(v)?);
    let out = program.area(out)?;
    let units = units(out, shape.heads, shape.head_dim);
    let (rows, columns) = largest(&units);
    let bf16 = BlockFormat::Bf16;
    let (across, key_tiles) =
        (shape.head_dim.div_ceil(SIDE), (k.rows / shape.sequences).div_ceil(SIDE));
    let staging = [q, k, v].map(|area| program.staging_bytes(area)).into_iter().max();
    let blocks = Blocks {
        staging: program.region("staging", staging.unwrap_or(0)),
        q: program.block("q", bf16, rows, across),
        k: program.block("k", bf16, key_tiles, across),
        v: program.block("v", bf16, key_tiles, across),
        context: program.block("context", bf16, rows, across),
        out: program.block("out", program.format(out), rows, columns),
    };
    let attention = Attention { q, k, v, shape, out, blocks };
    for (core, units) in units.into_iter().enumerate() {
        for (heads, tiles) in units {
            attention.unit(program, core, heads, tiles);
        }
    }
    Ok(())
}

impl Attention {
    fn unit(
        &self,
        program: &mut ProgramWriter<'_>,
        core: usize,
        heads: Range<usize>,
        tiles: TileRange,
    ) {
        let out = self.blocks.out.of_tiles(tiles.rows, tiles.columns);
        program.begin_out(core, self.out, tiles, out, false);
        let (sequences, dim) = (self.shape.sequences, self.shape.head_dim);
        let queries = self.q.rows / sequences;
        for sequence in 0..sequences {
            let rows = tiles.part_of(self.out.slice_rows(sequence * queries, queries));
            if rows.rows == 0 {
                continue;
            }
            // Number of the first query in its sequence.
            let first = rows.row - self.out.row - sequence * queries;
            let mut at_hand = None;
            for head in heads.clone() {
                let keys = head / (self.shape.heads / self.shape.kv_heads);
                if at_hand.replace(keys) != Some(keys) {
                    self.load_keys(program, core, sequence, keys);
                }
                let q = self.q.slice_rows(sequence * queries + first, rows.rows);
                self.head(program, core, q.slice_columns(head * dim, dim), first);
                let target = self.out.slice_columns(head * dim, dim);
                let context = self.blocks.context;
                program.core(core).compute(Instruction::CopyBlock {
                    x: context.address,
                    x_format: context.format,
                    x_row_tiles: context.row_tiles as u32,
                    x_row: 0,
                    x_column: 0,
                    out: out.address,
                    out_format: out.format,
                    out_row_tiles: out.row_tiles as u32,
                    out_row: (rows.row - tiles.row * SIDE) as u32,
                    out_column: (target.column - tiles.column * SIDE) as u32,
                    rows: rows.rows as u32,
                    columns: dim as u32,
                });
            }
        }
        program.store(core, self.out, tiles, out);
    }

    fn load_keys(
        &self,
        program: &mut ProgramWriter<'_>,
        core: usize,
        sequence: usize,
        head: usize,
    ) {
        let (dim, keys) = (self.shape.head_dim, self.k.rows / self.shape.sequences);
        for (area, block) in [(self.k, self.blocks.k), (self.v, self.blocks.v)] {
            let area = area.slice_rows(sequence * keys, keys).slice_columns(head * dim, dim);
            program.load(core, area, block, (0, 0), true, self.blocks.staging);
        }
    }

    /// The context of some queries of one head, the first of which has this number in its sequence.
    fn head(&self, program: &mut ProgramWriter<'_>, core: usize, q: Area, first: usize) {
        let Blocks { q: block, k, v, context, staging, .. } = self.blocks;
        program.load(core, q, block, (0, 0), true, staging);
        let [queries, keys] = [self.q, self.k].map(|area| area.rows / self.shape.sequences);
        program.core(core).compute(Instruction::Attention {
            q: block.address,
            k: k.address,
            v: v.address,
            row_tiles: block.row_tiles as u32,
            rows: q.rows as u32,
            key_tiles: k.row_tiles as u32,
            keys: keys as u32,
            head_dim: self.shape.head_dim as u32,
            scale: self.shape.scale,
            before: self.shape.causal.then(|| (keys - queries + first) as u32),
            out: context.address,
        });
    }
}
