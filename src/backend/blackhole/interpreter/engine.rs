//! Engines and their way through their streams.

use super::Machine;
use super::compute::product::Product;
use super::fault::{Blocked, Fault};
use super::place::At;
use crate::backend::blackhole::lowered::{Engine, Instruction, Lowered, Step};

/// Where an engine is.
#[derive(Default)]
pub struct EngineState {
    pub segment: usize,
    /// Passes of the segment that are done.
    pub pass: u32,
    /// Number of the instruction that comes next.
    pub number: usize,
    /// What is done of that one.
    pub begun: Begun,
    pub waits_for: Option<Need>,
}

/// An instruction that had to wait in its midst.
#[derive(Default)]
pub enum Begun {
    #[default]
    Nothing,
    /// Times that are done.
    Times(u32),
    Product(Box<Product>),
}

/// What an engine waits for: a semaphore of its own core.
#[derive(Clone, Copy)]
pub struct Need {
    pub semaphore: u32,
    pub value: u32,
}

/// How far an engine has come with an instruction.
pub enum Progress {
    Finished,
    /// Not finished, but further than before.
    Further(Begun),
    /// Not further than before, which is given back.
    Blocked(Need, Begun),
}

/// A point in the program up to which it can run: every engine stops before the first instruction that belongs to this op
/// or a later one, in this pass or a later one. Ops have to ascend along every stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Halt {
    /// Number of the segment.
    pub segment: usize,
    /// Passes of it that are done before.
    pub pass: u32,
    pub op: u32,
}

impl EngineState {
    /// The instruction that comes next, if there is any; passes and segments that are done are left behind.
    pub fn current<'a>(
        &mut self,
        program: &'a Lowered,
        core: usize,
        engine: Engine,
    ) -> Option<&'a Step> {
        loop {
            let segment = program.segments.get(self.segment)?;
            let stream = segment.streams[core].of(engine);
            if self.pass < segment.passes && self.number < stream.len() {
                return Some(&stream[self.number]);
            }
            self.number = 0;
            self.pass += 1;
            // A segment in which the engine does nothing needs no passes.
            if self.pass >= segment.passes || stream.is_empty() {
                (self.segment, self.pass) = (self.segment + 1, 0);
            }
        }
    }

    fn is_at(&self, halt: Halt, op: u32) -> bool {
        let here = (self.segment, self.pass);
        here > (halt.segment, halt.pass) || here == (halt.segment, halt.pass) && op >= halt.op
    }
}

