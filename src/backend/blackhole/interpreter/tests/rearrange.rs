//! Values that change their places: rows that a list names, rows of tables, regular patterns.

use half::bf16;

use super::build::Built;
use super::single::built;
use super::{fault, run};
use crate::backend::blackhole::interpreter::{Dram, Fault, Machine, Schedule};
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction, RowMotion, Step};

const COLUMNS: usize = 20;
/// Rows of the longer and of the shorter side.
const MANY: usize = 40;
const FEW: [u32; 5] = [33, 2, 39, 0, 17];

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Lets the mover read rows of a table before all else; gives the address in L1.
fn with_rows(built: &mut Built, table: u32, rows: u32, list: Option<(u32, u32)>) -> u32 {
    let bytes = built.program.tables[table as usize].row_bytes;
    let address = built.region(0, "rows", rows * bytes);
    let read = Instruction::ReadRows {
        table,
        list: list.map(|(address, _)| address),
        first: list.map_or(0, |(_, first)| first),
        count: rows,
        offset: 0,
        bytes,
        address,
        address_step: bytes,
    };
    let place = built.stream(0, Engine::Mover).iter().take_while(|step| step.op == 9).count();
    built.stream(0, Engine::Mover).insert(place, Step { op: 9, instruction: read });
    address
}

fn moved(motion: RowMotion, limit: u32) -> Built {
    let many = (MANY as u32, COLUMNS as u32, BlockFormat::F32);
    let few = (FEW.len() as u32, COLUMNS as u32, BlockFormat::F32);
    let (inputs, outputs) = match motion {
        RowMotion::Gather => (vec![many], few),
        RowMotion::Scatter | RowMotion::ScatterAdd => (vec![few, many], many),
    };
    let mut built = built(&inputs, &[outputs], |at| {
        let (x_tiles, out_tiles) = if motion == RowMotion::Gather { (2, 1) } else { (1, 2) };
        let moved = Instruction::MoveRows {
            x: at[0],
            x_format: BlockFormat::F32,
            x_row_tiles: x_tiles,
            x_row: 0,
            out: at[1],
            out_format: BlockFormat::F32,
            out_row_tiles: out_tiles,
            out_row: 0,
            list: 0,
            count: FEW.len() as u32,
            limit,
            columns: COLUMNS as u32,
            motion,
        };
        let copy = Instruction::CopyBlock {
            x: at[1],
            x_format: BlockFormat::F32,
            x_row_tiles: 2,
            x_row: 0,
            x_column: 0,
            out: at[at.len() - 1],
            out_format: BlockFormat::F32,
            out_row_tiles: 2,
            out_row: 0,
            out_column: 0,
            rows: MANY as u32,
            columns: COLUMNS as u32,
        };
        if motion == RowMotion::Gather { vec![moved] } else { vec![moved, copy] }
    });
    let table = built.table("list", &[words(&FEW)]);
    let address = with_rows(&mut built, table, 1, None);
    if let Instruction::MoveRows { list, .. } = built.find(0, Engine::Compute, "MoveRows") {
        *list = address;
    }
    built
}

#[test]
fn rows_go_where_the_list_says() {
    let row = |values: &[f32], row: usize| values[row * COLUMNS..][..COLUMNS].to_vec();
    let built = moved(RowMotion::Gather, 40);
    let expected: Vec<f32> =
        FEW.iter().flat_map(|from| row(&built.inputs[0], *from as usize)).collect();
    assert_eq!(run(&built), [expected]);
    for motion in [RowMotion::Scatter, RowMotion::ScatterAdd] {
        let built = moved(motion, 40);
        let [few, many] = &built.inputs[..] else { panic!("two inputs") };
        let mut expected = many.clone();
        for (from, to) in FEW.iter().enumerate() {
            let target = &mut expected[*to as usize * COLUMNS..][..COLUMNS];
            for (target, value) in target.iter_mut().zip(row(few, from)) {
                *target = if motion == RowMotion::Scatter { value } else { *target + value };
            }
        }
        assert_eq!(run(&built), [expected], "{motion:?}");
    }
}

#[test]
fn a_list_names_only_rows_that_there_are() {
    let found = fault(&moved(RowMotion::Gather, 39));
    assert!(matches!(found, Fault::ListWord { word: 39, limit: 39, .. }), "{found}");
    let found = fault(&moved(RowMotion::Scatter, 65));
    assert!(matches!(found, Fault::OutsideBlock { .. }), "{found}");
}

