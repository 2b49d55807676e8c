//! What is wrong with a lowered program.

use std::fmt;

use super::place::Place;
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::lowered::{LayoutFault, PACKET_BYTES};

/// See the variants. Those of the first half are found before anything runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Layout(#[from] LayoutFault),
    #[error("core {core} is there twice, or is none of the grid")]
    Cores { core: Core },
    #[error("segment '{segment}' has streams for {found} cores, the program has {expected}")]
    SegmentCores { segment: String, expected: usize, found: usize },
    #[error(
        "core {core}: its streams have {bytes} bytes, its region for them {}",
        region.map_or("does not exist".to_owned(), |region| format!("has {region}"))
    )]
    Streams { core: Core, bytes: u32, region: Option<u32> },
    #[error(
        "core {core}: {binaries} bytes of binaries and {semaphores} semaphores of 16 bytes do not fit in the {limit} bytes \
         that the runtime keeps for them"
    )]
    KernelRing { core: Core, binaries: u32, semaphores: usize, limit: u32 },
    #[error("core {core}: its ring of packets {problem}")]
    Ring { core: Core, problem: String },
    #[error("{place}: this engine cannot do that")]
    WrongEngine { place: Box<Place> },
    #[error("{place}: one of its sizes is zero")]
    Nothing { place: Box<Place> },
    #[error(
        "{place}: it needs {needed} bytes of scratch memory, the core's region for it {}",
        region.map_or("does not exist".to_owned(), |region| format!("has {region}"))
    )]
    Scratch { place: Box<Place>, needed: u32, region: Option<u32> },
    #[error("{place}: core {core} is no core of the program")]
    NoCore { place: Box<Place>, core: Core },
    #[error("{place}: core {core} has {count} semaphores and none of number {semaphore}")]
    NoSemaphore { place: Box<Place>, core: Core, semaphore: u32, count: usize },
    #[error(
        "{place}: {rectangle} is no rectangle on {noc:?}, whose packets pass its corners the other way, or lies beyond the grid"
    )]
    IllegalRectangle { place: Box<Place>, rectangle: Rectangle, noc: Noc },
    #[error("{place}: the multicast to {rectangle} is not meant for core {core}: {problem}")]
    MulticastReceiver { place: Box<Place>, rectangle: Rectangle, core: Core, problem: String },
    #[error("{place}: there is no buffer {buffer}, there are {count}")]
    NoBuffer { place: Box<Place>, buffer: u32, count: usize },
    #[error("{place}: buffer '{buffer}' has {tiles} tiles, none of number {tile}")]
    NoTile { place: Box<Place>, buffer: String, tile: u64, tiles: u32 },
    #[error(
        "{place}: {bytes} bytes from {offset} on reach beyond a tile of '{buffer}', which has {tile_bytes}"
    )]
    TilePart { place: Box<Place>, buffer: String, offset: u32, bytes: u32, tile_bytes: u32 },
    #[error("{place}: {bytes} bytes from {offset} on are not in bank {bank} of the arena")]
    OutsideBank { place: Box<Place>, bank: u32, offset: u32, bytes: u32 },
    #[error("{place}: a packet has {bytes} bytes, not 1 to {PACKET_BYTES}")]
    PacketBytes { place: Box<Place>, bytes: u32 },
    #[error("{place}: this core is no reader of a bank")]
    NoReader { place: Box<Place> },
    #[error("{place}: core {core} has no ring of packets")]
    NoRing { place: Box<Place>, core: Core },
    #[error(
        "core {core}: packets come to its ring from {sources:?}; the next slot is known to a single source only"
    )]
    RingSources { core: Core, sources: Vec<Core> },
    #[error(
        "segment '{segment}': reader {reader} streams {streamed} packets to core {consumer} for semaphore {credit}, whose \
         feeder returns {returned}"
    )]
    Credits {
        segment: String,
        reader: Core,
        consumer: Core,
        credit: u32,
        streamed: u64,
        returned: u64,
    },
    #[error("core {core}: its ring has {slots} slots, and there are {credits} credits for them")]
    RingCredits { core: Core, slots: u32, credits: u64 },

    #[error("{place}: there is no table {table}, there are {count}")]
    NoTable { place: Box<Place>, table: u32, count: usize },
    #[error(
        "{place}: {bytes} bytes from {offset} on reach beyond a row of '{table}', which has {row_bytes}"
    )]
    RowPart { place: Box<Place>, table: String, offset: u32, bytes: u32, row_bytes: u32 },
    #[error("{place}: table '{table}' has {rows} rows, none of number {row}")]
    NoRow { place: Box<Place>, table: String, row: u32, rows: u32 },
    #[error("{place}: a word of the list is {word}; there are {limit} rows")]
    ListWord { place: Box<Place>, word: u32, limit: u32 },
    #[error("{place}: columns up to {end} of {columns} are wanted")]
    Strip { place: Box<Place>, end: u64, columns: u32 },
    #[error("{place}: {columns} columns are no whole number of groups of {group}")]
    Groups { place: Box<Place>, columns: u32, group: u32 },
    #[error("{place}: a norm has two vectors, or none where it does not scale")]
    NormVectors { place: Box<Place> },

    #[error("what stands in DRAM is that of a program with other buffers or tables")]
    OtherDram,
    #[error("there is no table {table}, there are {count}")]
    UnknownTable { table: usize, count: usize },
    #[error("table '{table}' has {expected} bytes, not {found}")]
    TableBytes { table: String, expected: usize, found: usize },
    #[error("there is no buffer {buffer}, there are {count}")]
    UnknownBuffer { buffer: usize, count: usize },
    #[error("core {core} is no core of the program")]
    UnknownCore { core: Core },
    #[error("buffer '{buffer}' has {expected} values, not {found}")]
    BufferValues { buffer: String, expected: usize, found: usize },
    #[error("buffer '{buffer}': nobody has written row {row}")]
    BufferUnwritten { buffer: String, row: usize },
    #[error("core {core}: a block of {bytes} bytes at {address} is in no region")]
    NoBlock { core: Core, address: u32, bytes: u64 },
    #[error("core {core}: nobody has written {address} in '{region}'")]
    BlockUnwritten { core: Core, address: usize, region: String },

    #[error("{place}: address {address} is no multiple of {alignment}")]
    Misaligned { place: Box<Place>, address: u64, alignment: u32 },
    #[error("{place}: DRAM is read at {dram} to {l1} in L1; the rests by 64 have to be equal")]
    DramMisaligned { place: Box<Place>, dram: u64, l1: u64 },
    #[error(
        "{place}: {bytes} bytes at {address} of core {core} are in no region that it may use{}",
        near(nearest)
    )]
    OutsideRegion {
        place: Box<Place>,
        core: Core,
        address: u64,
        bytes: u64,
        /// The one that holds the first byte.
        nearest: Option<String>,
    },
    #[error(
        "{place}: rows up to {rows} and columns up to {columns} are not in a block of {row_tiles} rows of tiles"
    )]
    OutsideBlock { place: Box<Place>, rows: u64, columns: u64, row_tiles: u32 },
    #[error(
        "{place}: {rows} rows that follow {before} keys see more than the {keys} keys there are"
    )]
    FewKeys { place: Box<Place>, before: u32, rows: u32, keys: u32 },
    #[error("{place}: nobody has written {address} in '{region}'{}", if *zeroed { ", which was filled with zeros only" } else { "" })]
    ReadBeforeWrite { place: Box<Place>, address: usize, region: String, zeroed: bool },
    #[error(
        "{place}: a whole tile is multiplied, and {address} in '{region}', beyond the last value, is {found}"
    )]
    Padding { place: Box<Place>, address: usize, region: String, found: &'static str },
    #[error(
        "{place}: what was sent before to {address} in '{region}' of core {core} has not been read"
    )]
    Overwritten { place: Box<Place>, core: Core, address: usize, region: String },
    #[error("{place}: an operand in '{region}' was written to meanwhile")]
    ChangedInUse { place: Box<Place>, region: String },
    #[error("{place}: all {slots} slots of core {core} hold packets that are not used up")]
    RingOverrun { place: Box<Place>, core: Core, slots: u32 },
    #[error("{place}: the semaphore for packets was raised, and there is none")]
    NoPacket { place: Box<Place> },
    #[error("{place}: the packet has {bytes} bytes, and the next tile ends at {needed}")]
    ShortPacket { place: Box<Place>, bytes: u32, needed: u32 },
    #[error("{place}: semaphore '{semaphore}' of core {core} is {value} and gets {added} more")]
    SemaphoreOverflow { place: Box<Place>, core: Core, semaphore: String, value: u32, added: u32 },
    #[error("{}", deadlock(blocked))]
    Deadlock { blocked: Vec<Blocked> },
    #[error(
        "core {core}: semaphore '{semaphore}' was {initial} before the program and is {found} after it"
    )]
    UnbalancedSemaphore { core: Core, semaphore: String, initial: u32, found: u32 },
    #[error("core {core}: {packets} packets were not used up at the end")]
    PacketsLeft { core: Core, packets: usize },
}

/// An engine that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub place: Place,
    pub semaphore: String,
    /// What the semaphore has to be.
    pub value: u32,
    /// What it is.
    pub found: u32,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, semaphore, value, found } = self;
        write!(f, "{place} waits for '{semaphore}' to be {value}, it is {found}")
    }
}

/// Engines of a deadlock that its message names.
const SHOWN: usize = 4;

fn deadlock(blocked: &[Blocked]) -> String {
    let mut text = format!("no engine can go on, {} are not done:", blocked.len());
    for engine in blocked.iter().take(SHOWN) {
        text += &format!("\n  {engine}");
    }
    if blocked.len() > SHOWN {
        text += &format!("\n  and {} more", blocked.len() - SHOWN);
    }
    text
}

fn near(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |region| format!("; they begin in '{region}'"))
}