impl<'a> Machine<'a> {
    /// Lets an engine run for so many instructions, or as far as it gets. Whether it could go on.
    pub(super) fn turn(
        &mut self,
        core: usize,
        engine: Engine,
        budget: u32,
        halt: Option<Halt>,
    ) -> Result<bool, Fault> {
        for _ in 0..budget {
            let program = self.program;
            let state = &mut self.engines[core][engine as usize];
            state.waits_for = None;
            let Some(step) = state.current(program, core, engine) else { return Ok(false) };
            if halt.is_some_and(|halt| state.is_at(halt, step.op)) {
                return Ok(false);
            }
            let begun = std::mem::take(&mut state.begun);
            let at = self.at(core, engine, step);
            let progress = self.execute(at, core, &step.instruction, begun)?;
            let counters = &mut self.cores[core].counters;
            let state = &mut self.engines[core][engine as usize];
            match progress {
                Progress::Finished => {
                    counters.instructions[engine as usize] += 1;
                    state.number += 1;
                }
                Progress::Further(begun) => state.begun = begun,
                Progress::Blocked(need, begun) => {
                    counters.waits[engine as usize] += 1;
                    state.begun = begun;
                    state.waits_for = Some(need);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn at(&self, core: usize, engine: Engine, step: &Step) -> At<'a> {
        let state = &self.engines[core][engine as usize];
        let segment = &self.program.segments[state.segment];
        At {
            core: self.program.cores[core].core,
            engine,
            segment: &segment.name,
            pass: segment.first_pass + state.pass,
            number: state.number,
            instruction: step.instruction.name(),
            op: step.op,
        }
    }

    fn execute(
        &mut self,
        at: At<'_>,
        core: usize,
        instruction: &Instruction,
        begun: Begun,
    ) -> Result<Progress, Fault> {
        match *instruction {
            Instruction::Wait { semaphore, value } => {
                Ok(match self.lower(core, semaphore, value) {
                    Some(need) => Progress::Blocked(need, begun),
                    None => Progress::Finished,
                })
            }
            Instruction::Signal { core: target, semaphore, value } => {
                let target = self.core_number(at, target)?;
                self.raise(at, target, semaphore, value)?;
                Ok(Progress::Finished)
            }
            Instruction::SignalAll { rectangle, semaphore, value, .. } => {
                for target in rectangle.cores() {
                    let target = self.core_number(at, target)?;
                    self.raise(at, target, semaphore, value)?;
                }
                Ok(Progress::Finished)
            }
            Instruction::ReadTiles { .. }
            | Instruction::WriteTiles { .. }
            | Instruction::ReadArena { .. }
            | Instruction::Send { .. }
            | Instruction::Multicast { .. }
            | Instruction::Zero { .. } => {
                self.transfer(at, core, instruction)?;
                Ok(Progress::Finished)
            }
            Instruction::ReadRows { .. } => {
                self.read_rows(at, core, instruction)?;
                Ok(Progress::Finished)
            }
            Instruction::StreamPacket { .. }
            | Instruction::ReturnCredits { .. }
            | Instruction::LoadPacket { .. } => self.packets(at, core, instruction, begun),
            Instruction::Matmul { .. } => self.matmul(at, core, instruction, begun),
            Instruction::EndStream {} => {
                self.release_packet(at, core)?;
                Ok(Progress::Finished)
            }
            _ => {
                let numerics = &self.numerics;
                super::compute::run(&mut self.cores[core], at, instruction, numerics)?;
                Ok(Progress::Finished)
            }
        }
    }

    /// Subtracts from a semaphore, or says what is needed for that.
    pub(super) fn lower(&mut self, core: usize, semaphore: u32, value: u32) -> Option<Need> {
        let counter = &mut self.cores[core].semaphores[semaphore as usize];
        match counter.checked_sub(value) {
            Some(less) => {
                *counter = less;
                None
            }
            None => Some(Need { semaphore, value }),
        }
    }

    /// Adds to a semaphore, and lets the engines of its core look again.
    pub(super) fn raise(
        &mut self,
        at: At<'_>,
        core: usize,
        semaphore: u32,
        added: u32,
    ) -> Result<(), Fault> {
        let state = &mut self.cores[core];
        let value = state.semaphores[semaphore as usize];
        let Some(more) = value.checked_add(added) else {
            let semaphore = state.program.semaphores[semaphore as usize].name.clone();
            let (place, core) = (at.place(), state.program.core);
            return Err(Fault::SemaphoreOverflow { place, core, semaphore, value, added });
        };
        state.semaphores[semaphore as usize] = more;
        for engine in Engine::ALL {
            if self.engines[core][engine as usize].waits_for.is_some() {
                self.ready.add(core * Engine::ALL.len() + engine as usize);
            }
        }
        Ok(())
    }

    /// The engines that wait, in the order of cores. Those that return credits may wait in a program that `halts`: one
    /// instruction returns the credits of many ops.
    pub(super) fn blocked(&self, halts: bool) -> Vec<Blocked> {
        let mut blocked = Vec::new();
        for (core, engines) in self.engines.iter().enumerate() {
            for (engine, state) in Engine::ALL.into_iter().zip(engines) {
                let Some(Need { semaphore, value }) = state.waits_for else { continue };
                let segment = &self.program.segments[state.segment];
                let step = &segment.streams[core].of(engine)[state.number];
                if halts && matches!(step.instruction, Instruction::ReturnCredits { .. }) {
                    continue;
                }
                let place = *self.at(core, engine, step).place();
                let found = self.cores[core].semaphores[semaphore as usize];
                let semaphore =
                    self.program.cores[core].semaphores[semaphore as usize].name.clone();
                blocked.push(Blocked { place, semaphore, value, found });
            }
        }
        blocked
    }
}
