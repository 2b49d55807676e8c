// The instructions of a core, as `src/backend/blackhole/lowered/instruction.rs` defines them: an instruction is 16 words,
// word 0 its code, word 1 the number of the program's instruction, then its operands. Here stand the codes and the
// positions of the operands; `tests/test_format.py` holds this file to the Rust source.
#pragma once
#include <cstdint>

namespace lowered {

constexpr uint32_t WORDS = 16;
constexpr uint32_t INSTRUCTION_BYTES = 4 * WORDS;
// Words before the operands: the code and the number of the program's instruction.
constexpr uint32_t CODE = 0;
constexpr uint32_t OP = 1;
constexpr uint32_t HEAD = 2;
// Stands for an operand that is not given.
constexpr uint32_t NONE = 0xffffffff;

// A slot of a ring has room for so many bytes.
constexpr uint32_t PACKET_BYTES = 16 * 1024;

// Operands that are one of a few things, by their places in the lists of `field.rs`.
enum BlockFormat : uint32_t { BF16, F32 };
enum TileFormat : uint32_t { WEIGHTS_BF16, WEIGHTS_BFP8_B, WEIGHTS_BFP4_B };
enum Activation : uint32_t { IDENTITY, RELU, SILU, GELU_TANH, GELU_ERF };
enum NormScaling : uint32_t { UNSCALED, AFFINE, MODULATED };
enum RowMotion : uint32_t { GATHER, SCATTER, SCATTER_ADD };

// clang-format off
struct Wait { enum : uint32_t { code = 1, semaphore = HEAD, value }; };
struct Signal { enum : uint32_t { code = 2, core = HEAD, semaphore, value }; };
struct SignalAll { enum : uint32_t { code = 3, rectangle = HEAD, noc, semaphore, value }; };

struct ReadTiles { enum : uint32_t { code = 10, buffer = HEAD, tile, tile_step, count, offset, bytes, address, address_step }; };
struct WriteTiles { enum : uint32_t { code = 11, buffer = HEAD, tile, tile_step, count, offset, bytes, address, address_step }; };
struct ReadArena { enum : uint32_t { code = 12, bank = HEAD, offset, bytes, address }; };
struct Send { enum : uint32_t { code = 13, address = HEAD, step, count, bytes, core, target, target_step }; };
struct Multicast { enum : uint32_t { code = 14, address = HEAD, bytes, rectangle, noc, target }; };
struct Zero { enum : uint32_t { code = 15, address = HEAD, bytes }; };

struct StreamPacket { enum : uint32_t { code = 20, offset = HEAD, bytes, consumer, credit }; };
struct ReturnCredits { enum : uint32_t { code = 21, reader = HEAD, credit, count }; };
struct LoadPacket { enum : uint32_t { code = 22, bank = HEAD, offset, bytes }; };

struct Matmul { enum : uint32_t { code = 30, x = HEAD, row_tiles, first_row, rows, inputs, columns, weights, bias, vector_step, activation, out, out_format, x_format }; };
struct EndStream { enum : uint32_t { code = 31 }; };
struct Moments { enum : uint32_t { code = 32, x = HEAD, format, rows, columns, out }; };
struct Combine { enum : uint32_t { code = 33, parts = HEAD, step, count, rows, width, eps, out }; };
struct Normalise { enum : uint32_t { code = 34, x = HEAD, format, row_tiles, rows, columns, moments, scale, shift, vector_step, out }; };
struct Attention { enum : uint32_t { code = 35, q = HEAD, k, v, row_tiles, rows, key_tiles, keys, head_dim, scale, before, out }; };
struct Accumulate { enum : uint32_t { code = 36, x = HEAD, x_format, factor, row_tiles, first_row, rows, columns, out }; };
struct CopyBlock { enum : uint32_t { code = 37, x = HEAD, x_format, x_row_tiles, x_row, x_column, out, out_format, out_row_tiles, out_row, out_column, rows, columns }; };

struct ReadRows { enum : uint32_t { code = 50, table = HEAD, list, first, count, offset, bytes, address, address_step }; };
struct LayerNorm { enum : uint32_t { code = 51, x = HEAD, x_format, row_tiles, first_row, rows, columns, first, count, scaling, gain, shift, eps, out, out_format }; };
struct RmsNorm { enum : uint32_t { code = 52, x = HEAD, x_format, row_tiles, first_row, rows, columns, group, first, count, weight, eps, out, out_format }; };
struct Rope { enum : uint32_t { code = 53, x = HEAD, format, row_tiles, first_row, rows, column, columns, half, cos, sin }; };
struct Activate { enum : uint32_t { code = 54, x = HEAD, x_format, factor, factor_format, activation, row_tiles, first_row, rows, columns, out, out_format }; };
struct MoveRows { enum : uint32_t { code = 55, x = HEAD, x_format, x_row_tiles, x_row, out, out_format, out_row_tiles, out_row, list, count, limit, columns, motion }; };
struct Spread { enum : uint32_t { code = 56, x = HEAD, first, x_row_step, out, out_format, out_row_tiles, out_row, out_column, out_column_step, rows, columns }; };
struct Regroup { enum : uint32_t { code = 57, x = HEAD, x_format, x_row_tiles, x_row, x_row_step, x_column, out, out_format, out_row_tiles, out_row, out_column, out_column_step, rows, columns }; };
// clang-format on

// Values and bytes of tiles and blocks.
constexpr uint32_t SIDE = 32;
constexpr uint32_t FACE = 16;
constexpr uint32_t TILE_VALUES = SIDE * SIDE;
constexpr uint32_t FACE_VALUES = FACE * FACE;
// Exponents at the start of a tile in block floating point.
constexpr uint32_t EXPONENT_BYTES = 64;

constexpr uint32_t value_bytes(uint32_t format) { return format == F32 ? 4 : 2; }
constexpr uint32_t tile_bytes(uint32_t format) { return TILE_VALUES * value_bytes(format); }
constexpr uint32_t weight_tile_bytes(uint32_t format) {
    if (format == WEIGHTS_BF16) {
        return 2 * TILE_VALUES;
    }
    return EXPONENT_BYTES + (format == WEIGHTS_BFP8_B ? TILE_VALUES : TILE_VALUES / 2);
}

constexpr uint32_t tiles_of(uint32_t values) { return (values + SIDE - 1) / SIDE; }

// An instruction where it lies in L1.
using Words = const volatile uint32_t*;

}  // namespace lowered
