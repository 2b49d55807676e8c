//! What the host puts into DRAM: at load what no request changes, then the inputs of each request.

use std::borrow::Cow;

use half::bf16;

use super::memory::Origin;
use super::{TraceError, TracePlan};
use crate::backend::blackhole::arena::{ArenaError, weight_values};
use crate::backend::blackhole::numerics::round_to_bf16;
use crate::checkpoint::Checkpoint;
use crate::encode::ModelInput;
use crate::prepared::Values;
use crate::program::{BufferId, BufferSource, IndexId, IndexInput, Input, WeightId};

/// Contents of a buffer or table in DRAM.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents<'a> {
    /// `[rows, columns]` of a buffer.
    Buffer { number: u32, values: Cow<'a, [f32]> },
    /// The rows of a table, each as long as in DRAM.
    Table { number: u32, bytes: Vec<u8> },
}

impl TracePlan<'_> {
    /// Constants of the program, what the prepare program has exported, and weights that are not in the arena.
    ///
    /// # Errors
    /// An export is missing or has another size; a weight is not in the checkpoint.
    pub fn at_load<'b>(
        &'b self,
        checkpoint: &Checkpoint,
        exports: &'b Values,
    ) -> Result<Vec<Contents<'b>>, TraceError> {
        let mut contents = Vec::new();
        for (number, origin) in (0..).zip(&self.dram().buffer_origins) {
            let values = match origin {
                Origin::Buffer(buffer) => self.constant(*buffer, exports)?,
                Origin::Weight(weight) => Some(Cow::Owned(self.weight(checkpoint, *weight)?)),
                Origin::Index(_) => None,
            };
            contents.extend(values.map(|values| Contents::Buffer { number, values }));
        }
        for (number, origin) in (0..).zip(&self.dram().table_origins) {
            let Origin::Weight(weight) = origin else { continue };
            let spec = &self.tables.program.weights[weight.0];
            let values = weight_values(checkpoint, spec).map_err(TraceError::Arena)?;
            let rows = values.chunks_exact(spec.cols).map(|row| row.to_vec());
            contents.push(Contents::Table { number, bytes: self.rows(number, rows) });
        }
        Ok(contents)
    }

    /// The inputs of a request.
    ///
    /// # Errors
    /// An input does not have the size that the program's layout gives it.
    pub fn of_request(&self, input: &ModelInput) -> Result<Vec<Contents<'_>>, TraceError> {
        let mut contents = Vec::new();
        for (number, origin) in (0..).zip(&self.dram().buffer_origins) {
            let Origin::Buffer(buffer) = origin else { continue };
            if let Some(values) = self.input(*buffer, input)? {
                contents.push(Contents::Buffer { number, values: Cow::Owned(values.to_vec()) });
            }
        }
        for (number, origin) in (0..).zip(&self.dram().table_origins) {
            let bytes = match origin {
                Origin::Buffer(buffer) => {
                    let Some(values) = self.input(*buffer, input)? else { continue };
                    let columns = self.tables.program.buffers[buffer.0].cols;
                    let round =
                        |row: &[f32]| row.iter().map(|value| round_to_bf16(*value)).collect();
                    self.rows(number, values.chunks_exact(columns).map(round))
                }
                Origin::Index(index) => self.list(number, *index, input)?,
                Origin::Weight(_) => continue,
            };
            contents.push(Contents::Table { number, bytes });
        }
        Ok(contents)
    }

    /// Values of a buffer that no request changes; `None` for all others.
    fn constant<'b>(
        &'b self,
        buffer: BufferId,
        exports: &'b Values,
    ) -> Result<Option<Cow<'b, [f32]>>, TraceError> {
        let spec = &self.tables.program.buffers[buffer.0];
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

    /// Values of a buffer that is an input.
    fn input<'b>(
        &self,
        buffer: BufferId,
        input: &'b ModelInput,
    ) -> Result<Option<&'b [f32]>, TraceError> {
        let spec = &self.tables.program.buffers[buffer.0];
        let values = match spec.source {
            BufferSource::Input(Input::Pixels) => &input.pixels,
            BufferSource::Input(Input::State) => &input.state,
            BufferSource::Input(Input::Noise) => &input.noise,
            _ => return Ok(None),
        };
        check_size(&spec.name, spec.rows * spec.cols, values.len())?;
        Ok(Some(values))
    }

    fn weight(&self, checkpoint: &Checkpoint, weight: WeightId) -> Result<Vec<f32>, ArenaError> {
        let values = weight_values(checkpoint, &self.tables.program.weights[weight.0])?;
        Ok(values.iter().map(|value| value.to_f32()).collect())
    }

    /// Rows of bf16 as a table has them.
    fn rows(&self, table: u32, rows: impl Iterator<Item = Vec<bf16>>) -> Vec<u8> {
        let row_bytes = self.dram().tables[table as usize].row_bytes as usize;
        let mut bytes = Vec::new();
        for row in rows {
            let end = bytes.len() + row_bytes;
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
            bytes.resize(end, 0);
        }
        bytes
    }

    /// The entries of a list as words.
    fn list(&self, table: u32, index: IndexId, input: &ModelInput) -> Result<Vec<u8>, TraceError> {
        let spec = self.tables.program.indices[index.0];
        let entries: Vec<u32> = match spec.input {
            IndexInput::TokenIds => input.token_ids.clone(),
            IndexInput::ImageRows => input.image_rows().collect(),
            IndexInput::TextRows => input.text_rows().collect(),
        };
        let entries: Vec<u32> = entries.into_iter().skip(spec.first).take(spec.len).collect();
        check_size(&self.dram().tables[table as usize].name, spec.len, entries.len())?;
        let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        bytes.resize(self.dram().tables[table as usize].row_bytes as usize, 0);
        Ok(bytes)
    }
}

fn check_size(name: &str, expected: usize, found: usize) -> Result<(), TraceError> {
    if expected == found {
        return Ok(());
    }
    Err(TraceError::Contents { name: name.to_owned(), expected, found })
}
