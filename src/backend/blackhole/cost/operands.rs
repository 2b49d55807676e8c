//! What an operation reads.

use crate::program::{Op, View};

/// Views that an operation reads, those of its modulation and bias and the one that it changes in place included.
pub fn reads(op: &Op) -> Vec<View> {
    let mut views = op.reads();
    // Scattered rows replace others, which nobody looks at.
    if op.keeps_old_values() && !matches!(op, Op::ScatterRows { .. }) {
        views.extend(op.written());
    }
    views
}
