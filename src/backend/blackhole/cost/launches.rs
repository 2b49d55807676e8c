//! Which operations of a traced stage run as one program.
//!
//! Biases and activations are part of their product. Besides, a program takes up
//! * products of the same rows (queries, keys and values; gate and up),
//! * what works value by value on what the program has just written (residuals, the gated product),
//! * rotary positions behind the norm of the same heads.

use super::operands::reads;
use crate::program::{BufferId, Op, View};

/// The program that is being filled.
#[derive(Default)]
pub struct Launch {
    /// Set while there is nothing in it but products of these rows.
    factor: Option<View>,
    /// Set while each core has whole heads.
    by_heads: bool,
    written: Vec<BufferId>,
}

impl Launch {
    /// Adds an operation: one that [joins](Self::joins), or the first.
    pub fn add(&mut self, op: &Op) {
        self.factor = match op {
            Op::Linear { x, .. } | Op::LinearBuffer { x, .. } => Some(*x),
            _ => None,
        };
        self.by_heads = matches!(op, Op::RmsNorm { .. } | Op::Rope { .. });
        self.written.extend(op.written().map(|view| view.buffer));
    }

    /// Whether an operation can be part of this program; none can of an empty one.
    pub fn joins(&self, op: &Op) -> bool {
        match op {
            Op::Linear { x, .. } | Op::LinearBuffer { x, .. } => self.factor == Some(*x),
            Op::Rope { x, .. } => self.by_heads && self.has_written(*x),
            Op::Add { .. }
            | Op::AddWeight { .. }
            | Op::AddScaled { .. }
            | Op::Map { .. }
            | Op::SiluMul { .. } => reads(op).into_iter().any(|view| self.has_written(view)),
            _ => false,
        }
    }

    /// Whether this program has written the view, so that it lies where it is needed.
    pub fn has_written(&self, view: View) -> bool {
        self.written.contains(&view.buffer)
    }
}
