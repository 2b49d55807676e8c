//! Values of synthetic weights: a hash of the tensor's name and the element's index (`spec/synthetic-weights.md`).

use half::bf16;
use multiversion::multiversion;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// 64-bit FNV-1a.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// One step of SplitMix64.
#[inline(always)]
pub fn splitmix64(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Where the values of a tensor lie: evenly in `centre - scale .. centre + scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub centre: f64,
    pub scale: f64,
}

impl Spread {
    /// The first matching rule of the specification's table.
    pub fn of(name: &str, shape: &[usize]) -> Self {
        const TABLES: [&str; 6] = [
            "embed_tokens.weight",
            "lm_head.weight",
            "position_embedding.weight",
            "pos_embed.weight",
            "future_tokens.weight",
            ".probe",
        ];
        let rank = shape.len();
        let unit_variance = |inputs: usize| (3.0 / inputs as f64).sqrt();
        if rank <= 1 && name.ends_with("weight") {
            Self { centre: 1.0, scale: 0.1 }
        } else if rank <= 1 || (rank == 2 && name.ends_with(".b")) {
            Self { centre: 0.0, scale: 0.02 }
        } else if TABLES.iter().any(|suffix| name.ends_with(suffix)) {
            Self { centre: 0.0, scale: 0.02 * 3.0_f64.sqrt() }
        } else if rank == 3 && name.ends_with(".W") {
            Self { centre: 0.0, scale: unit_variance(shape[1]) }
        } else {
            Self { centre: 0.0, scale: unit_variance(shape[1..].iter().product()) }
        }
    }
}

/// Writes elements `first..first + out.len()` of the tensor whose name hashes to `name_hash`.
pub fn fill(name_hash: u64, spread: Spread, first: u64, out: &mut [bf16]) {
    fill_bits(
        name_hash.wrapping_add(first),
        spread.centre,
        spread.scale,
        bytemuck::cast_slice_mut(out),
    );
}

#[multiversion(targets(
    "x86_64+avx512f+avx512dq+avx512vl+avx512bw",
    "x86_64+avx2",
    "aarch64+neon"
))]
fn fill_bits(start: u64, centre: f64, scale: f64, out: &mut [u16]) {
    for (offset, bits) in out.iter_mut().enumerate() {
        let hash = splitmix64(start.wrapping_add(offset as u64));
        // 24 random bits k: u = k 2^-24 and r = 2u - 1 are exact, so r may be formed from k 2^-23 directly.
        let k = (hash >> 40) as i32;
        let r = f64::from(k) * (1.0 / 8_388_608.0) - 1.0;
        *bits = bf16_bits((centre + scale * r) as f32);
    }
}

/// Rounds a finite number to bf16, ties to even.
#[inline(always)]
fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use serde_json::Value;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn check_values_of_the_specification() {
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    /// Name, shape, hash of the name, hash and `r` of element 0, first three patterns (`spec/n16.md` section 9).
    type Vector = (&'static str, &'static [usize], u64, u64, f64, [u16; 3]);

    const VECTORS: [Vector; 6] = [
        (
            "action_head.vlln.weight",
            &[2048],
            0x0dab_0c2e_ba35_de2a,
            0x1d67_ddd8_dd2f_8fe7,
            -0.7702678442001343,
            [0x3f6c, 0x3f8b, 0x3f75],
        ),
        (
            "action_head.vlln.bias",
            &[2048],
            0xe2e7_e91e_46e3_4c77,
            0x71ce_a88b_3fe9_35b8,
            -0.11088085174560547,
            [0xbb11, 0x3c66, 0x3c1e],
        ),
        (
            "action_head.state_encoder.layer1.W",
            &[32, 128, 1024],
            0x603a_bc69_843a_ee33,
            0xdfd6_f10a_b4f5_6c01,
            0.7487469911575317,
            [0x3deb, 0xbdef, 0xbe1b],
        ),
        (
            "action_head.state_encoder.layer1.b",
            &[32, 1024],
            0x603a_ef69_843b_44dc,
            0x4400_0a19_4a79_b960,
            -0.4687488079071045,
            [0xbc1a, 0x3b31, 0x3bb9],
        ),
        (
            "backbone.model.language_model.model.embed_tokens.weight",
            &[151680, 2048],
            0x68d5_304e_4d4c_cd14,
            0xe379_ba2e_8e80_c498,
            0.7771522998809814,
            [0x3cdd, 0xbc83, 0x3cc2],
        ),
        (
            "action_head.model.transformer_blocks.0.attn1.to_k.weight",
            &[1536, 2048],
            0x64e4_d37d_ad4d_0038,
            0xb0e9_60ad_de59_3232,
            0.3821220397949219,
            [0x3c70, 0xbd12, 0xbcf1],
        ),
    ];

    #[test]
    fn first_elements_match_the_vectors() {
        for (name, shape, name_hash, first_hash, r, patterns) in VECTORS {
            assert_eq!(fnv1a64(name.as_bytes()), name_hash, "{name}");
            let hash = splitmix64(name_hash);
            assert_eq!(hash, first_hash, "{name}");
            assert_eq!(2.0 * ((hash >> 40) as f64 / 16_777_216.0) - 1.0, r, "{name}");
            let mut values = [bf16::ZERO; 3];
            fill(name_hash, Spread::of(name, shape), 0, &mut values);
            assert_eq!(values.map(bf16::to_bits), patterns, "{name}");
        }
    }

    #[test]
    fn whole_tensors_match_their_hashes() {
        let cases: [(&str, &[usize], u64); 4] = [
            ("action_head.vlln.weight", &[2048], 0x4c4f_a496_924c_26d7),
            ("action_head.vlln.bias", &[2048], 0x43b6_686c_3705_024a),
            (
                "action_head.model.transformer_blocks.0.attn1.to_k.weight",
                &[96, 32],
                0x22c5_c7df_b6ca_1cae,
            ),
            ("action_head.state_encoder.layer1.W", &[3, 128, 64], 0xa35f_697c_2148_a38f),
        ];
        for (name, shape, expected) in cases {
            let mut values = vec![bf16::ZERO; shape.iter().product()];
            fill(fnv1a64(name.as_bytes()), Spread::of(name, shape), 0, &mut values);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert_eq!(fnv1a64(&bytes), expected, "{name}");
        }
    }

    /// All versions share the generator; the golden table of N1.7 holds hashes of whole tensors of every kind.
    #[test]
    fn tensors_of_another_version_match_their_hashes() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden/n17/tensors.json");
        let Ok(text) = fs::read(&path) else {
            println!("skipped: ../shared/golden is not here");
            return;
        };
        let table: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
        assert!(!table.is_empty());
        for (name, entry) in table {
            let shape: Vec<usize> = serde_json::from_value(entry["shape"].clone()).unwrap();
            let mut values = vec![bf16::ZERO; shape.iter().product()];
            fill(fnv1a64(name.as_bytes()), Spread::of(&name, &shape), 0, &mut values);
            let hash = Sha256::digest(bytemuck::cast_slice::<_, u8>(&values));
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(entry["sha256_bf16le"], hash, "{name}");
        }
    }

    #[test]
    fn parts_of_a_tensor_are_the_whole() {
        let spread = Spread { centre: 0.0, scale: 0.25 };
        let mut whole = vec![bf16::ZERO; 1000];
        fill(u64::MAX - 300, spread, 0, &mut whole);
        let mut parts = vec![bf16::ZERO; 1000];
        let (left, right) = parts.split_at_mut(333);
        fill(u64::MAX - 300, spread, 0, left);
        fill(u64::MAX - 300, spread, 333, right);
        assert_eq!(whole, parts);
    }

    #[test]
    fn rounding_is_that_of_the_bf16_type() {
        for seed in 0..100_000_u64 {
            let value = f32::from_bits(splitmix64(seed) as u32);
            if value.is_finite() {
                assert_eq!(bf16_bits(value), bf16::from_f32(value).to_bits(), "{value:e}");
            }
        }
    }

    #[test]
    fn spreads_follow_the_first_matching_rule() {
        let table = 0.02 * 3.0_f64.sqrt();
        let cases: [(&str, &[usize], f64, f64); 8] = [
            ("norm.weight", &[4], 1.0, 0.1),
            ("linear.bias", &[4], 0.0, 0.02),
            ("head.attention.in_proj_bias", &[12], 0.0, 0.02),
            ("layer1.b", &[2, 4], 0.0, 0.02),
            ("head.probe", &[1, 1, 12], 0.0, table),
            ("model.lm_head.weight", &[8, 3], 0.0, table),
            ("layer1.W", &[2, 12, 5], 0.0, 0.5),
            ("patch.weight", &[5, 3, 2, 2], 0.0, 0.5),
        ];
        for (name, shape, centre, scale) in cases {
            assert_eq!(Spread::of(name, shape), Spread { centre, scale }, "{name}");
        }
    }
}
