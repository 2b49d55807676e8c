//! The instructions of a core, and their encoding.
//!
//! An instruction is 64 bytes: 16 little-endian words of 32 bits. Word 0 is the code of the instruction, word 1 the number
//! of the program's instruction that it is part of (for messages only), then come its operands in the order of the
//! table below, one word each; the rest is zero. A core at a place `(x, y)` is `x + 256 y`; a rectangle is its four
//! bytes; a number that is not given is `0xffff_ffff`.
//!
//! Addresses are bytes from the start of the L1 that programs may use. A *block* is a matrix in L1 as tiles, one column of
//! tiles after the other: tile `(r, c)` stands at `address + (c * row_tiles + r) * bytes of a tile`. Within a tile
//! values stand as [`crate::backend::blackhole::numerics::tile`] says. Blocks that work together count their rows from
//! the same row 0. Vectors (bias, scale, shift, weights of norms) are bf16, one value after the other; their address
//! moves on by `vector_step` bytes with every pass of the segment.
//!
//! A core has three engines, each with a stream of its own: the *mover* and the *feeder* move data, *compute* computes.
//! They know of each other, and of other cores, through semaphores alone: counters, from which a wait subtracts what it
//! has waited for.

use super::field::Field;
use super::{BlockFormat, DecodeError, NormScaling, RowMotion};
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::numerics::TileFormat;
use crate::program::Activation;

/// Words of an instruction.
pub const WORDS: usize = 16;
/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: u32 = 4 * WORDS as u32;
/// Words before the operands.
const HEAD: usize = 2;

macro_rules! instructions {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident = $code:literal {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )*
        }
    )*) => {
        /// What an engine does next.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Instruction {
            $( $(#[doc = $doc])* $name { $( $(#[doc = $field_doc])* $field: $type ),* }, )*
        }

        impl Instruction {
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$name { .. } => stringify!($name), )*
                }
            }

            /// The words of this instruction, part of the program's instruction `op`.
            pub fn encode(&self, op: u32) -> [u32; WORDS] {
                let mut words = [0; WORDS];
                words[1] = op;
                match self {
                    $( Self::$name { $( $field ),* } => {
                        words[0] = $code;
                        let operands: &[u32] = &[$( Field::to_word($field) ),*];
                        words[HEAD..HEAD + operands.len()].copy_from_slice(operands);
                    } )*
                }
                words
            }

            /// The instruction, and the number of the program's instruction that it is part of.
            ///
            /// # Errors
            /// The words are not those of an instruction.
            pub fn decode(words: &[u32; WORDS]) -> Result<(Self, u32), DecodeError> {
                let operands = &mut words[HEAD..].iter().copied();
                let instruction = match words[0] {
                    $( $code => Self::$name {
                        $( $field: operand(operands, stringify!($name), stringify!($field))? ),*
                    }, )*
                    code => return Err(DecodeError::Code { code }),
                };
                match operands.find(|word| *word != 0) {
                    Some(word) => Err(DecodeError::Rest { name: instruction.name(), word }),
                    None => Ok((instruction, words[1])),
                }
            }
        }
    };
}

fn operand<F: Field>(
    words: &mut impl Iterator<Item = u32>,
    name: &'static str,
    field: &'static str,
) -> Result<F, DecodeError> {
    // There is a word for every operand: their number is fixed when this is compiled.
    let word = words.next().unwrap_or_default();
    F::from_word(word).ok_or(DecodeError::Operand { name, field, word })
}

