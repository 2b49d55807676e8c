//! Places on the card: cores, rectangles of them, and the two networks between them.

use std::fmt;

use serde::Serialize;

/// Columns and rows of Tensix cores that a p150 as shipped leaves to programs.
pub const COLUMNS: u8 = 11;
pub const ROWS: u8 = 10;

/// Banks of DRAM.
pub const BANKS: u8 = 8;

/// L1 of a core that programs may allocate, with the larger ring below.
pub const L1_BYTES: u32 = 1_395_712;
/// What the runtime keeps for binaries, arguments and semaphores of the programs in flight: the device is opened with
/// 64 KiB less L1, which go here.
pub const KERNEL_RING_BYTES: u32 = 136_192;

/// Transfers over the networks begin at multiples of this in L1.
pub const L1_ALIGNMENT: u32 = 16;
/// Addresses in DRAM and in L1 have the same rest by this when DRAM is read.
pub const DRAM_READ_ALIGNMENT: u32 = 64;

/// A core, by column and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Core {
    pub x: u8,
    pub y: u8,
}

impl Core {
    pub const fn new(x: u8, y: u8) -> Self {
        Self { x, y }
    }

    /// Every core of the grid, row by row.
    pub fn all() -> impl Iterator<Item = Core> {
        (0..ROWS).flat_map(|y| (0..COLUMNS).map(move |x| Core { x, y }))
    }

    pub fn is_on_grid(self) -> bool {
        self.x < COLUMNS && self.y < ROWS
    }
}

impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.x, self.y)
    }
}

/// One of the two networks. Packets on the first one go right and down, on the second one left and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Noc {
    Noc0,
    Noc1,
}

/// The cores that a multicast reaches, by the corners in the order in which its network passes them: on NoC 0 the upper
/// left one is `start`, on NoC 1 the lower right one. The other order is an illegal transfer on silicon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Rectangle {
    pub start: Core,
    pub end: Core,
}

impl Rectangle {
    /// The rectangle with these corners as `noc` wants it.
    pub fn on(noc: Noc, a: Core, b: Core) -> Self {
        let upper_left = Core { x: a.x.min(b.x), y: a.y.min(b.y) };
        let lower_right = Core { x: a.x.max(b.x), y: a.y.max(b.y) };
        match noc {
            Noc::Noc0 => Self { start: upper_left, end: lower_right },
            Noc::Noc1 => Self { start: lower_right, end: upper_left },
        }
    }

    /// Whether the corners stand in the order of `noc`, on the grid.
    pub fn is_legal_on(self, noc: Noc) -> bool {
        self == Self::on(noc, self.start, self.end)
            && self.start.is_on_grid()
            && self.end.is_on_grid()
    }

    pub fn contains(self, core: Core) -> bool {
        let Self { start, end } = Self::on(Noc::Noc0, self.start, self.end);
        (start.x..=end.x).contains(&core.x) && (start.y..=end.y).contains(&core.y)
    }

    /// Its cores, row by row.
    pub fn cores(self) -> impl Iterator<Item = Core> {
        let Self { start, end } = Self::on(Noc::Noc0, self.start, self.end);
        (start.y..=end.y).flat_map(move |y| (start.x..=end.x).map(move |x| Core { x, y }))
    }
}

impl fmt::Display for Rectangle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.start, self.end)
    }
}

/// The fewest rectangles, found row by row, that hold just these cores: runs of equal columns in neighbouring rows.
pub fn rectangles(noc: Noc, cores: impl Fn(Core) -> bool) -> Vec<Rectangle> {
    let mut done: Vec<Rectangle> = Vec::new();
    for y in 0..ROWS {
        let mut x = 0;
        while x < COLUMNS {
            if !cores(Core { x, y }) {
                x += 1;
                continue;
            }
            let first = x;
            while x < COLUMNS && cores(Core { x, y }) {
                x += 1;
            }
            let last = x - 1;
            let above = done.iter_mut().find(|above| {
                above.start.x == first && above.end.x == last && above.end.y + 1 == y
            });
            match above {
                Some(above) => above.end.y = y,
                None => {
                    let row = (Core { x: first, y }, Core { x: last, y });
                    done.push(Rectangle { start: row.0, end: row.1 });
                }
            }
        }
    }
    done.into_iter().map(|found| Rectangle::on(noc, found.start, found.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stand_in_the_order_of_the_network() {
        let (a, b) = (Core::new(7, 2), Core::new(3, 5));
        let first = Rectangle::on(Noc::Noc0, a, b);
        assert_eq!((first.start, first.end), (Core::new(3, 2), Core::new(7, 5)));
        let second = Rectangle::on(Noc::Noc1, a, b);
        assert_eq!((second.start, second.end), (first.end, first.start));
        assert!(first.is_legal_on(Noc::Noc0) && !first.is_legal_on(Noc::Noc1));
        assert!(second.is_legal_on(Noc::Noc1) && !second.is_legal_on(Noc::Noc0));
        assert!(first.cores().eq(second.cores()));
        let beyond = Rectangle { start: a, end: Core::new(COLUMNS, 9) };
        assert!(!beyond.is_legal_on(Noc::Noc0));
    }

    #[test]
    fn rectangles_hold_just_the_cores() {
        let ragged = |core: Core| !core.x.is_multiple_of(7) || core.y >= 6;
        for noc in [Noc::Noc0, Noc::Noc1] {
            let found = rectangles(noc, ragged);
            assert!(found.iter().all(|rectangle| rectangle.is_legal_on(noc)));
            for core in Core::all() {
                let times = found.iter().filter(|rectangle| rectangle.contains(core)).count();
                assert_eq!(times, usize::from(ragged(core)), "{core}");
            }
        }
    }
}
