//! What the tests of the kernels share: random matrices and comparison with f64.

use half::bf16;

/// Reproducible numbers in -1 .. 1, all different for different seeds.
pub fn random(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
        })
        .collect()
}

pub fn random_bf16(seed: u64, len: usize) -> Vec<bf16> {
    random(seed, len).into_iter().map(bf16::from_f32).collect()
}

pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// Panics where a value is further than `tolerance` from the exact one.
pub fn assert_close(what: &str, found: &[f32], exact: &[f64], tolerance: f64) {
    assert_eq!(found.len(), exact.len(), "{what}: lengths");
    for (index, (found, exact)) in found.iter().zip(exact).enumerate() {
        let error = (f64::from(*found) - exact).abs();
        assert!(
            error <= tolerance,
            "{what}[{index}]: {found} instead of {exact}, off by {error:e}"
        );
    }
}

/// What `work` gives on a pool of so many threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}
