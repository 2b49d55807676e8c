//! f32 to bf16.

use half::bf16;

/// What the wheel makes of every NaN.
const NAN: u16 = 0x7fc0;

/// To nearest, ties to even, subnormal numbers too; NaN loses its sign and payload, which `bf16::from_f32` keeps.
#[inline(always)]
pub fn round_to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    bf16::from_bits(if bits << 1 > 0xff00_0000 { NAN } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_half_does() {
        let all = (0..=u32::MAX).step_by(997).map(f32::from_bits);
        for value in all.filter(|value| !value.is_nan()) {
            let expected = bf16::from_f32(value);
            assert_eq!(round_to_bf16(value).to_bits(), expected.to_bits(), "{value:e}");
        }
    }

    #[test]
    fn ties_overflow_and_nan() {
        let rounded = |bits| round_to_bf16(f32::from_bits(bits)).to_bits();
        assert_eq!(rounded(0x3f80_8000), 0x3f80);
        assert_eq!(rounded(0x3f81_8000), 0x3f82);
        assert_eq!(rounded(0x3f80_8001), 0x3f81);
        assert_eq!(rounded(0x7f7f_ffff), 0x7f80);
        assert_eq!(rounded(0xff80_0000), 0xff80);
        assert_eq!(rounded(0x8000_0000), 0x8000);
        for nan in [0x7f80_0001, 0x7fff_ffff, 0xff80_0001, 0xffff_ffff] {
            assert_eq!(rounded(nan), NAN);
        }
    }
}
