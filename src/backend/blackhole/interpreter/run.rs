//! A run, to the end or to a point before.

use super::Machine;
use super::engine::Halt;
use super::fault::Fault;
use super::place::At;
use super::report::Report;
use super::schedule::{Ready, Schedule};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::Engine;

impl Machine<'_> {
    /// Runs the program to its end. Afterwards its semaphores have to be what they were before.
    ///
    /// # Errors
    /// What goes wrong first. The machine is of no use then.
    pub fn run(&mut self, schedule: &mut Schedule) -> Result<Report, Fault> {
        self.take_turns(schedule, None)?;
        self.check_end()?;
        Ok(self.report())
    }

    /// Runs the program up to a point, from which it can be run on.
    pub fn run_to(&mut self, schedule: &mut Schedule, halt: Halt) -> Result<Report, Fault> {
        self.take_turns(schedule, Some(halt))?;
        Ok(self.report())
    }

    fn take_turns(&mut self, schedule: &mut Schedule, halt: Option<Halt>) -> Result<(), Fault> {
        let engines = Engine::ALL.len();
        self.ready = Ready::new(self.cores.len() * engines);
        // On a thread of the pool, which the kernels need not call for help then each time.
        rayon::scope(|_| -> Result<(), Fault> {
            while let Some((number, budget)) = self.ready.next(schedule) {
                let (core, engine) = (number / engines, Engine::ALL[number % engines]);
                if self.turn(core, engine, budget, halt)? {
                    self.ready.add(number);
                }
            }
            Ok(())
        })?;
        let blocked = self.blocked(halt.is_some());
        if blocked.is_empty() { Ok(()) } else { Err(Fault::Deadlock { blocked }) }
    }

    fn check_end(&self) -> Result<(), Fault> {
        for core in &self.cores {
            let name = core.program.core;
            if let Some(ring) = &core.ring {
                let packets = ring.waiting.len() + usize::from(ring.at_hand.is_some());
                if packets > 0 {
                    return Err(Fault::PacketsLeft { core: name, packets });
                }
            }
            for (semaphore, found) in core.program.semaphores.iter().zip(&core.semaphores) {
                if semaphore.initial != *found {
                    return Err(Fault::UnbalancedSemaphore {
                        core: name,
                        semaphore: semaphore.name.clone(),
                        initial: semaphore.initial,
                        found: *found,
                    });
                }
            }
        }
        Ok(())
    }

    fn report(&self) -> Report {
        let cores = self.cores.iter().map(|core| (core.program.core, core.counters));
        Report { cores: cores.collect() }
    }

    /// Number of a core in the program.
    pub(super) fn core_number(&self, at: At<'_>, core: Core) -> Result<usize, Fault> {
        let number = self.numbers.get(&core).copied();
        number.ok_or_else(|| Fault::NoCore { place: at.place(), core })
    }
}