/// Rows 4, 1 and 2 of a table of five, spread over columns 3, 5 and so on of rows 2 to 4 of a block.
fn spread() -> (Built, Vec<Vec<f32>>) {
    let out = (MANY as u32, 40, BlockFormat::F32);
    let mut built = built(&[out], &[out], |at| {
        let spread = Instruction::Spread {
            x: 0,
            first: 1,
            x_row_step: 32,
            out: at[0],
            out_format: BlockFormat::F32,
            out_row_tiles: 2,
            out_row: 2,
            out_column: 3,
            out_column_step: 2,
            rows: 3,
            columns: 17,
        };
        let copy = Instruction::Regroup {
            x: at[0],
            x_format: BlockFormat::F32,
            x_row_tiles: 2,
            x_row: 0,
            x_row_step: 1,
            x_column: 0,
            out: at[1],
            out_format: BlockFormat::F32,
            out_row_tiles: 2,
            out_row: 0,
            out_column: 0,
            out_column_step: 1,
            rows: MANY as u32,
            columns: 40,
        };
        vec![spread, copy]
    });
    let value = |row: usize, column: usize| (100 * row + column) as f32;
    let rows: Vec<Vec<f32>> =
        (0..5).map(|row| (0..18).map(|column| value(row, column)).collect()).collect();
    let bytes = |row: &Vec<f32>| {
        row.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect::<Vec<u8>>()
    };
    let rows_of_bytes: Vec<Vec<u8>> = rows.iter().map(bytes).collect();
    let list = built.table("list", &[words(&[0, 4, 1, 2])]);
    let table = built.table("table", &rows_of_bytes);
    let list = with_rows(&mut built, list, 1, None);
    let address = with_rows(&mut built, table, 3, Some((list, 1)));
    if let Instruction::Spread { x, .. } = built.find(0, Engine::Compute, "Spread") {
        *x = address;
    }
    (built, rows)
}

#[test]
fn rows_of_a_table_are_spread_over_a_block() {
    let (built, rows) = spread();
    let mut expected = built.inputs[0].clone();
    for (to, from) in [4, 1, 2].into_iter().enumerate() {
        for column in 0..17 {
            let value = bf16::from_f32(rows[from][column + 1]).to_f32();
            expected[(to + 2) * 40 + 3 + 2 * column] = value;
        }
    }
    assert_eq!(run(&built), [expected]);
}

#[test]
fn tables_have_the_rows_that_are_read() {
    let with = |change: fn(&mut Instruction)| {
        let (mut built, _) = spread();
        change(&mut built.stream(0, Engine::Mover)[1].instruction);
        fault(&built)
    };
    let found = with(|read| {
        if let Instruction::ReadRows { list, first, .. } = read {
            (*list, *first) = (None, 3);
        }
    });
    assert!(matches!(found, Fault::NoRow { row: 5, rows: 5, .. }), "{found}");
    let found = with(|read| {
        if let Instruction::ReadRows { offset, .. } = read {
            *offset = 64;
        }
    });
    assert!(matches!(found, Fault::RowPart { offset: 64, row_bytes: 64, .. }), "{found}");
    let found = with(|read| {
        if let Instruction::ReadRows { table, .. } = read {
            *table = 2;
        }
    });
    assert!(matches!(found, Fault::NoTable { table: 2, count: 2, .. }), "{found}");

    let (mut built, _) = spread();
    built.tables[0] = words(&[0, 5, 1, 2]);
    built.tables[0].resize(64, 0);
    let found = fault(&built);
    assert!(matches!(found, Fault::NoRow { row: 5, .. }), "{found}");
    built.tables[0].pop();
    let found = built.machine().err();
    assert!(matches!(found, Some(Fault::TableBytes { expected: 64, found: 63, .. })), "{found:?}");
    built.tables.push(Vec::new());
    built.tables[0].push(0);
    assert!(matches!(built.machine().err(), Some(Fault::UnknownTable { table: 2, count: 2 })));
}

/// Every third row from row 1 on, its columns 2 to 13 to every fourth column.
#[test]
fn rows_and_columns_are_regrouped() {
    let (x, out) = ((MANY as u32, COLUMNS as u32, BlockFormat::F32), (13, 50, BlockFormat::F32));
    let built = built(&[x, out], &[out], |at| {
        let copy = |from: u32, to: u32, rows, columns, step: [u32; 2], first: [u32; 3]| {
            Instruction::Regroup {
                x: from,
                x_format: BlockFormat::F32,
                x_row_tiles: if from == at[0] { 2 } else { 1 },
                x_row: first[0],
                x_row_step: step[0],
                x_column: first[1],
                out: to,
                out_format: BlockFormat::F32,
                out_row_tiles: 1,
                out_row: 0,
                out_column: first[2],
                out_column_step: step[1],
                rows,
                columns,
            }
        };
        let turned = copy(at[0], at[1], 13, 12, [3, 4], [1, 2, 1]);
        vec![turned, copy(at[1], at[2], 13, 50, [1, 1], [0, 0, 0])]
    });
    let [x, before] = &built.inputs[..] else { panic!("two inputs") };
    let mut expected = before.clone();
    for (row, column) in (0..13 * 12).map(|at| (at / 12, at % 12)) {
        expected[row * 50 + 1 + 4 * column] = x[(1 + 3 * row) * COLUMNS + 2 + column];
    }
    assert_eq!(run(&built), [expected]);
}

#[test]
fn dram_is_handed_on_between_programs_of_the_same_buffers() {
    let built = moved(RowMotion::Gather, 40);
    let mut machine = built.machine().unwrap();
    machine.run(&mut Schedule::round_robin()).unwrap();
    let expected = machine.read_buffer(1).unwrap();
    let mut dram = machine.into_dram();
    let next = |dram| Machine::on(&built.program, &built.banks, built.numerics, dram);
    let mut other = Dram::default();
    assert_eq!(next(&mut other).err(), Some(Fault::OtherDram));
    assert_eq!(next(&mut dram).unwrap().read_buffer(1), Ok(expected));
}
