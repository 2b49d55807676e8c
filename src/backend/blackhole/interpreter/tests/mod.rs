//! Little programs written by hand, and what becomes of them when one thing in them is wrong.

mod build;
mod faults;
mod multicast;
mod norm;
mod packets;
mod product;
mod rearrange;
mod relay;
mod rows;
mod single;

use build::Built;

use super::{Fault, Schedule};

/// Seeds of the schedules under which every program runs.
const SEEDS: u32 = 24;

/// Runs a sound program under many schedules; all of them have to give the same bytes.
fn run(built: &Built) -> Vec<Vec<f32>> {
    let expected = built.run(&mut Schedule::round_robin()).expect("a sound program");
    for seed in 0..SEEDS {
        let found = built.run(&mut Schedule::seeded(seed)).expect("a sound program");
        let bits = |outputs: &[Vec<f32>]| -> Vec<u32> {
            outputs.iter().flatten().map(|value| value.to_bits()).collect()
        };
        assert_eq!(bits(&found), bits(&expected), "seed {seed}");
    }
    expected
}

/// What is wrong with a program, which has to be told under every schedule; in some orders another fault may come first.
fn fault(built: &Built) -> Fault {
    for seed in 0..SEEDS {
        let found = built.run(&mut Schedule::seeded(seed));
        assert!(found.is_err(), "seed {seed} did not see it");
    }
    built.run(&mut Schedule::round_robin()).expect_err("a fault")
}
