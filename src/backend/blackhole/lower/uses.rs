//! What becomes of every buffer of a stage, which decides where it lives.

use super::LowerError;
use crate::backend::cpu::card::{Storage, storage};
use crate::program::{BufferId, BufferSource, Op, Program, View};

/// Where the values of a buffer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// They stay on the owners of their columns: sums, and what is copied into them.
    Owned,
    /// They are added to a sum right where they are made, on its owner.
    Branch,
    /// Every compute core needs all of them.
    Everywhere,
    /// Every owner needs all of them.
    Owners,
    /// Queries, keys, values of attention: the core of a head needs its columns.
    Queries,
    Keys,
    Values,
    /// They come from another stage, or from the host, through DRAM.
    Outside,
    /// Nobody here reads them.
    Nothing,
}

/// The use of every buffer.
pub struct Uses(Vec<Use>);

impl Uses {
    pub fn of(program: &Program, ops: &[(u32, Op)]) -> Result<Self, LowerError> {
        let storage = storage(program);
        let mut uses = vec![Use::Nothing; program.buffers.len()];
        for (number, spec) in program.buffers.iter().enumerate() {
            let written =
                ops.iter().any(|(_, op)| op.written().is_some_and(|out| out.buffer.0 == number));
            let imported = matches!(spec.source, BufferSource::Import(_));
            if written && storage[number] == Storage::F32 {
                uses[number] = Use::Owned;
            } else if !written && !imported {
                uses[number] = Use::Outside;
            }
        }
        // What is copied to a sum stays with it; what is added to one is made there. Both are known before it is known
        // which products happen on owners only.
        for (_, op) in ops {
            match op {
                Op::Copy { x, .. } => set_unless_outside(&mut uses, x.buffer, Use::Owned),
                Op::Add { x, .. } => set_unless_outside(&mut uses, x.buffer, Use::Branch),
                _ => {}
            }
        }
        let bound =
            |uses: &[Use], out: View| matches!(uses[out.buffer.0], Use::Owned | Use::Branch);
        for (_, op) in ops {
            if let Some((x, out)) = product(op) {
                let found = uses[x.buffer.0];
                let wanted = if bound(&uses, out) { Use::Owners } else { Use::Everywhere };
                if matches!(found, Use::Nothing | Use::Owners) {
                    uses[x.buffer.0] = wanted;
                }
            }
        }
        for (number, op) in ops {
            if let Op::Attention { q, k, v, .. } = op {
                for (view, role) in [(q, Use::Queries), (k, Use::Keys), (v, Use::Values)] {
                    match uses[view.buffer.0] {
                        Use::Nothing => uses[view.buffer.0] = role,
                        Use::Outside if role != Use::Queries => {}
                        found if found == role => {}
                        _ => {
                            return Err(LowerError::Unsupported {
                                op: *number,
                                what: "a matrix with several uses",
                            });
                        }
                    }
                }
            }
        }
        Ok(Self(uses))
    }

    pub fn get(&self, buffer: BufferId) -> Use {
        self.0[buffer.0]
    }

    /// Whether a product with this result happens on the owners of its columns.
    pub fn on_owners(&self, out: View) -> bool {
        matches!(self.get(out.buffer), Use::Owned | Use::Branch)
    }
}

fn set_unless_outside(uses: &mut [Use], buffer: BufferId, value: Use) {
    let found = &mut uses[buffer.0];
    if *found == Use::Nothing {
        *found = value;
    }
}

/// The operand and the result of a product.
pub fn product(op: &Op) -> Option<(View, View)> {
    match *op {
        Op::Linear { x, out, .. } | Op::LinearBuffer { x, out, .. } => Some((x, out)),
        _ => None,
    }
}
