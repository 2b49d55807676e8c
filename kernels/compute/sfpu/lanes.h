// What the vector unit (SFPU) does with its registers, under readable names. No vector types of SFPI: every function is one
// or a few Tensix instructions, so that any RISC-V compiler will do.
//
// A register holds 32 lanes of 32 bits: four rows of eight columns, lane 8 r + c. A load from dest takes four neighbouring
// rows of a face, and of these the even or the odd columns.
#pragma once

#include <cstdint>

namespace lanes {

// Registers that programs may write.
constexpr uint32_t L0 = 0, L1 = 1, L2 = 2, L3 = 3, L4 = 4, L5 = 5, L6 = 6, L7 = 7;
// Registers that always hold the same.
constexpr uint32_t ZERO = 9, ONE = 10;
// Twice the number of the lane.
constexpr uint32_t TWICE_LANE = 15;

constexpr uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

// D = value in every lane: one instruction if its lower 16 bits are zero.
template <uint32_t D, uint32_t BITS>
inline void set_bits() {
    if constexpr ((BITS & 0xffff) == 0) {
        TTI_SFPLOADI(D, 0, BITS >> 16);
    } else if constexpr (BITS <= 0xffff) {
        TTI_SFPLOADI(D, 2, BITS);
    } else {
        TTI_SFPLOADI(D, 10, BITS & 0xffff);
        TTI_SFPLOADI(D, 8, BITS >> 16);
    }
}

// The same for a value that is known when the kernel runs.
template <uint32_t D>
inline void set(uint32_t bits) {
    TT_SFPLOADI(D, 10, bits & 0xffff);
    TT_SFPLOADI(D, 8, bits >> 16);
}

// Arithmetic in f32, rounded to nearest even. Denormals count as zero.
template <uint32_t A, uint32_t B, uint32_t C, uint32_t D>
inline void multiply_add() { TTI_SFPMAD(A, B, C, D, 0); }  // D = A * B + C

template <uint32_t A, uint32_t B, uint32_t C, uint32_t D>
inline void subtract_product() { TTI_SFPMAD(A, B, C, D, 1); }  // D = C - A * B

template <uint32_t A, uint32_t B, uint32_t C, uint32_t D>
inline void multiply_subtract() { TTI_SFPMAD(A, B, C, D, 2); }  // D = A * B - C

template <uint32_t A, uint32_t B, uint32_t D>
inline void multiply() { TTI_SFPMUL(A, B, ZERO, D, 0); }  // D = A * B

template <uint32_t A, uint32_t B, uint32_t D>
inline void add() { TTI_SFPADD(ONE, A, B, D, 0); }  // D = A + B

template <uint32_t A, uint32_t B, uint32_t D>
inline void subtract() { TTI_SFPADD(ONE, A, B, D, 2); }  // D = A - B

template <uint32_t C, uint32_t D>
inline void copy() { TTI_SFPMOV(0, C, D, 0); }  // D = C

template <uint32_t C, uint32_t D>
inline void negate() { TTI_SFPMOV(0, C, D, 1); }  // D = -C

template <uint32_t C, uint32_t D>
inline void magnitude() { TTI_SFPSETSGN(0, C, D, 1); }  // D = |C|

// D keeps its sign and takes the magnitude of C.
template <uint32_t C, uint32_t D>
inline void take_magnitude() { TTI_SFPSETSGN(0, C, D, 0); }

// A result of arithmetic is there one cycle later than the hardware knows for some of the instructions below.
inline void settle() { TTI_SFPNOP; }

// The smaller one of A and B goes to A, the larger one to B; NaN counts as larger than infinity, or smaller if negative.
template <uint32_t A, uint32_t B>
inline void sort() {
    settle();
    TTI_SFPSWAP(0, B, A, 1);
    settle();
}

// Integers.
template <uint32_t C, uint32_t D>
inline void add_integer() {  // D += C
    settle();
    TTI_SFPIADD(0, C, D, 4);
}

template <uint32_t C, uint32_t D>
inline void subtract_from_integer() {  // D = C - D
    settle();
    TTI_SFPIADD(0, C, D, 6);
}

template <uint32_t C, uint32_t D, int32_t VALUE>
inline void add_small_integer() { TTI_SFPIADD(VALUE & 0xfff, C, D, 5); }  // D = C + VALUE

template <uint32_t C, uint32_t D, int32_t PLACES>
inline void shift() { TTI_SFPSHFT(PLACES & 0xfff, C, D, 5); }  // D = C << PLACES, or >> where negative

template <uint32_t C, uint32_t D, int32_t PLACES>
inline void shift_signed() { TTI_SFPSHFT(PLACES & 0xfff, C, D, 7); }  // the same, keeping the sign

template <uint32_t C, uint32_t D>
inline void bit_and() { TTI_SFPAND(0, C, D, 0); }  // D &= C

// Lanes: until `all_lanes`, instructions change only those that a condition holds for.
inline void enable_conditions() { TTI_SFPENCC(3, 0, 0, 10); }
inline void all_lanes() { TTI_SFPENCC(0, 0, 0, 0); }
inline void other_lanes() { TTI_SFPCOMPC(0, 0, 0, 0); }

template <uint32_t C>
inline void where_negative() { TTI_SFPSETCC(0, C, 0, 0); }  // by the sign bit

template <uint32_t C>
inline void where_zero() { TTI_SFPSETCC(0, C, 0, 6); }  // by all bits

// Where D > C, both in the order that `sort` has.
template <uint32_t D, uint32_t C>
inline void where_greater() { TTI_SFPGT(0, C, D, 1); }

}  // namespace lanes
