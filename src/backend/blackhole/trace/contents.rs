//! What the host puts into DRAM: at load what no request changes, then the inputs of each request.

use std::borrow::Cow;

use half::bf16;

use super::memory::{DramMap, Origin};
use super::{TraceError, TracePlan};
use crate::backend::blackhole::arena::weight_values;
use crate::backend::blackhole::lowered::DramTable;
use crate::backend::blackhole::numerics::round_to_bf16;
use crate::checkpoint::Checkpoint;
use crate::encode::ModelInput;
use crate::prepared::Values;
use crate::program::{BufferSource, BufferSpec, IndexSpec, Input, Program};

/// Contents of a buffer or table in DRAM.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents<'a> {
    /// `[rows, columns]` of a buffer.
    Buffer { number: u32, values: Cow<'a, [f32]> },
    /// The rows of a table, each as long as in DRAM.
    Table { number: u32, bytes: Vec<u8> },
}

impl TracePlan<'_> {
    /// What no request changes; see [`at_load`].
    pub fn at_load<'b>(
        &'b self,
        checkpoint: &Checkpoint,
        exports: &'b Values,
    ) -> Result<Vec<Contents<'b>>, TraceError> {
        at_load(self.tables.program, self.dram(), checkpoint, exports)
    }

    /// The inputs of a request; see [`of_request`].
    pub fn of_request<'b>(&self, input: &'b ModelInput) -> Result<Vec<Contents<'b>>, TraceError> {
        of_request(self.tables.program, self.dram(), input)
    }
}

/// Constants of the program, what the prepare program has exported, and weights that are not in the arena.
///
/// # Errors
/// An export is missing or has another size; a weight is not in the checkpoint.
pub fn at_load<'a>(
    program: &'a Program,
    dram: &DramMap,
    checkpoint: &Checkpoint,
    exports: &'a Values,
) -> Result<Vec<Contents<'a>>, TraceError> {
    let mut contents = Vec::new();
    for (number, origin) in (0..).zip(&dram.buffer_origins) {
        let values = match origin {
            Origin::Buffer(buffer) => constant(&program.buffers[buffer.0], exports)?,
            Origin::Weight(weight) => {
                let values = weight_values(checkpoint, &program.weights[weight.0])?;
                Some(Cow::Owned(values.iter().map(|value| value.to_f32()).collect()))
            }
            Origin::Index(_) => None,
        };
        contents.extend(values.map(|values| Contents::Buffer { number, values }));
    }
    for (number, origin) in (0..).zip(&dram.table_origins) {
        let Origin::Weight(weight) = origin else { continue };
        let spec = &program.weights[weight.0];
        let values = weight_values(checkpoint, spec)?;
        let stored = values.chunks_exact(spec.cols).map(|row| row.to_vec());
        let bytes = rows(&dram.tables[number as usize], stored);
        contents.push(Contents::Table { number, bytes });
    }
    Ok(contents)
}

/// Values of a buffer that no request changes; `None` for all others.
fn constant<'a>(
    spec: &'a BufferSpec,
    exports: &'a Values,
) -> Result<Option<Cow<'a, [f32]>>, TraceError> {
    match &spec.source {
        BufferSource::Constant(values) => Ok(Some(Cow::Borrowed(values))),
        BufferSource::Import(name) => {
            let values = exports.get(name);
            check_size(name, spec.rows * spec.cols, values.map_or(0, Vec::len))?;
            Ok(values.map(|values| Cow::Borrowed(values.as_slice())))
        }
        BufferSource::Scratch | BufferSource::Input(_) => Ok(None),
    }
}

/// The inputs of a request, for a program and what stands in DRAM for it.
///
/// # Errors
/// An input does not have the size that the program's layout gives it.
pub fn of_request<'a>(
    program: &Program,
    dram: &DramMap,
    input: &'a ModelInput,
) -> Result<Vec<Contents<'a>>, TraceError> {
    let mut contents = Vec::new();
    for (number, origin) in (0..).zip(&dram.buffer_origins) {
        let Origin::Buffer(buffer) = origin else { continue };
        if let Some(values) = input_values(&program.buffers[buffer.0], input)? {
            contents.push(Contents::Buffer { number, values: Cow::Borrowed(values) });
        }
    }
    for (number, (origin, table)) in (0..).zip(dram.table_origins.iter().zip(&dram.tables)) {
        let bytes = match origin {
            Origin::Buffer(buffer) => {
                let spec = &program.buffers[buffer.0];
                let Some(values) = input_values(spec, input)? else { continue };
                let round = |row: &[f32]| row.iter().map(|value| round_to_bf16(*value)).collect();
                rows(table, values.chunks_exact(spec.cols).map(round))
            }
            Origin::Index(index) => list(table, program.indices[index.0], input)?,
            Origin::Weight(_) => continue,
        };
        contents.push(Contents::Table { number, bytes });
    }
    Ok(contents)
}

/// Values of a buffer that is an input; `None` for all others.
fn input_values<'a>(
    spec: &BufferSpec,
    input: &'a ModelInput,
) -> Result<Option<&'a [f32]>, TraceError> {
    let values = match spec.source {
        BufferSource::Input(Input::Pixels) => &input.pixels,
        BufferSource::Input(Input::State) => &input.state,
        BufferSource::Input(Input::Noise) => &input.noise,
        _ => return Ok(None),
    };
    check_size(&spec.name, spec.rows * spec.cols, values.len())?;
    Ok(Some(values))
}

/// Rows of bf16 as a table has them.
fn rows(table: &DramTable, rows: impl Iterator<Item = Vec<bf16>>) -> Vec<u8> {
    let row_bytes = table.row_bytes as usize;
    let mut bytes = Vec::with_capacity(table.rows as usize * row_bytes);
    for row in rows {
        let end = bytes.len() + row_bytes;
        bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
        bytes.resize(end, 0);
    }
    bytes
}

/// The entries of a list as words.
fn list(table: &DramTable, spec: IndexSpec, input: &ModelInput) -> Result<Vec<u8>, TraceError> {
    let entries: Vec<u32> = input.entries(spec).collect();
    check_size(&table.name, spec.len, entries.len())?;
    let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    bytes.resize(table.row_bytes as usize, 0);
    Ok(bytes)
}

fn check_size(name: &str, expected: usize, found: usize) -> Result<(), TraceError> {
    if expected == found {
        return Ok(());
    }
    Err(TraceError::Contents { name: name.to_owned(), expected, found })
}
