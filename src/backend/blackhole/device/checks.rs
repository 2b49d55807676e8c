//! What has to be right with a request before anything of it is written to the card, which checks nothing.

use crate::backend::BackendError;
use crate::encode::ModelInput;
use crate::program::{IndexId, Op, Program};

/// That every token has a row in the table of embeddings that it is looked up in, and every row of a list is in the sequence.
///
/// # Errors
/// The first that has not.
pub fn check_indices(program: &Program, input: &ModelInput) -> Result<(), BackendError> {
    for op in program.stages.iter().flat_map(|stage| &stage.ops) {
        let (index, limit) = match op {
            Op::Embed { table, ids, .. } => (*ids, program.weights[table.0].rows),
            Op::GatherRows { x, rows, .. } => (*rows, x.rows),
            Op::ScatterRows { out, rows, .. } | Op::ScatterAddRows { out, rows, .. } => {
                (*rows, out.rows)
            }
            _ => continue,
        };
        check_list(program, input, index, limit)?;
    }
    Ok(())
}

fn check_list(
    program: &Program,
    input: &ModelInput,
    index: IndexId,
    limit: usize,
) -> Result<(), BackendError> {
    let spec = program.indices[index.0];
    match input.entries(spec).find(|entry| *entry as usize >= limit) {
        Some(value) => Err(BackendError::Index { name: spec.input.name(), value, limit }),
        None => Ok(()),
    }
}
