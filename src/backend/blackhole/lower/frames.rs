//! Row numbers that all buffers of a stage agree on.
//!
//! The action tokens stand behind other rows of the transformer's sequence. If their encoder worked on rows from 0 on, its
//! result would have to move by a row or two on the way, which tiles are bad at. So everything that becomes these rows,
//! or is made from them, uses their numbers from the start.

use super::LowerError;
use crate::program::{BufferId, Op, Program, View};

/// Per buffer: the common number of its row 0.
pub struct Frames(Vec<usize>);

impl Frames {
    pub fn of<'a>(
        program: &Program,
        ops: impl Iterator<Item = &'a (u32, Op)>,
    ) -> Result<Self, LowerError> {
        let pairs: Vec<(u32, View, View)> =
            ops.filter_map(|(number, op)| row_pair(op).map(|(x, out)| (*number, x, out))).collect();
        let mut first: Vec<Option<isize>> = vec![None; program.buffers.len()];
        // The longest buffer is the sequence itself: no other begins before it.
        let buffers = pairs.iter().flat_map(|(_, x, out)| [x.buffer, out.buffer]);
        if let Some(longest) = buffers.max_by_key(|buffer| program.buffers[buffer.0].rows) {
            first[longest.0] = Some(0);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (_, x, out) in &pairs {
                for (from, to) in [(x, out), (out, x)] {
                    let Some(known) = first[from.buffer.0] else { continue };
                    if first[to.buffer.0].is_none() {
                        first[to.buffer.0] = Some(known + from.row as isize - to.row as isize);
                        changed = true;
                    }
                }
            }
        }
        let frames: Vec<usize> = first
            .into_iter()
            .map(|row| usize::try_from(row.unwrap_or(0)).ok())
            .collect::<Option<_>>()
            .ok_or(LowerError::Rows { op: 0 })?;
        let frames = Self(frames);
        match pairs.iter().find(|(_, x, out)| frames.first_row(*x) != frames.first_row(*out)) {
            Some((op, ..)) => Err(LowerError::Rows { op: *op }),
            None => Ok(frames),
        }
    }

    /// The common number of the first row of a view.
    pub fn first_row(&self, view: View) -> u32 {
        (self.0[view.buffer.0] + view.row) as u32
    }

    /// The common number of the row behind the last one of a view.
    pub fn end_row(&self, view: View) -> u32 {
        self.first_row(view) + view.rows as u32
    }

    pub fn of_buffer(&self, buffer: BufferId) -> u32 {
        self.0[buffer.0] as u32
    }
}

/// Two operands of which one becomes the other row by row.
fn row_pair(op: &Op) -> Option<(View, View)> {
    match *op {
        Op::Linear { x, out, .. }
        | Op::LinearBuffer { x, out, .. }
        | Op::LayerNorm { x, out, .. }
        | Op::Copy { x, out }
        | Op::Add { x, out }
        | Op::AddScaled { x, out, .. }
        | Op::Attention { q: x, out, .. } => Some((x, out)),
        _ => None,
    }
}
