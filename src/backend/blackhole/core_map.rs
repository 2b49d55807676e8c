//! Which core does what in the persistent program.
//!
//! ```text
//!        0  1  2  3  4  5  6  7  8  9 10
//!    0   R  o  o  o  o  o  o  R  h  h  h      R  reads one bank of DRAM
//!    1   R  o  o  o  o  o  o  R  h  h  h      u  hub: gathers what cores made and multicasts it
//!    2   R  o  o  o  o  o  o  R  h  h  h      o  compute; owns columns of the residual
//!    3   R  o  o  o  o  o  o  R  h  h  h      h  compute; owns heads of attention
//!    4   u  o  o  o  o  o  o  u  h  h  h      .  spare
//!    5   u  o  o  o  o  o  o  u  h  h  h
//!    6   .  o  o  o  o  o  o  .  h  h  h
//!    7   h  o  o  o  o  o  o  h  h  h  h
//!    8   h  h  h  h  h  h  h  h  h  h  h
//!    9   h  h  h  h  h  h  h  h  h  h  h
//! ```
//!
//! The banks lie in two columns of the chip, beside these columns of readers. Owners make up one rectangle, so that what
//! only they need takes one multicast, and all compute cores three.

use clap::ValueEnum;
use serde::Serialize;

use super::grid::{BANKS, Core, Noc, Rectangle, rectangles};

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads the bank of this number.
    Reader(u8),
    /// Hub of this number.
    Hub(u8),
    /// Owner of this number.
    Owner(u8),
    /// Head core of this number.
    Head(u8),
    Spare,
}

/// Where the readers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// In two columns, beside the banks.
    #[default]
    TwoColumns,
    /// In the last column: for cards whose harvested columns leave no other place.
    LastColumn,
}

impl Layout {
    pub const ALL: [Self; 2] = [Self::TwoColumns, Self::LastColumn];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoColumns => "two-columns",
            Self::LastColumn => "last-column",
        }
    }

    fn reader(self, bank: u8) -> Core {
        match self {
            Self::TwoColumns => Core::new(bank / 4 * 7, bank % 4),
            Self::LastColumn => Core::new(10, bank),
        }
    }

    fn hub(self, hub: u8) -> Core {
        match self {
            Self::TwoColumns => Core::new(hub / 2 * 7, 4 + hub % 2),
            Self::LastColumn => Core::new(6 + hub, 9),
        }
    }

    fn spares(self) -> [Core; 2] {
        match self {
            Self::TwoColumns => [Core::new(0, 6), Core::new(7, 6)],
            Self::LastColumn => [Core::new(10, 8), Core::new(10, 9)],
        }
    }

    /// Corners of the rectangle of owners.
    fn owners(self) -> (Core, Core) {
        match self {
            Self::TwoColumns => (Core::new(1, 0), Core::new(6, 7)),
            Self::LastColumn => (Core::new(0, 0), Core::new(5, 7)),
        }
    }
}

pub const HUBS: u8 = 4;
pub const OWNERS: usize = 48;
pub const HEADS: usize = 48;

/// The roles of all cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoreMap {
    pub layout: Layout,
    /// By bank.
    pub readers: Vec<Core>,
    pub hubs: Vec<Core>,
    pub owners: Vec<Core>,
    pub heads: Vec<Core>,
    pub spares: Vec<Core>,
}

impl CoreMap {
    pub fn new(layout: Layout) -> Self {
        let readers: Vec<Core> = (0..BANKS).map(|bank| layout.reader(bank)).collect();
        let hubs: Vec<Core> = (0..HUBS).map(|hub| layout.hub(hub)).collect();
        let spares = layout.spares().to_vec();
        let (a, b) = layout.owners();
        let owners: Vec<Core> = Rectangle::on(Noc::Noc0, a, b).cores().collect();
        let taken = |core: &Core| {
            [&readers, &hubs, &spares, &owners].into_iter().any(|list| list.contains(core))
        };
        let heads = Core::all().filter(|core| !taken(core)).collect();
        Self { layout, readers, hubs, owners, heads, spares }
    }

    /// Compute cores: owners, then head cores.
    pub fn compute(&self) -> impl Iterator<Item = Core> {
        self.owners.iter().chain(&self.heads).copied()
    }

    pub fn role(&self, core: Core) -> Role {
        let number = |list: &[Core]| list.iter().position(|at| *at == core).map(|at| at as u8);
        number(&self.readers)
            .map(Role::Reader)
            .or_else(|| number(&self.hubs).map(Role::Hub))
            .or_else(|| number(&self.owners).map(Role::Owner))
            .or_else(|| number(&self.heads).map(Role::Head))
            .unwrap_or(Role::Spare)
    }

    /// The bank whose reader serves a compute core: an equal number of owners and of head cores to each.
    pub fn bank_of(&self, core: Core) -> u8 {
        let at = self.compute().position(|compute| compute == core).unwrap_or(0);
        (at % usize::from(BANKS)) as u8
    }

    /// Multicasts that reach all compute cores and no other.
    pub fn to_compute(&self, noc: Noc) -> Vec<Rectangle> {
        rectangles(noc, |core| matches!(self.role(core), Role::Owner(_) | Role::Head(_)))
    }

    /// Multicasts that reach all owners and no other core.
    pub fn to_owners(&self, noc: Noc) -> Vec<Rectangle> {
        rectangles(noc, |core| matches!(self.role(core), Role::Owner(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_has_one_role() {
        for layout in Layout::ALL {
            let map = CoreMap::new(layout);
            let lists = [&map.readers, &map.hubs, &map.owners, &map.heads, &map.spares];
            assert_eq!(lists.map(Vec::len), [8, 4, OWNERS, HEADS, 2], "{layout:?}");
            let mut all: Vec<Core> = lists.into_iter().flatten().copied().collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 110);
            assert!(all.into_iter().all(Core::is_on_grid));
        }
    }

    #[test]
    fn multicasts_reach_whom_they_are_for() {
        for layout in Layout::ALL {
            let map = CoreMap::new(layout);
            for noc in [Noc::Noc0, Noc::Noc1] {
                assert_eq!(map.to_owners(noc).len(), 1);
                let reached: usize = map.to_compute(noc).iter().map(|r| r.cores().count()).sum();
                assert_eq!(reached, OWNERS + HEADS);
                assert!(map.to_compute(noc).iter().all(|r| r.is_legal_on(noc)));
            }
        }
    }

    #[test]
    fn banks_serve_equally_many_cores() {
        let map = CoreMap::new(Layout::default());
        for list in [&map.owners, &map.heads] {
            for bank in 0..BANKS {
                let served = list.iter().filter(|core| map.bank_of(**core) == bank).count();
                assert_eq!(served, 6);
            }
        }
    }
}
