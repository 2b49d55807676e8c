//! What can be said of a program before it runs.

mod cores;
mod credits;
mod dram;
mod multicast;
mod steps;

use super::fault::Fault;
use super::place::At;
use super::{ArenaBytes, Binaries};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::{CoreProgram, Engine, Instruction, Lowered};

/// All checks, one after the other.
pub fn check(program: &Lowered, banks: &dyn ArenaBytes, binaries: Binaries) -> Result<(), Fault> {
    cores::check(program, binaries)?;
    each(program, |at, core, instruction| {
        steps::check(program, at, core, instruction)?;
        multicast::check(program, at, instruction)?;
        dram::check(program, banks, at, core, instruction)
    })?;
    credits::check(program)
}

/// Calls `work` with every instruction of every stream, in the first pass of its segment.
fn each<'a>(
    program: &'a Lowered,
    mut work: impl FnMut(At<'a>, &'a CoreProgram, &'a Instruction) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for segment in &program.segments {
        for (core, streams) in program.cores.iter().zip(&segment.streams) {
            for engine in Engine::ALL {
                for (number, step) in streams.of(engine).iter().enumerate() {
                    let at = At {
                        core: core.core,
                        engine,
                        segment: &segment.name,
                        pass: segment.first_pass,
                        number,
                        instruction: step.instruction.name(),
                        op: step.op,
                    };
                    work(at, core, &step.instruction)?;
                }
            }
        }
    }
    Ok(())
}

fn find(program: &Lowered, core: Core) -> Option<&CoreProgram> {
    program.cores.iter().find(|program| program.core == core)
}

fn find_at<'a>(program: &'a Lowered, at: At<'_>, core: Core) -> Result<&'a CoreProgram, Fault> {
    find(program, core).ok_or_else(|| Fault::NoCore { place: at.place(), core })
}

fn check_semaphore(at: At<'_>, core: &CoreProgram, semaphore: u32) -> Result<(), Fault> {
    let count = core.semaphores.len();
    if (semaphore as usize) < count {
        return Ok(());
    }
    Err(Fault::NoSemaphore { place: at.place(), core: core.core, semaphore, count })
}
