//! The program of an instruction as the device worker builds it: three kernels, their streams and their arguments.
//!
//! `kernels/arguments.h` says which word of the arguments means what, `kernels/semaphores.h` how semaphores lie in L1.

use std::collections::{BTreeSet, HashSet};

use tt_metal_sys::protocol::{
    Compute, Kernel, MathFidelity as Fidelity, Processor, Program, Rectangle, RuntimeArgs,
    Semaphore,
};

use super::assets::Assets;
use super::image::Pages;
use crate::backend::blackhole::grid::{BANKS, COLUMNS, Core, Noc, ROWS, rectangles};
use crate::backend::blackhole::lowered::{Engine, Instruction, Lowered, SCRATCH, STREAMS, Segment};
use crate::backend::blackhole::numerics::MathFidelity;

/// Semaphores of every core; the kernels keep the last one for themselves.
const SEMAPHORES: u32 = 16;
/// Streams begin at multiples of this.
const ALIGNMENT: u32 = 64;

/// Where things lie on the card, for all programs.
pub struct Places {
    /// Address 0 of the streams, in L1.
    pub l1: u32,
    pub arena: u32,
    /// Address in each bank, and bytes of a page.
    pub buffers: Vec<(u32, u32)>,
    pub tables: Vec<(u32, u32)>,
    /// Coordinates of the grid's columns and rows on the network.
    pub columns: [u8; COLUMNS as usize],
    pub rows: [u8; ROWS as usize],
}

/// The streams of a program as pages, one for each of its cores.
pub struct StreamPages {
    pub pages: Pages,
    pub bytes: Vec<u8>,
}

/// Streams of the cores; in each, segment by segment, those of mover, feeder and compute.
pub fn streams(lowered: &Lowered) -> StreamPages {
    let streams: Vec<Vec<u8>> =
        (0..lowered.cores.len()).map(|core| core_streams(&lowered.segments, core)).collect();
    let longest = streams.iter().map(Vec::len).max().unwrap_or_default().max(1);
    let page_bytes = longest.next_multiple_of(ALIGNMENT as usize);
    let mut bytes = Vec::with_capacity(page_bytes * streams.len());
    for (number, stream) in streams.iter().enumerate() {
        bytes.extend_from_slice(stream);
        bytes.resize((number + 1) * page_bytes, 0);
    }
    let pages = Pages { page_bytes: page_bytes as u32, pages: streams.len() as u32 };
    StreamPages { pages, bytes }
}

fn core_streams(segments: &[Segment], core: usize) -> Vec<u8> {
    let steps = segments.iter().flat_map(|segment| segment.streams[core].0.iter().flatten());
    let words = steps.flat_map(|step| step.instruction.encode(step.op));
    words.flat_map(u32::to_le_bytes).collect()
}

/// The program, whose streams lie at `streams` in the banks.
pub fn build(
    name: &str,
    lowered: &Lowered,
    places: &Places,
    (streams, pages): (u32, Pages),
    fidelity: MathFidelity,
    assets: &Assets,
) -> Program {
    let cores = rectangles_of(lowered);
    let common = common_arguments(lowered, places);
    let own: Vec<RuntimeArgs> = (0..lowered.cores.len())
        .map(|number| RuntimeArgs {
            core: place(lowered.cores[number].core),
            args: own_arguments(lowered, number, streams, pages),
        })
        .collect();
    let kernel = |file: &str, processor, compute| Kernel {
        source: assets.kernel(file),
        processor,
        cores: cores.clone(),
        compile_time_args: Vec::new(),
        defines: Vec::new(),
        include_dirs: Vec::new(),
        common_runtime_args: common.clone(),
        runtime_args: own.clone(),
        compute,
    };
    let compute = Compute {
        math_fidelity: match fidelity {
            MathFidelity::LoFi => Fidelity::LoFi,
            MathFidelity::HiFi2 => Fidelity::HiFi2,
            MathFidelity::HiFi4 => Fidelity::HiFi4,
        },
        fp32_dest: true,
        dst_full_sync: true,
        math_approx: false,
        unpack_to_dest_fp32: Vec::new(),
    };
    Program {
        name: name.to_owned(),
        kernels: vec![
            kernel("mover.cpp", Processor::Brisc, None),
            kernel("feeder.cpp", Processor::Ncrisc, None),
            kernel("compute.cpp", Processor::Trisc, Some(compute)),
        ],
        circular_buffers: Vec::new(),
        semaphores: semaphores(lowered, &cores),
    }
}

