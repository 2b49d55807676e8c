//! Which values lie in DRAM.
//!
//! Within a stage, values stay in the cores' memory, which holds all buffers of every stage of the served layouts, even if
//! none takes the place of another. What the host gives, what is known when the program is built, and what one stage hands to another lies in DRAM, since a
//! stage may take all of that memory for itself.

use std::collections::{HashMap, HashSet};

use super::operands::reads;
use crate::program::{BufferId, BufferSource, Program, View};

/// Where an operation stands: its stage, and its number in it.
pub type Position = (usize, usize);

/// Views of a buffer, and the operations that read or write them.
type Uses = HashMap<BufferId, Vec<(Position, View)>>;

/// See the module.
pub struct Placement {
    /// Filled before the first stage.
    given: HashSet<BufferId>,
    reads: Uses,
    writes: Uses,
}

impl Placement {
    pub fn new(program: &Program) -> Self {
        let is_given =
            |buffer: &BufferId| !matches!(program.buffers[buffer.0].source, BufferSource::Scratch);
        let given = (0..program.buffers.len()).map(BufferId).filter(is_given).collect();
        let (mut all_reads, mut all_writes) = (Uses::new(), Uses::new());
        for (stage, ops) in program.stages.iter().map(|stage| &stage.ops).enumerate() {
            for (number, op) in ops.iter().enumerate() {
                let position = (stage, number);
                for view in reads(op) {
                    all_reads.entry(view.buffer).or_default().push((position, view));
                }
                if let Some(view) = op.written() {
                    all_writes.entry(view.buffer).or_default().push((position, view));
                }
            }
        }
        Self { given, reads: all_reads, writes: all_writes }
    }

    /// Whether a view that the operation at `position` reads comes from DRAM: it is given, or another stage has written
    /// some of it and this one has not written all of it since.
    pub fn is_read_from_dram(&self, position: Position, view: View) -> bool {
        if self.given.contains(&view.buffer) {
            return true;
        }
        let earlier = |(other, _): &(Position, View)| *other < position;
        let writes = || uses_of(&self.writes, view).filter(|use_| earlier(use_));
        let (stage, _) = position;
        let renewed = writes().any(|((own, _), of)| *own == stage && covers(*of, view));
        !renewed && writes().any(|((other, _), of)| *other != stage && overlap(*of, view))
    }

    /// Whether a view that the operation at `position` writes goes to DRAM: another stage reads some of it, and this one
    /// does not write all of it again.
    pub fn is_written_to_dram(&self, position: Position, view: View) -> bool {
        let later = |(other, _): &(Position, View)| *other > position;
        let (stage, _) = position;
        let mut writes = uses_of(&self.writes, view).filter(|use_| later(use_));
        let mut reads = uses_of(&self.reads, view).filter(|use_| later(use_));
        !writes.any(|((own, _), of)| *own == stage && covers(*of, view))
            && reads.any(|((other, _), of)| *other != stage && overlap(*of, view))
    }
}

fn uses_of(uses: &Uses, view: View) -> impl Iterator<Item = &(Position, View)> {
    uses.get(&view.buffer).into_iter().flatten()
}

fn overlap(a: View, b: View) -> bool {
    let rows = a.row < b.row + b.rows && b.row < a.row + a.rows;
    let cols = a.col < b.col + b.cols && b.col < a.col + a.cols;
    rows && cols
}

/// Whether `a` holds all of `b`.
fn covers(a: View, b: View) -> bool {
    let rows = a.row <= b.row && b.row + b.rows <= a.row + a.rows;
    let cols = a.col <= b.col && b.col + b.cols <= a.col + a.cols;
    rows && cols
}
