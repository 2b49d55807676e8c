//! A device that is ready for the requests of one layout.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use tracing::info;
use tt_metal_sys::protocol::{Place, Rectangle, Telemetry};
use tt_metal_sys::{Buffer, Device, Error, OpenOptions, WorkerCommand};

use super::DeviceError;
use super::assets::Assets;
use super::image::{self, Pages};
use super::options::DeviceOptions;
use super::program::{self, Places};
use super::status::{StatusBoard, is_warm};
use super::target::Target;
use crate::backend::blackhole::grid::{BANKS, COLUMNS, Core, ROWS};
use crate::backend::blackhole::trace::{Contents, DramMap, Origin, TraceProgram};
use crate::backend::cpu::card::CardNumerics;
use crate::program::View;

/// A stage on the device.
struct StagePrograms {
    /// Numbers of the instructions, and of their programs on the device.
    programs: Vec<(u32, u32)>,
    trace: u32,
}

/// An open device with weights, programs and traces.
pub struct Session {
    device: Device,
    dram: DramMap,
    buffers: Vec<Buffer>,
    tables: Vec<Buffer>,
    stages: Vec<StagePrograms>,
}

impl Session {
    /// Opens the device and brings everything to it. What is logged, and the board, say how far it is.
    pub fn open(
        target: &Target,
        options: &DeviceOptions,
        assets: &Assets,
        board: &StatusBoard,
    ) -> Result<Self, Error> {
        board.session_begins("open");
        let programs = target.take_programs().map_err(local)?;
        let warm_cache = is_warm(&assets.compiled());
        let command = options.command(assets.python_path());
        let mut device = open_when_free(&command, &options.open(assets.compiled()))?;
        info!("device open: worker {}, {:?}", device.worker_pid(), device.opened().grid);
        if !warm_cache {
            info!("no kernels have been compiled for this device so far; this start takes longer");
        }
        board.opened(&device, warm_cache);
        let network = Network::of(&device).map_err(local)?;

        board.starts_with("weights");
        let arena = bring_arena(&mut device, target)?;
        board.has_arena(arena.bytes);
        let dram = &target.dram;
        let pages = dram.buffers.iter().map(|of| (of.name.as_str(), image::pages_of_buffer(of)));
        let buffers = allocate_all(&mut device, pages)?;
        let pages = dram.tables.iter().map(|of| (of.name.as_str(), image::pages_of_table(of)));
        let tables = allocate_all(&mut device, pages)?;
        let l1 = allocate_l1(&mut device, target.l1_bytes)?;
        let places = Places {
            l1: address(&l1),
            arena: address(&arena),
            buffers: places_of(&buffers, dram.buffers.iter().map(image::pages_of_buffer)),
            tables: places_of(&tables, dram.tables.iter().map(image::pages_of_table)),
            columns: network.columns,
            rows: network.rows,
        };

        let mut session = Self { device, dram: dram.clone(), buffers, tables, stages: Vec::new() };
        session.fill(&target.at_load().map_err(local)?)?;
        info!("weights and constants are on the device");
        board.starts_with("programs");
        for programs in programs {
            let programs = session.build_stage(programs, &places, target.numerics, assets)?;
            session.stages.push(StagePrograms { programs, trace: 0 });
        }
        board.starts_with("first run");
        session.run_once(target)?;
        board.starts_with("capture");
        session.capture()?;
        board.ready();
        Ok(session)
    }

