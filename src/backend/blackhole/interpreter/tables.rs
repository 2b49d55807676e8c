//! Tables in DRAM, and DRAM as a whole.

use super::core::CoreState;
use super::fault::Fault;
use super::memory::{Memory, Piece};
use super::place::At;
use super::{ArenaBytes, Binaries, Machine};
use crate::backend::blackhole::lowered::{DramBuffer, DramTable, Instruction, Lowered};
use crate::backend::cpu::card::CardNumerics;

/// What stands in DRAM, for the next program that works on the same buffers and tables.
#[derive(Default)]
pub struct Dram {
    pub(super) buffers: Vec<Memory>,
    pub(super) tables: Vec<Memory>,
}

impl Dram {
    /// With nothing in it.
    pub fn new(program: &Lowered) -> Self {
        let memories = |sizes: Vec<usize>| sizes.into_iter().map(Memory::new).collect();
        let [buffers, tables] = sizes(program);
        Self { buffers: memories(buffers), tables: memories(tables) }
    }

    /// Whether a program has these buffers and tables.
    fn is_of(&self, program: &Lowered) -> bool {
        let sizes_of =
            |memories: &[Memory]| -> Vec<usize> { memories.iter().map(Memory::len).collect() };
        sizes(program) == [sizes_of(&self.buffers), sizes_of(&self.tables)]
    }
}

/// Bytes of the buffers and of the tables.
fn sizes(program: &Lowered) -> [Vec<usize>; 2] {
    let buffer =
        |buffer: &DramBuffer| buffer.tiles() as usize * buffer.format.tile_bytes() as usize;
    let table = |table: &DramTable| table.rows as usize * table.row_bytes as usize;
    [program.buffers.iter().map(buffer).collect(), program.tables.iter().map(table).collect()]
}

impl<'a> Machine<'a> {
    /// A machine that goes on with what another program has left in DRAM: takes it, unless there is an error.
    ///
    /// # Errors
    /// The other program had other buffers or tables; or what [`Machine::new`] says.
    pub fn on(
        program: &'a Lowered,
        banks: &'a dyn ArenaBytes,
        numerics: CardNumerics,
        dram: &mut Dram,
    ) -> Result<Self, Fault> {
        if !dram.is_of(program) {
            return Err(Fault::OtherDram);
        }
        let machine = Self::without_dram(program, banks, numerics, Binaries::default())?;
        Ok(Self { dram: std::mem::take(dram), ..machine })
    }

    /// What the program leaves in DRAM.
    pub fn into_dram(self) -> Dram {
        self.dram
    }

    /// Fills a table in DRAM with its rows, each as long as they are in DRAM.
    pub fn write_table(&mut self, index: usize, bytes: &[u8]) -> Result<(), Fault> {
        let count = self.program.tables.len();
        let Some(table) = self.program.tables.get(index) else {
            return Err(Fault::UnknownTable { table: index, count });
        };
        let expected = table.rows as usize * table.row_bytes as usize;
        if bytes.len() != expected {
            let (table, found) = (table.name.clone(), bytes.len());
            return Err(Fault::TableBytes { table, expected, found });
        }
        self.dram.tables[index].set_values(0, bytes);
        Ok(())
    }

    /// A `ReadRows`.
    pub(super) fn read_rows(
        &mut self,
        at: At<'_>,
        core: usize,
        instruction: &Instruction,
    ) -> Result<(), Fault> {
        let &Instruction::ReadRows {
            table,
            list,
            first,
            count,
            offset,
            bytes,
            address,
            address_step,
        } = instruction
        else {
            return Err(Fault::WrongEngine { place: at.place() });
        };
        let spec = &self.program.tables[table as usize];
        let rows = match list {
            Some(list) => self.cores[core].words(at, list, first, count)?,
            None => (first..first + count).collect(),
        };
        for (number, row) in (0..).zip(rows) {
            if row >= spec.rows {
                let (table, rows) = (spec.name.clone(), spec.rows);
                return Err(Fault::NoRow { place: at.place(), table, row, rows });
            }
            let dram = row as usize * spec.row_bytes as usize + offset as usize;
            let target = u64::from(address) + number * u64::from(address_step);
            at.check_dram_read(dram as u64, target)?;
            let state = &mut self.cores[core];
            let target = state.check(at, target, bytes.into())?;
            match self.dram.tables[table as usize].values(dram, bytes as usize) {
                Ok(row) => state.l1.put(target, &Piece::of_values(row)),
                Err(unwritten) => {
                    let (place, region) = (at.place(), spec.name.clone());
                    let (address, zeroed) = (unwritten.address, unwritten.zeroed);
                    return Err(Fault::ReadBeforeWrite { place, address, region, zeroed });
                }
            }
            state.counters.dram_read += u64::from(bytes);
        }
        Ok(())
    }
}

impl CoreState<'_> {
    /// Words `first .. first + count` of a list.
    pub fn words(
        &mut self,
        at: At<'_>,
        address: u32,
        first: u32,
        count: u32,
    ) -> Result<Vec<u32>, Fault> {
        let size = size_of::<u32>();
        let end = (u64::from(first) + u64::from(count)) * size as u64;
        let address = self.check(at, address.into(), end)? + first as usize * size;
        match self.l1.values(address, count as usize * size) {
            Ok(bytes) => {
                Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
            Err(unwritten) => Err(self.unwritten(at, unwritten)),
        }
    }
}
