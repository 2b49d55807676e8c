//! A program with its buffers: allocation, inputs, stages.

use super::card::{Storage, round};
use super::interpreter::Interpreter;
use super::memory::Memory;
use super::numerics::Numerics;
use super::weights::Weights;
use crate::backend::BackendError;
use crate::backend::leading::LeadingTokens;
use crate::contract::{CancelToken, TapSink};
use crate::encode::ModelInput;
use crate::program::{BufferId, BufferSource, Input, Op, Program, Stage, StageKind, View};

/// What prepare programs export, by name.
pub type Constants = crate::prepared::Values;

/// A program, and the memory that it works on.
pub struct Executable {
    program: Program,
    numerics: Numerics,
    storage: Vec<Storage>,
    memory: Memory,
    indices: Vec<Vec<u32>>,
    /// Of the request that is bound.
    token_ids: Vec<u32>,
    leading: LeadingTokens,
}

impl Executable {
    /// Allocates every buffer; nothing is allocated when the program runs.
    pub fn new(
        program: Program,
        constants: &Constants,
        numerics: Numerics,
    ) -> Result<Self, BackendError> {
        let mut buffers = Vec::with_capacity(program.buffers.len());
        for spec in &program.buffers {
            let len = spec.rows * spec.cols;
            let values = match &spec.source {
                BufferSource::Scratch | BufferSource::Input(_) => vec![0.0; len],
                BufferSource::Constant(values) => values.clone(),
                BufferSource::Import(name) => match constants.get(name) {
                    Some(values) if values.len() == len => values.clone(),
                    other => {
                        return Err(BackendError::Import {
                            name: name.clone(),
                            expected: len,
                            found: other.map(Vec::len),
                        });
                    }
                },
            };
            buffers.push((values, spec.cols));
        }
        let indices = program.indices.iter().map(|spec| vec![0; spec.len]).collect();
        let leading = LeadingTokens::new(program.stages.len());
        let storage = numerics.storage(&program);
        let mut memory = Memory::new(buffers.into_iter());
        for number in 0..program.buffers.len() {
            store(program.view(BufferId(number)), &storage, &mut memory);
        }
        Ok(Self { program, numerics, storage, memory, indices, token_ids: Vec::new(), leading })
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn stages(&self) -> usize {
        self.program.stages.len()
    }

    /// The contents of an exported buffer; empty if the program exports no such name.
    pub fn export(&self, name: &str) -> &[f32] {
        let exports = &self.program.exports;
        exports
            .iter()
            .find(|(export, _)| export == name)
            .map_or(&[], |(_, buffer)| self.memory.whole(*buffer))
    }

    /// All exported buffers by name.
    pub fn into_exports(mut self) -> Constants {
        let exports = std::mem::take(&mut self.program.exports);
        exports.into_iter().map(|(name, buffer)| (name, self.memory.take(buffer))).collect()
    }

    /// Copies a request's inputs to where the instructions look for them.
    pub fn bind(&mut self, input: &ModelInput) -> Result<(), BackendError> {
        for (number, spec) in self.program.buffers.iter().enumerate() {
            let BufferSource::Input(kind) = spec.source else { continue };
            let buffer = self.memory.whole_mut(BufferId(number));
            let (name, values) = match kind {
                Input::Pixels => ("pixels", &input.pixels),
                Input::State => ("state", &input.state),
                Input::Noise => ("noise", &input.noise),
            };
            if values.len() != buffer.len() {
                return Err(BackendError::InputLength {
                    name,
                    expected: buffer.len(),
                    found: values.len(),
                });
            }
            buffer.copy_from_slice(values);
            store(self.program.view(BufferId(number)), &self.storage, &mut self.memory);
        }
        for (spec, list) in self.program.indices.iter().zip(&mut self.indices) {
            let name = spec.input.name();
            let found = fill(list, input.entries(*spec));
            if found != spec.len {
                return Err(BackendError::InputLength { name, expected: spec.len, found });
            }
        }
        self.token_ids.clone_from(&input.token_ids);
        Ok(())
    }

    pub fn stage_kind(&self, stage: usize) -> StageKind {
        self.program.stages[stage].kind
    }

    /// Runs every stage of a program that has no inputs.
    pub fn run_all(
        &mut self,
        weights: &Weights,
        threads: &rayon::ThreadPool,
        mut taps: Option<&mut dyn TapSink>,
    ) -> Result<(), BackendError> {
        let never = CancelToken::default();
        for stage in 0..self.stages() {
            self.run_stage(stage, weights, threads, &never, &mut taps)?;
        }
        Ok(())
    }

    /// Runs one stage; a cancelled one ends after the instruction at hand.
    pub fn run_stage(
        &mut self,
        stage: usize,
        weights: &Weights,
        threads: &rayon::ThreadPool,
        cancel: &CancelToken,
        taps: &mut Option<&mut dyn TapSink>,
    ) -> Result<(), BackendError> {
        let Self { program, numerics, storage, memory, indices, token_ids, leading } = self;
        let content = &program.stages[stage];
        if !leading.begin(stage, content, token_ids) {
            return Ok(());
        }
        let Stage { kind, ops, .. } = content;
        let specs = &program.weights;
        let interpreter = Interpreter { numerics: *numerics, specs, weights, indices };
        // The whole stage runs inside the pool, so that its threads are not put to sleep and woken for every instruction.
        let run = || {
            for op in ops {
                if cancel.is_cancelled() {
                    return Err(BackendError::Cancelled { stage: *kind });
                }
                match (op, taps.as_deref_mut()) {
                    (Op::Tap { x, name }, Some(sink)) => {
                        let view = memory.read(*x);
                        let values = (0..x.rows).flat_map(|row| view.row(row)).copied();
                        sink.tap(name, x.rows, x.cols, &values.collect::<Vec<f32>>());
                    }
                    (Op::Tap { .. }, None) => {}
                    (op, _) => {
                        interpreter.execute(op, memory)?;
                        op.written().into_iter().for_each(|out| store(out, storage, memory));
                    }
                }
            }
            Ok(())
        };
        threads.install(run)?;
        leading.finish(stage, content, token_ids);
        Ok(())
    }
}

/// Gives what was written to a view the precision of its buffer.
fn store(view: View, storage: &[Storage], memory: &mut Memory) {
    if storage[view.buffer.0] == Storage::Bf16 {
        memory.write(view, |_, values| round(values));
    }
}

/// Fills `list` as far as it goes; returns how many values there were.
fn fill(list: &mut [u32], values: impl Iterator<Item = u32>) -> usize {
    let mut count = 0;
    for value in values {
        if let Some(entry) = list.get_mut(count) {
            *entry = value;
        }
        count += 1;
    }
    count
}
