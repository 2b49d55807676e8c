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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{ActionGroupSpec, ActionNormalization, ActionReference};

    #[test]
    fn rows_and_columns_beyond_the_embodiment_are_left_out() {
        let spec = |name: &str, dim: usize| ActionGroupSpec {
            name: name.to_owned(),
            dim,
            normalization: ActionNormalization::MinMax { min: vec![0.0; dim], max: vec![1.0; dim] },
            reference: ActionReference::Absolute,
            pose: None,
        };
        let embodiment = Embodiment {
            tag: String::new(),
            slot: 0,
            cameras: vec![],
            frame_deltas: vec![0],
            state: vec![],
            action: vec![spec("arm", 2), spec("hand", 1)],
            horizon: 2,
            language_key: String::new(),
        };
        // Three rows of four columns, of which two and three count.
        let chunk: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let groups = normalised_groups(&embodiment, &chunk, 4);
        let found: Vec<_> = groups.iter().map(|g| (g.name.as_str(), g.values.clone())).collect();
        assert_eq!(found, [("arm", vec![0.0, 1.0, 4.0, 5.0]), ("hand", vec![2.0, 6.0])]);
        let whole = normalised_chunk(&embodiment, &chunk, 4);
        assert_eq!((whole.dim, whole.values), (3, vec![0.0, 1.0, 2.0, 4.0, 5.0, 6.0]));
    }
}