/// Cores of a program all begin with the same values.
fn semaphores(lowered: &Lowered, cores: &[Rectangle]) -> Vec<Semaphore> {
    let named = lowered.cores.first().map(|core| core.semaphores.as_slice()).unwrap_or_default();
    let initial = |id: u32| named.get(id as usize).map_or(0, |semaphore| semaphore.initial);
    let of = |id| Semaphore { id, cores: cores.to_vec(), initial: initial(id) };
    (0..SEMAPHORES).map(of).collect()
}

fn place(core: Core) -> [u32; 2] {
    [core.x.into(), core.y.into()]
}

/// The cores of a program.
fn rectangles_of(lowered: &Lowered) -> Vec<Rectangle> {
    let used: HashSet<Core> = lowered.cores.iter().map(|core| core.core).collect();
    let found = rectangles(Noc::Noc0, |core| used.contains(&core));
    found.into_iter().map(|of| Rectangle { start: place(of.start), end: place(of.end) }).collect()
}

/// The head, then number, address and bytes of a page for each buffer and table that the program touches.
fn common_arguments(lowered: &Lowered, places: &Places) -> Vec<u32> {
    let (buffers, tables) = touched(lowered);
    let mut words = vec![places.l1, places.arena, buffers.len() as u32, tables.len() as u32];
    words.extend(packed(&places.columns));
    words.extend(packed(&places.rows));
    for (numbers, of) in [(buffers, &places.buffers), (tables, &places.tables)] {
        for number in numbers {
            let (address, page_bytes) = of[number as usize];
            words.extend([number, address, page_bytes]);
        }
    }
    words
}

/// Four coordinates a word, three words.
fn packed(coordinates: &[u8]) -> [u32; 3] {
    let mut bytes = [0; 12];
    bytes[..coordinates.len()].copy_from_slice(coordinates);
    let word = |number: usize| {
        let of = &bytes[4 * number..];
        u32::from_le_bytes([of[0], of[1], of[2], of[3]])
    };
    [word(0), word(1), word(2)]
}

/// Numbers of the buffers and of the tables that instructions name.
fn touched(lowered: &Lowered) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut buffers, mut tables) = (BTreeSet::new(), BTreeSet::new());
    let streams = lowered.segments.iter().flat_map(|segment| &segment.streams);
    for step in streams.flat_map(|streams| streams.0.iter().flatten()) {
        match step.instruction {
            Instruction::ReadTiles { buffer, .. } | Instruction::WriteTiles { buffer, .. } => {
                buffers.insert(buffer);
            }
            Instruction::ReadRows { table, .. } => {
                tables.insert(table);
            }
            _ => {}
        }
    }
    (buffers, tables)
}

