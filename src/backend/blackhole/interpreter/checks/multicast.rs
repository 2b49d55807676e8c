//! Multicasts: legal rectangles, and nobody in them whom they are not for.

use super::{check_semaphore, find};
use crate::backend::blackhole::grid::{Noc, Rectangle};
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::lowered::{CoreProgram, Instruction, Lowered};

pub fn check(program: &Lowered, at: At<'_>, instruction: &Instruction) -> Result<(), Fault> {
    match *instruction {
        Instruction::SignalAll { rectangle, noc, semaphore, .. } => {
            check_rectangle(at, rectangle, noc)?;
            check_receivers(program, at, rectangle, |core| {
                check_semaphore(at, core, semaphore).ok()?;
                Some(core.semaphores[semaphore as usize].name.as_str())
            })
        }
        Instruction::Multicast { rectangle, noc, target, bytes, .. } => {
            check_rectangle(at, rectangle, noc)?;
            check_receivers(program, at, rectangle, |core| {
                let region = core.map.holding(target, bytes)?;
                (!region.is_of_kernels()).then_some(region.name.as_str())
            })
        }
        _ => Ok(()),
    }
}

fn check_rectangle(at: At<'_>, rectangle: Rectangle, noc: Noc) -> Result<(), Fault> {
    if rectangle.is_legal_on(noc) {
        return Ok(());
    }
    Err(Fault::IllegalRectangle { place: at.place(), rectangle, noc })
}

/// That every core of a rectangle has what arrives there, under the same name, and is not the sender, whom the network
/// leaves out.
fn check_receivers<'a>(
    program: &'a Lowered,
    at: At<'_>,
    rectangle: Rectangle,
    name: impl Fn(&'a CoreProgram) -> Option<&'a str>,
) -> Result<(), Fault> {
    let mut expected: Option<&str> = None;
    for core in rectangle.cores() {
        let fault = |problem: String| {
            Err(Fault::MulticastReceiver { place: at.place(), rectangle, core, problem })
        };
        if core == at.core {
            return fault("it sends it".to_owned());
        }
        let Some(receiver) = find(program, core) else {
            return fault("it is no core of the program".to_owned());
        };
        let Some(found) = name(receiver) else {
            return fault("there is no place for it".to_owned());
        };
        let expected = *expected.get_or_insert(found);
        if found != expected {
            return fault(format!("it would change '{found}' there, and '{expected}' before"));
        }
    }
    Ok(())
}
