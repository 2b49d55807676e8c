//! What goes between host and card in a request, beside the stages.

use serde::Serialize;

use crate::backend::blackhole::cost::Rates;
use crate::program::{ACTIONS, BufferSource, IndexInput, Input, Program};

/// Bytes of a value that goes in as bf16; noise and ids go in as they are, and the chunk comes out as f32.
const BF16_BYTES: usize = 2;
const WORD_BYTES: usize = 4;

/// Transfers of a request. They are not part of the sum of the stages, as they are not in the documents': inputs go to
/// the card on a queue of their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    pub to_card_bytes: usize,
    pub to_card_s: f64,
    pub to_host_bytes: usize,
    pub to_host_s: f64,
}

impl Host {
    /// Transfers of a request of `program`, of which the pictures of `pictures` are new.
    pub fn new(program: &Program, pictures: &Program, rates: &Rates) -> Self {
        let to_card_bytes = inputs(pictures, |input| input == Input::Pixels)
            + inputs(program, |input| input != Input::Pixels)
            + token_ids(program);
        let result = program.exports.iter().find(|(name, _)| name == ACTIONS);
        let to_host_bytes = result.map_or(0, |(_, buffer)| {
            let spec = &program.buffers[buffer.0];
            spec.rows * spec.cols * WORD_BYTES
        });
        let seconds = |bytes: usize, gigabytes: f64| bytes as f64 / (gigabytes * 1e9);
        Self {
            to_card_bytes,
            to_card_s: seconds(to_card_bytes, rates.host_to_card),
            to_host_bytes,
            to_host_s: seconds(to_host_bytes, rates.card_to_host),
        }
    }
}

fn inputs(program: &Program, wanted: impl Fn(Input) -> bool) -> usize {
    let sizes = program.buffers.iter().filter_map(|buffer| match buffer.source {
        BufferSource::Input(input) if wanted(input) => {
            let value = if input == Input::Noise { WORD_BYTES } else { BF16_BYTES };
            Some(buffer.rows * buffer.cols * value)
        }
        _ => None,
    });
    sizes.sum()
}

/// The ids of all tokens; lists of rows follow from the layout.
fn token_ids(program: &Program) -> usize {
    let lists = program.indices.iter().filter(|index| index.input == IndexInput::TokenIds);
    lists.map(|index| index.len * WORD_BYTES).sum()
}