    /// Writes what no request changes, and zeros everywhere else: what the first run reads in lists has to be rows that there
    /// are.
    fn fill(&mut self, contents: &[Contents<'_>]) -> Result<(), Error> {
        let Self { device, dram, buffers, tables, .. } = self;
        let mut filled = HashSet::new();
        for contents in contents {
            let (buffer, bytes) = bytes_of(contents, dram, buffers, tables);
            device.upload(buffer, 0, &bytes)?;
            filled.insert(buffer.id);
        }
        for buffer in buffers.iter().chain(&*tables).filter(|buffer| !filled.contains(&buffer.id)) {
            device.upload(buffer, 0, &vec![0; buffer.bytes as usize])?;
        }
        Ok(())
    }

    fn build_stage(
        &mut self,
        lowered: Vec<TraceProgram>,
        places: &Places,
        numerics: CardNumerics,
        assets: &Assets,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let mut programs = Vec::new();
        for made in lowered {
            let streams = program::streams(&made.lowered);
            let stored = allocate(&mut self.device, &made.name, streams.pages)?;
            self.device.upload(&stored, 0, &streams.bytes)?;
            let streams = (address(&stored), streams.pages);
            let built = program::build(
                &made.name,
                &made.lowered,
                places,
                streams,
                numerics.fidelity,
                assets,
            );
            programs.push((made.op, self.device.build(&built)?));
        }
        Ok(programs)
    }

    /// Runs every program once, which compiles the kernels.
    fn run_once(&mut self, target: &Target) -> Result<(), Error> {
        for (stage, of) in self.stages.iter().zip(&target.program.stages) {
            let mut seconds = Duration::ZERO;
            for (_, program) in &stage.programs {
                seconds += self.device.run(&[*program])?;
            }
            let (name, count) = (of.kind.name(), stage.programs.len());
            info!(
                "stage {name}: {count} programs have run once, in {:.3} s",
                seconds.as_secs_f64()
            );
        }
        Ok(())
    }

    fn capture(&mut self) -> Result<(), Error> {
        for stage in &mut self.stages {
            self.device.begin_capture()?;
            let programs: Vec<u32> = stage.programs.iter().map(|(_, program)| *program).collect();
            self.device.run(&programs)?;
            stage.trace = self.device.end_capture()?;
        }
        Ok(())
    }

    /// Writes the inputs of a request; the event that the first stage has to wait for.
    pub fn write_inputs(&mut self, inputs: &[Contents<'_>]) -> Result<u64, Error> {
        let Self { device, dram, buffers, tables, .. } = self;
        let stored: Vec<_> =
            inputs.iter().map(|contents| bytes_of(contents, dram, buffers, tables)).collect();
        let writes: Vec<_> =
            stored.iter().map(|(buffer, bytes)| (*buffer, 0, bytes.as_ref())).collect();
        device.write_inputs(&writes)
    }

    /// Replays the trace of a stage.
    pub fn replay(
        &mut self,
        stage: usize,
        after: Option<u64>,
        limit: Duration,
    ) -> Result<Duration, Error> {
        self.device.replay(self.stages[stage].trace, after, Some(limit))
    }

    /// Runs the programs of a stage for instructions `first .. end`, one by one.
    pub fn run(&mut self, stage: usize, first: u32, end: u32) -> Result<Duration, Error> {
        let programs = self.stages[stage].programs.iter();
        let wanted = programs.filter(|(op, _)| (first..end).contains(op));
        let wanted: Vec<u32> = wanted.map(|(_, program)| *program).collect();
        if wanted.is_empty() { Ok(Duration::ZERO) } else { self.device.run(&wanted) }
    }

    /// State of the card.
    pub fn telemetry(&mut self) -> Result<Telemetry, Error> {
        self.device.telemetry()
    }

    /// What stands in a view, row by row; nothing if its buffer is a table.
    pub fn read(&mut self, view: View) -> Result<Vec<f32>, Error> {
        let Some(number) = self.dram.buffer(Origin::Buffer(view.buffer)) else {
            return Ok(Vec::new());
        };
        let buffer = &self.buffers[number as usize];
        let mut bytes = vec![0; buffer.bytes as usize];
        self.device.read(buffer, 0, &mut bytes)?;
        Ok(image::values(&self.dram.buffers[number as usize], &bytes, view))
    }
}

/// The buffer that contents belong to, and what is written there.
fn bytes_of<'a>(
    contents: &'a Contents<'_>,
    dram: &DramMap,
    buffers: &'a [Buffer],
    tables: &'a [Buffer],
) -> (&'a Buffer, Cow<'a, [u8]>) {
    match contents {
        Contents::Buffer { number, values } => {
            let number = *number as usize;
            (&buffers[number], Cow::Owned(image::tiles(&dram.buffers[number], values)))
        }
        Contents::Table { number, bytes } => (&tables[*number as usize], Cow::Borrowed(bytes)),
    }
}

/// Faults on this side of the socket, which a start may find as well; none of them is the worker's.
fn local(error: DeviceError) -> Error {
    Error::Argument { request: "start", problem: error.to_string() }
}

/// Opens a device. A session of this very process that was abandoned in the middle of a stage is waited for.
fn open_when_free(command: &WorkerCommand, options: &OpenOptions) -> Result<Device, Error> {
    const PAUSE: Duration = Duration::from_millis(50);
    let start = Instant::now();
    loop {
        match Device::open(command, options) {
            Err(Error::Busy { pid: Some(pid), .. })
                if pid == std::process::id() && start.elapsed() < options.deadlines.replay =>
            {
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}

/// Coordinates of the grid on the network.
struct Network {
    columns: [u8; COLUMNS as usize],
    rows: [u8; ROWS as usize],
}

impl Network {
    /// # Errors
    /// The chip has a smaller grid, other banks, or coordinates that are not those of a column and a row.
    fn of(device: &Device) -> Result<Self, DeviceError> {
        let opened = device.opened();
        let (columns, rows, banks) = (opened.grid.columns, opened.grid.rows, opened.dram_banks);
        let expected = format!("{COLUMNS} x {ROWS} cores and {BANKS} banks");
        let other = DeviceError::OtherChip { columns, rows, banks, expected };
        let place = |core: Core| {
            let index = u32::from(core.y) * columns + u32::from(core.x);
            let [x, y] = *opened.noc.get(index as usize)?;
            Some((u8::try_from(x).ok()?, u8::try_from(y).ok()?))
        };
        let fits =
            columns >= u32::from(COLUMNS) && rows >= u32::from(ROWS) && banks == u32::from(BANKS);
        let mut network = Self { columns: [0; COLUMNS as usize], rows: [0; ROWS as usize] };
        for core in Core::all().filter(|_| fits) {
            let Some((x, y)) = place(core) else { return Err(other) };
            if core.y == 0 {
                network.columns[usize::from(core.x)] = x;
            }
            if core.x == 0 {
                network.rows[usize::from(core.y)] = y;
            }
            let column = network.columns[usize::from(core.x)];
            if (column, network.rows[usize::from(core.y)]) != (x, y) {
                return Err(other);
            }
        }
        if fits { Ok(network) } else { Err(other) }
    }
}

fn allocate(device: &mut Device, name: &str, pages: Pages) -> Result<Buffer, Error> {
    let Pages { page_bytes, pages } = pages;
    // Names of tensors may be longer than those of buffers.
    let name: String = name.chars().filter(char::is_ascii).take(128).collect();
    device.allocate(&name, Place::Dram { page_bytes, pages })
}

fn allocate_all<'a>(
    device: &mut Device,
    wanted: impl Iterator<Item = (&'a str, Pages)>,
) -> Result<Vec<Buffer>, Error> {
    wanted.map(|(name, pages)| allocate(device, name, pages)).collect()
}

/// The same place on every core, for the largest program.
fn allocate_l1(device: &mut Device, largest: u32) -> Result<Buffer, Error> {
    let bytes_per_core = largest.next_multiple_of(64);
    let end = [u32::from(COLUMNS) - 1, u32::from(ROWS) - 1];
    let cores = Rectangle { start: [0, 0], end };
    device.allocate("l1", Place::L1 { bytes_per_core, cores })
}

/// Addresses on the card have 32 bits.
fn address(buffer: &Buffer) -> u32 {
    buffer.address as u32
}

fn places_of(buffers: &[Buffer], pages: impl Iterator<Item = Pages>) -> Vec<(u32, u32)> {
    buffers.iter().zip(pages).map(|(buffer, pages)| (address(buffer), pages.page_bytes)).collect()
}

fn bring_arena(device: &mut Device, target: &Target) -> Result<Buffer, Error> {
    let arena =
        target.arena.image(&target.checkpoint).map_err(|error| local(DeviceError::Arena(error)))?;
    let Pages { page_bytes, pages } = image::pages_of_arena(&arena);
    let buffer = allocate(device, "arena", Pages { page_bytes, pages })?;
    let row_bytes = u64::from(page_bytes) * u64::from(BANKS);
    let rows = u64::from(pages / u32::from(BANKS));
    let step = (buffer.granule / row_bytes).max(1);
    for row in (0..rows).step_by(step as usize) {
        let count = step.min(rows - row);
        let bytes = image::arena_pages(&arena, row as usize, count as usize);
        device.upload(&buffer, row * row_bytes, &bytes)?;
    }
    Ok(buffer)
}