/// The head, then five words for each segment.
fn own_arguments(lowered: &Lowered, number: usize, streams: u32, pages: Pages) -> Vec<u32> {
    let core = &lowered.cores[number];
    let banks = u32::from(BANKS);
    let (bank, row) = (number as u32 % banks, number as u32 / banks);
    let region = |name| match core.map.region(name) {
        Some(region) => [region.address, region.bytes],
        None => [0, 0],
    };
    let mut words = vec![bank, streams + row * pages.page_bytes];
    words.extend(region(STREAMS));
    words.extend(region(SCRATCH));
    words.extend(match core.ring {
        Some(ring) => [ring.address, ring.slots, ring.packets, ring.freed],
        None => [0, 1, 0, 0],
    });
    words.extend([u32::from(core.bank.unwrap_or_default()), lowered.segments.len() as u32]);
    for segment in &lowered.segments {
        words.extend([segment.first_pass, segment.passes]);
        let count = |engine| segment.streams[number].of(engine).len() as u32;
        words.extend(Engine::ALL.map(count));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::lowered::{
        BlockFormat, CoreProgram, DramBuffer, L1Map, PacketRing, Semaphore as Counter, Streams,
    };

    const ARGUMENTS: &str = include_str!("../../../../kernels/arguments.h");
    const SEMAPHORES_H: &str = include_str!("../../../../kernels/semaphores.h");

    /// What a header says that a constant is.
    fn constant(header: &str, name: &str) -> usize {
        let line = format!("constexpr uint32_t {name} = ");
        let (_, rest) = header.split_once(&line).unwrap_or_else(|| panic!("no {name}"));
        rest.split_once(';').and_then(|(value, _)| value.parse().ok()).expect("a number")
    }

    fn buffer(columns: u32) -> DramBuffer {
        DramBuffer { name: String::new(), rows: 32, columns, format: BlockFormat::Bf16 }
    }

    /// Two cores; the second one reads a tile of buffer 1 and computes nothing.
    fn lowered() -> Lowered {
        let read = Instruction::ReadTiles {
            buffer: 1,
            tile: 0,
            tile_step: 1,
            count: 1,
            offset: 0,
            bytes: 2048,
            address: 0,
            address_step: 2048,
        };
        let mut second = Streams::default();
        second.push(Engine::Mover, 7, read);
        second.push(Engine::Compute, 7, Instruction::EndStream {});
        let core = |x, bytes| {
            let mut map = L1Map::default();
            map.add("block", 2048);
            map.add(SCRATCH, 8192);
            map.add(STREAMS, bytes);
            CoreProgram {
                core: Core::new(x, 3),
                map,
                semaphores: vec![Counter { name: "packets freed".to_owned(), initial: 4 }],
                ring: Some(PacketRing { address: 96, slots: 4, packets: 2, freed: 3 }),
                bank: None,
            }
        };
        let streams = vec![Streams::default(), second];
        let segment = Segment { name: String::new(), first_pass: 5, passes: 6, streams };
        Lowered {
            cores: vec![core(0, 0), core(9, 128)],
            segments: vec![segment],
            buffers: vec![buffer(32), buffer(64)],
            tables: Vec::new(),
        }
    }

    #[test]
    fn arguments_stand_where_the_kernels_look() {
        let lowered = lowered();
        let places = Places {
            l1: 1024,
            arena: 64,
            buffers: vec![(100, 2048), (200, 2048)],
            tables: Vec::new(),
            columns: std::array::from_fn(|column| 1 + column as u8),
            rows: std::array::from_fn(|row| 20 + row as u8),
        };
        let at = |name| constant(ARGUMENTS, name);
        let common = common_arguments(&lowered, &places);
        assert_eq!((common[at("L1_BASE")], common[at("ARENA_BASE")]), (1024, 64));
        assert_eq!((common[at("BUFFERS")], common[at("TABLES")]), (1, 0));
        assert_eq!(common[at("COLUMN_PLACES")].to_le_bytes(), [1, 2, 3, 4]);
        assert_eq!(common[at("ROW_PLACES")].to_le_bytes(), [20, 21, 22, 23]);
        assert_eq!(common[at("DRAM")..], [1, 200, 2048]);

        let pages = Pages { page_bytes: 128, pages: 2 };
        let own = own_arguments(&lowered, 1, 4096, pages);
        assert_eq!((own[at("STREAMS_BANK")], own[at("STREAMS_SOURCE")]), (1, 4096));
        assert_eq!((own[at("STREAMS")], own[at("STREAMS_BYTES")]), (2048 + 8192, 128));
        assert_eq!((own[at("SCRATCH")], own[at("SCRATCH_BYTES")]), (2048, 8192));
        assert_eq!((own[at("RING")], own[at("RING_SLOTS")]), (96, 4));
        assert_eq!((own[at("RING_PACKETS")], own[at("RING_FREED")]), (2, 3));
        assert_eq!((own[at("BANK")], own[at("SEGMENTS")]), (0, 1));
        assert_eq!(own[at("SEGMENT")..], [5, 6, 1, 0, 1]);
        assert_eq!(own.len(), at("SEGMENT") + at("SEGMENT_WORDS"));
    }

    #[test]
    fn every_core_gets_a_page_of_streams_and_all_semaphores() {
        let lowered = lowered();
        let StreamPages { pages, bytes } = streams(&lowered);
        assert_eq!(pages, Pages { page_bytes: 128, pages: 2 });
        assert_eq!(bytes.len(), 256);
        assert!(bytes[..128].iter().all(|byte| *byte == 0), "the first core has no streams");
        assert_eq!(bytes[128..132], 10_u32.to_le_bytes(), "ReadTiles");
        let cores = rectangles_of(&lowered);
        let of = |x| Rectangle { start: [x, 3], end: [x, 3] };
        assert_eq!(cores, [of(0), of(9)]);
        let made = semaphores(&lowered, &cores);
        assert_eq!(made.len(), constant(SEMAPHORES_H, "COUNT"));
        assert_eq!((made[0].initial, made[1].initial), (4, 0));
    }
}
