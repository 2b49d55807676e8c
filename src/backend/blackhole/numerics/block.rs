//! A row of a face in block floating point, and back; loops over 16 values without branches, which become vector code.

use half::bf16;

use super::tile::{FACE, FaceRow};

/// Values that share an exponent. A code is the sign above `MAGNITUDE` bits of magnitude.
pub struct Block {
    pub exponent: u8,
    pub codes: FaceRow<u8>,
}

/// Bits of magnitude in bfp8_b.
pub const BFP8_MAGNITUDE: u32 = 7;
/// Bits of magnitude in bfp4_b.
pub const BFP4_MAGNITUDE: u32 = 3;

/// A row of bf16. Their significands have 8 bits, so that 16 hold them with all that rounding looks at.
#[inline(always)]
pub fn of_bf16<const MAGNITUDE: u32>(row: &FaceRow<bf16>) -> Block {
    // Bits below the magnitude when the significand's top bit is bit 14.
    let below = 15 - MAGNITUDE;
    let mut largest = 0;
    for value in row {
        largest = max(largest, value.to_bits() & 0x7fff);
    }
    let largest = largest >> 7;
    let mut codes = [0; FACE];
    for (code, value) in codes.iter_mut().zip(row) {
        let bits = value.to_bits();
        let exponent = bits >> 7 & 0xff;
        let significand = if exponent == 0 { 0 } else { bits & 0x7f | 0x80 };
        let distance = largest - exponent;
        // From a distance of 8 on nothing is left, and no tie that would round up.
        let aligned = if distance > 7 { 0 } else { significand << (7 - (distance & 7)) };
        let odd = aligned >> below & 1;
        let rounded = (aligned + ((1 << (below - 1)) - 1 + odd)) >> below;
        let magnitude = min(rounded, (1 << MAGNITUDE) - 1);
        let sign = if magnitude == 0 { 0 } else { bits >> 15 << MAGNITUDE };
        *code = (sign | magnitude) as u8;
    }
    Block { exponent: largest as u8, codes }
}

/// A row of f32. As on the wheel, bits that leave the 24 of a significand are forgotten before it is rounded.
#[inline(always)]
pub fn of_f32<const MAGNITUDE: u32>(row: &FaceRow<f32>) -> Block {
    let below = 24 - MAGNITUDE;
    let mut largest = 0;
    for value in row {
        largest = max(largest, value.to_bits() & 0x7fff_ffff);
    }
    let largest = largest >> 23;
    let mut codes = [0; FACE];
    for (code, value) in codes.iter_mut().zip(row) {
        let bits = value.to_bits();
        let exponent = bits >> 23 & 0xff;
        let significand = if exponent == 0 { 0 } else { bits & 0x7f_ffff | 0x80_0000 };
        let distance = largest - exponent;
        let aligned = if distance > 31 { 0 } else { significand >> (distance & 31) };
        let odd = aligned >> below & 1;
        let rounded = (aligned + ((1 << (below - 1)) - 1 + odd)) >> below;
        let magnitude = min(rounded, (1 << MAGNITUDE) - 1);
        let sign = if magnitude == 0 { 0 } else { bits >> 31 << MAGNITUDE };
        *code = (sign | magnitude) as u8;
    }
    Block { exponent: largest as u8, codes }
}

/// The f32 of a row, as bits. The lower half is always zero: a value has no more bits than a bf16.
///
/// At the very bottom the wheel's unpacking is not arithmetic, and this repeats it: a value whose exponent would be
/// negative is +0, and one whose exponent would be zero keeps its fraction without the bit above it.
#[inline(always)]
pub fn to_f32_bits<const MAGNITUDE: u32>(block: &Block) -> FaceRow<u32> {
    // The exponent that makes the magnitude, taken as a whole number, the value.
    let exponent = i32::from(block.exponent) - (126 + MAGNITUDE.cast_signed());
    let mut values = [0; FACE];
    for (value, code) in values.iter_mut().zip(block.codes) {
        let code = i32::from(code);
        let sign = (code >> MAGNITUDE).cast_unsigned() << 31;
        let magnitude = code & ((1 << MAGNITUDE) - 1);
        // Converting to f32 finds the top bit; adding to the exponent reaches 255 at most.
        let normal = (magnitude as f32).to_bits().cast_signed() + (exponent << 23);
        let bits = if normal < 0 { 0 } else { normal.cast_unsigned() | sign };
        *value = if magnitude == 0 { sign } else { bits };
    }
    values
}

// Those of the standard library are not always inlined.
#[inline(always)]
fn max<T: PartialOrd>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[inline(always)]
fn min<T: PartialOrd>(a: T, b: T) -> T {
    if a < b { a } else { b }
}
