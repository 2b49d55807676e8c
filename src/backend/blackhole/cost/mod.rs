//! What a request costs on the card, from shapes and documented rates.
//!
//! Every operation of a program is counted: bytes of DRAM by bank, bytes through the network on chip, products of tiles,
//! instructions of the vector unit, each on the busiest core. DRAM, network and arithmetic work at the same time, so that
//! an operation takes as long as the slowest of them; operations follow one another. Vision, language model and adapter run
//! as programs from traces, whose starts are added; the Euler steps are one persistent program, through which the weights
//! are streamed in every step.
//!
//! This is a plan and no measurement: nothing in it has run on a card.

mod attention;
mod cores;
mod dram;
mod label;
mod launches;
mod movement;
mod op;
mod operands;
mod placement;
mod plan;
mod product;
mod rates;
mod spread;
#[cfg(test)]
mod tests;
mod vector;
mod work;

pub use cores::{BANKS, Execution};
pub use op::{Bound, OpCost};
pub use plan::{Assumptions, Group, Plan, StageCost};
pub use rates::{ChangedRate, RATES, Rate, RateError, Rates};
