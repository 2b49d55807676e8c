//! A normalised chunk by action groups.

use crate::contract::{ActionGroup, Embodiment, Representation};

/// The rows and columns of a normalised chunk, `[rows, width]` of the model, that the embodiment has: group by group, as
/// [`crate::decode::decode`] takes them. What the model answers beside them means nothing.
pub fn normalised_groups(embodiment: &Embodiment, chunk: &[f32], width: usize) -> Vec<ActionGroup> {
    let mut first = 0;
    let groups = embodiment.action.iter().map(|spec| {
        let group = columns(&spec.name, embodiment.horizon, chunk, width, first, spec.dim);
        first += spec.dim;
        group
    });
    groups.collect()
}

/// All of them as one.
pub fn normalised_chunk(embodiment: &Embodiment, chunk: &[f32], width: usize) -> ActionGroup {
    let dim = embodiment.action.iter().map(|spec| spec.dim).sum();
    columns("normalised chunk", embodiment.horizon, chunk, width, 0, dim)
}

fn columns(
    name: &str,
    rows: usize,
    chunk: &[f32],
    width: usize,
    first: usize,
    dim: usize,
) -> ActionGroup {
    let rows = chunk.chunks_exact(width.max(1)).take(rows);
    ActionGroup {
        name: name.to_owned(),
        representation: Representation::Absolute,
        dim,
        values: rows.flat_map(|row| &row[first..first + dim]).copied().collect(),
    }
}
