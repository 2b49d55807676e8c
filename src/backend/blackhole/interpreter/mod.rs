//! Runs the lowered form of a program on the CPU: cores, their memory and semaphores, and the networks are data.
//!
//! A [`Machine`] first checks what can be said of a program without running it. Then its engines take turns as a
//! [`Schedule`] says, each until it has to wait. They meet only at semaphores, as on the card, so that a program that
//! gives other bytes under another schedule has a race.
//!
//! # What counts as written
//! Memory knows of every two bytes whether a value was written there, or zeros that only fill up
//! ([`Instruction::Zero`](super::lowered::Instruction::Zero)), or nothing. Compute instructions read just the valid rows
//! and columns of a block, all of which have to be values. Transfers take along what they find, values or not, so that
//! whole tiles can be moved that are filled in part; a transfer without any value is a fault. Where the matrix engine
//! multiplies more than the valid part, since it takes whole tiles, that has to be filled as well: behind the last column
//! of a product's operand and below the last row of an attention's values with anything, behind the last column of its
//! queries and keys with zeros.
//!
//! # Numbers
//! Compute instructions call the kernels of the CPU backend's card numerics, which gives the same bits as the instruction
//! list wherever the order of a sum is fixed.

mod checks;
mod compute;
mod core;
mod engine;
mod fault;
mod host;
mod memory;
mod packets;
mod place;
mod report;
mod run;
mod schedule;
mod tables;
mod tiles;
mod transfer;

#[cfg(test)]
mod tests;

pub use checks::check;
pub use engine::Halt;
pub use fault::{Blocked, Fault};
pub use place::Place;
pub use report::{Counters, Report};
pub use schedule::Schedule;
pub use tables::Dram;
pub(super) use tiles::{Part, Tiles};

use std::collections::HashMap;

use self::core::CoreState;
use self::engine::EngineState;
use self::schedule::Ready;
use super::arena::Arena;
use super::grid::{BANKS, Core};
use super::lowered::Lowered;
use crate::backend::cpu::card::CardNumerics;

/// The banks of DRAM that weights are read from.
pub trait ArenaBytes: Sync {
    /// `None` where the bank has no such bytes.
    fn bytes(&self, bank: u32, offset: u32, bytes: u32) -> Option<&[u8]>;
}

/// One list of bytes a bank.
impl ArenaBytes for Vec<Vec<u8>> {
    fn bytes(&self, bank: u32, offset: u32, bytes: u32) -> Option<&[u8]> {
        let end = offset.checked_add(bytes)?;
        self.get(bank as usize)?.get(offset as usize..end as usize)
    }
}

impl ArenaBytes for Arena {
    fn bytes(&self, bank: u32, offset: u32, bytes: u32) -> Option<&[u8]> {
        let end = offset.checked_add(bytes)?;
        let bank = u8::try_from(bank).ok().filter(|bank| *bank < BANKS)?;
        self.bank(bank).get(offset as usize..end as usize)
    }
}

/// Sizes of the kernels' binaries on a core, which share their place with its semaphores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// On cores that compute.
    pub compute: u32,
    /// On cores that only move data.
    pub movers: u32,
}

impl Default for Binaries {
    /// What the serving documents say of compute cores; binaries of other cores are taken to be no larger.
    fn default() -> Self {
        Self { compute: 131_700, movers: 131_700 }
    }
}

/// A program with the memory of its cores.
pub struct Machine<'a> {
    program: &'a Lowered,
    banks: &'a dyn ArenaBytes,
    numerics: CardNumerics,
    /// Places of the cores in the program.
    numbers: HashMap<Core, usize>,
    cores: Vec<CoreState<'a>>,
    /// By core and engine.
    engines: Vec<[EngineState; 3]>,
    dram: Dram,
    ready: Ready,
}

impl<'a> Machine<'a> {
    /// # Errors
    /// Whatever is wrong with the program that can be seen before it runs.
    pub fn new(
        program: &'a Lowered,
        banks: &'a dyn ArenaBytes,
        numerics: CardNumerics,
    ) -> Result<Self, Fault> {
        Self::with_binaries(program, banks, numerics, Binaries::default())
    }

    /// As [`Self::new`], with other sizes of binaries.
    pub fn with_binaries(
        program: &'a Lowered,
        banks: &'a dyn ArenaBytes,
        numerics: CardNumerics,
        binaries: Binaries,
    ) -> Result<Self, Fault> {
        let machine = Self::without_dram(program, banks, numerics, binaries)?;
        Ok(Self { dram: Dram::new(program), ..machine })
    }

    fn without_dram(
        program: &'a Lowered,
        banks: &'a dyn ArenaBytes,
        numerics: CardNumerics,
        binaries: Binaries,
    ) -> Result<Self, Fault> {
        checks::check(program, banks, binaries)?;
        Ok(Self {
            program,
            banks,
            numerics,
            numbers: (0..).zip(&program.cores).map(|(number, core)| (core.core, number)).collect(),
            cores: program.cores.iter().map(CoreState::new).collect(),
            engines: program.cores.iter().map(|_| Default::default()).collect(),
            dram: Dram::default(),
            ready: Ready::new(0),
        })
    }
}