instructions! {
    /// Any engine: waits until a semaphore of its core is at least `value`, and subtracts that.
    Wait = 1 { semaphore: u32, value: u32, }
    /// Any engine: adds to a semaphore of a core, its own or another.
    Signal = 2 { core: Core, semaphore: u32, value: u32, }
    /// Movers: adds to a semaphore of every core of a rectangle.
    SignalAll = 3 { rectangle: Rectangle, noc: Noc, semaphore: u32, value: u32, }

    /// Movers: reads from `count` tiles of a DRAM buffer, every `tile_step`-th from number `tile` on (row by row of tiles),
    /// the `bytes` bytes from `offset` on; they go to `address` and on, `address_step` apart.
    ReadTiles = 10 {
        buffer: u32, tile: u32, tile_step: u32, count: u32, offset: u32, bytes: u32,
        address: u32, address_step: u32,
    }
    /// Movers: the way back of [`Self::ReadTiles`].
    WriteTiles = 11 {
        buffer: u32, tile: u32, tile_step: u32, count: u32, offset: u32, bytes: u32,
        address: u32, address_step: u32,
    }
    /// Movers: reads bytes of the arena.
    ReadArena = 12 { bank: u32, offset: u32, bytes: u32, address: u32, }
    /// Movers: copies `count` pieces of `bytes` bytes, `step` apart, to another core's L1 (or within its own), `target_step`
    /// apart there.
    Send = 13 {
        address: u32, step: u32, count: u32, bytes: u32, core: Core, target: u32, target_step: u32,
    }
    /// Movers: copies bytes to the same place in the L1 of every core of a rectangle.
    Multicast = 14 { address: u32, bytes: u32, rectangle: Rectangle, noc: Noc, target: u32, }
    /// Movers: fills with zeros, which only fill up tiles: where a value is needed, another instruction writes it.
    Zero = 15 { address: u32, bytes: u32, }

    /// Mover of a reader: waits until its semaphore `credit` is at least 1, subtracts 1, reads a packet of the arena from
    /// this reader's bank into the next slot of the consumer's ring of packets, and tells it by its semaphore for packets.
    StreamPacket = 20 { offset: u32, bytes: u32, consumer: Core, credit: u32, }
    /// Feeder of a consumer: `count` times, as slots become free, gives a credit back to its reader.
    ReturnCredits = 21 { reader: Core, credit: u32, count: u32, }
    /// Mover or feeder of a core that reads for itself: waits for a free slot of its own ring and reads a packet into it.
    LoadPacket = 22 { bank: u32, offset: u32, bytes: u32, }

    /// Compute: `out = activation(x W + bias)` for one column of tiles of W, whose tiles come from the ring of packets, one
    /// for each 32 of the `inputs`. Only rows `first_row .. first_row + rows` of `out`, a block one tile wide with as many
    /// rows as `x`, are written, in its first `columns` columns.
    Matmul = 30 {
        x: u32, row_tiles: u32, first_row: u32, rows: u32, inputs: u32, columns: u32,
        weights: TileFormat, bias: Option<u32>, vector_step: u32, activation: Activation,
        out: u32, out_format: BlockFormat, x_format: BlockFormat,
    }
    /// Compute: gives back what is left of the packet at hand: the end of a stream.
    EndStream = 31 { }
    /// Compute: sum and sum of squares of each row of a block one tile wide: `[rows, 2]` of f32.
    Moments = 32 { x: u32, format: BlockFormat, rows: u32, columns: u32, out: u32, }
    /// Compute: adds `count` moments, `step` bytes apart, in their order; gives mean and `1 / sqrt(variance + eps)` of rows of
    /// `width` values, `[rows, 2]` of f32.
    Combine = 33 { parts: u32, step: u32, count: u32, rows: u32, width: u32, eps: f32, out: u32, }
    /// Compute: `out = (x - mean) * factor`, then `* (1 + scale) + shift` where both are given; blocks one
    /// tile wide.
    Normalise = 34 {
        x: u32, format: BlockFormat, row_tiles: u32, rows: u32, columns: u32, moments: u32,
        scale: Option<u32>, shift: Option<u32>, vector_step: u32, out: u32,
    }
    /// Compute: softmax attention of one head over blocks of bf16. Each of `q` and `out` has `row_tiles` rows of tiles, `k`
    /// and `v` have `key_tiles`; `before` is the number of keys before the first row where no row sees a later key.
    Attention = 35 {
        q: u32, k: u32, v: u32, row_tiles: u32, rows: u32, key_tiles: u32, keys: u32,
        head_dim: u32, scale: f32, before: Option<u32>, out: u32,
    }
    /// Compute: `out += factor * x` for some rows of two blocks one tile wide; `out` is f32.
    Accumulate = 36 {
        x: u32, x_format: BlockFormat, factor: f32, row_tiles: u32, first_row: u32, rows: u32,
        columns: u32, out: u32,
    }
    /// Compute: copies a rectangle from one block to another, rounding where the target is bf16.
    CopyBlock = 37 {
        x: u32, x_format: BlockFormat, x_row_tiles: u32, x_row: u32, x_column: u32,
        out: u32, out_format: BlockFormat, out_row_tiles: u32, out_row: u32, out_column: u32,
        rows: u32, columns: u32,
    }

    /// Movers: reads `bytes` bytes from `offset` on of `count` rows of a DRAM table: of row `first` and those behind it, or of
    /// the rows that the words from number `first` on of the list at `list` name. They go to `address` and on,
    /// `address_step` apart.
    ReadRows = 50 {
        table: u32, list: Option<u32>, first: u32, count: u32, offset: u32, bytes: u32,
        address: u32, address_step: u32,
    }
    /// Compute: layer norm of rows `first_row .. first_row + rows` of a block of `columns` columns; of the result columns
    /// `first .. first + count` are written, to a block that has them from its column 0 on and as many rows as `x`. `gain`
    /// and `shift` are vectors of all `columns` values.
    LayerNorm = 51 {
        x: u32, x_format: BlockFormat, row_tiles: u32, first_row: u32, rows: u32, columns: u32,
        first: u32, count: u32, scaling: NormScaling, gain: Option<u32>, shift: Option<u32>,
        eps: f32, out: u32, out_format: BlockFormat,
    }
    /// Compute: as [`Self::LayerNorm`], RMS norm over groups of `group` columns; `weight` is a vector of so many values.
    RmsNorm = 52 {
        x: u32, x_format: BlockFormat, row_tiles: u32, first_row: u32, rows: u32, columns: u32,
        group: u32, first: u32, count: u32, weight: u32, eps: f32, out: u32,
        out_format: BlockFormat,
    }
    /// Compute: rotates the halves of each head of `2 * half` columns in place, in columns `column .. column + columns`;
    /// `cos` and `sin` are blocks of bf16, `half` columns wide, with as many rows as `x`.
    Rope = 53 {
        x: u32, format: BlockFormat, row_tiles: u32, first_row: u32, rows: u32, column: u32,
        columns: u32, half: u32, cos: u32, sin: u32,
    }
    /// Compute: `out = activation(x)`, times `factor` where it is given; blocks one tile wide.
    Activate = 54 {
        x: u32, x_format: BlockFormat, factor: Option<u32>, factor_format: BlockFormat,
        activation: Activation, row_tiles: u32, first_row: u32, rows: u32, columns: u32,
        out: u32, out_format: BlockFormat,
    }
    /// Compute: moves rows between blocks one tile wide as a list of `count` words at `list` says. Row 0 of either side
    /// stands at row `x_row` and `out_row` of its block; no word may be as large as `limit`.
    MoveRows = 55 {
        x: u32, x_format: BlockFormat, x_row_tiles: u32, x_row: u32,
        out: u32, out_format: BlockFormat, out_row_tiles: u32, out_row: u32,
        list: u32, count: u32, limit: u32, columns: u32, motion: RowMotion,
    }
    /// Compute: copies values of bf16 that stand row by row, `x_row_step` values apart, from value `first` at `x` on, to a
    /// block; its columns are `out_column_step` apart.
    Spread = 56 {
        x: u32, first: u32, x_row_step: u32,
        out: u32, out_format: BlockFormat, out_row_tiles: u32, out_row: u32, out_column: u32,
        out_column_step: u32, rows: u32, columns: u32,
    }
    /// Compute: as [`Self::CopyBlock`], taking every `x_row_step`-th row to neighbouring rows, and neighbouring columns to
    /// every `out_column_step`-th.
    Regroup = 57 {
        x: u32, x_format: BlockFormat, x_row_tiles: u32, x_row: u32, x_row_step: u32,
        x_column: u32, out: u32, out_format: BlockFormat, out_row_tiles: u32, out_row: u32,
        out_column: u32, out_column_step: u32, rows: u32, columns: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Instruction> {
        let rectangle = Rectangle::on(Noc::Noc1, Core::new(1, 2), Core::new(3, 4));
        vec![
            Instruction::Wait { semaphore: 3, value: 96 },
            Instruction::SignalAll { rectangle, noc: Noc::Noc1, semaphore: 1, value: 1 },
            Instruction::EndStream {},
            Instruction::Matmul {
                x: 64,
                row_tiles: 2,
                first_row: 1,
                rows: 50,
                inputs: 1536,
                columns: 32,
                weights: TileFormat::Bfp8B,
                bias: None,
                vector_step: 128,
                activation: Activation::GeluTanh,
                out: 4096,
                out_format: BlockFormat::F32,
                x_format: BlockFormat::Bf16,
            },
            Instruction::Combine {
                parts: 0,
                step: 512,
                count: 48,
                rows: 51,
                width: 1536,
                eps: 1e-5,
                out: 8,
            },
            Instruction::LayerNorm {
                x: 128,
                x_format: BlockFormat::F32,
                row_tiles: 1,
                first_row: 17,
                rows: 3,
                columns: 1536,
                first: 64,
                count: 96,
                scaling: NormScaling::Modulated,
                gain: Some(0),
                shift: Some(64),
                eps: 1e-6,
                out: 4096,
                out_format: BlockFormat::Bf16,
            },
            Instruction::Regroup {
                x: 64,
                x_format: BlockFormat::Bf16,
                x_row_tiles: 2,
                x_row: 1,
                x_row_step: 4,
                x_column: 5,
                out: 8192,
                out_format: BlockFormat::F32,
                out_row_tiles: 1,
                out_row: 3,
                out_column: 2,
                out_column_step: 4,
                rows: 9,
                columns: 7,
            },
            Instruction::MoveRows {
                x: 0,
                x_format: BlockFormat::F32,
                x_row_tiles: 16,
                x_row: 2,
                out: 65536,
                out_format: BlockFormat::F32,
                out_row_tiles: 3,
                out_row: 0,
                list: 131072,
                count: 81,
                limit: 128,
                columns: 32,
                motion: RowMotion::ScatterAdd,
            },
        ]
    }

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        for (op, instruction) in (7..).zip(examples()) {
            let words = instruction.encode(op);
            assert_eq!(Instruction::decode(&words), Ok((instruction, op)));
        }
    }

    #[test]
    fn words_that_are_no_instruction_are_refused() {
        let mut words = examples()[0].encode(0);
        words[4] = 1;
        let rest = DecodeError::Rest { name: "Wait", word: 1 };
        assert_eq!(Instruction::decode(&words), Err(rest));
        words[0] = 0;
        assert_eq!(Instruction::decode(&words), Err(DecodeError::Code { code: 0 }));
        let mut words = examples()[3].encode(0);
        words[8] = 9;
        let operand = DecodeError::Operand { name: "Matmul", field: "weights", word: 9 };
        assert_eq!(Instruction::decode(&words), Err(operand));
        let mut words =
            Instruction::Signal { core: Core::new(2, 3), semaphore: 0, value: 1 }.encode(0);
        words[2] = 11;
        assert!(Instruction::decode(&words).is_err(), "a core beyond the grid");
    }
}
