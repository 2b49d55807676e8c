//! Horizontal passes as vector code.
//!
//! A horizontal pass reads, for each output pixel, a few neighbouring input pixels. Where a resize changes the
//! size little, long stretches of outputs read inputs at one and the same distance, so that lane `l` of a
//! vector of outputs needs exactly lane `l` of a vector of inputs: no gathering. A [`LaneTable`] cuts the
//! outputs into such vectors. Vectors at the end of a stretch spill into the next one, which overwrites them.

use super::CHANNELS;

/// Interleaved samples (not pixels) computed at once.
pub(super) const LANES: usize = 16;

/// What one output reads along one axis: `weights.len()` inputs from `start` on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taps<W> {
    pub start: usize,
    pub weights: Vec<W>,
}

/// One vector of outputs.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// First output sample.
    output: usize,
    /// Input sample that the first tap of the first output reads; tap `t` lies `3 t` further on.
    input: usize,
}

/// A horizontal pass over rows of interleaved RGB.
#[derive(Clone, Debug)]
pub(super) struct LaneTable<W> {
    taps: usize,
    steps: Vec<Step>,
    /// `[steps, taps]`
    weights: Vec<[W; LANES]>,
    input_len: usize,
    output_len: usize,
}

impl<W: Copy + Default> LaneTable<W> {
    /// `outputs` are the taps of each output pixel; `source` is the width of the input in pixels.
    pub fn new(outputs: &[Taps<W>], source: usize) -> Self {
        let taps = outputs.iter().map(|output| output.weights.len()).max().unwrap_or(0);
        let mut table =
            Self { taps, steps: Vec::new(), weights: Vec::new(), input_len: 0, output_len: 0 };
        let mut first = 0;
        while first < outputs.len() {
            let (end, lead) = stretch(outputs, first, taps);
            table.push_stretch(outputs, first..end, lead);
            first = end;
        }
        let last_read = |step: &Step| step.input + CHANNELS * taps.saturating_sub(1) + LANES;
        let furthest = table.steps.iter().map(last_read).max().unwrap_or(0);
        table.input_len = furthest.max(CHANNELS * source);
        table.output_len = table.steps.iter().map(|step| step.output + LANES).max().unwrap_or(0);
        table
    }

    /// Appends the vectors for the outputs in `range`, where output `d` reads from input `d + lead` on.
    fn push_stretch(&mut self, outputs: &[Taps<W>], range: std::ops::Range<usize>, lead: isize) {
        let end = CHANNELS * range.end;
        for output in (CHANNELS * range.start..end).step_by(LANES) {
            let input = output.wrapping_add_signed(CHANNELS as isize * lead);
            self.steps.push(Step { output, input });
            for tap in 0..self.taps {
                let mut lanes = [W::default(); LANES];
                for (sample, lane) in (output..end).zip(&mut lanes) {
                    let pixel = sample / CHANNELS;
                    let reads = pixel.wrapping_add_signed(lead) + tap;
                    let own = &outputs[pixel];
                    let weight = reads.checked_sub(own.start).and_then(|at| own.weights.get(at));
                    *lane = weight.copied().unwrap_or_default();
                }
                self.weights.push(lanes);
            }
        }
    }

    /// Samples that an input row must have; those beyond the picture have no effect.
    pub fn input_len(&self) -> usize {
        self.input_len
    }

    /// Samples that an output row must have room for; those beyond the picture are scratch.
    pub fn output_len(&self) -> usize {
        self.output_len
    }
}

impl<W: Copy + Into<i32>> LaneTable<W> {
    /// Writes `finish(bias + sum of weight * sample)` for every output sample. To be called from a function that
    /// is compiled for the processor at hand, into which all of this is inlined.
    #[inline(always)]
    pub fn run<O>(&self, input: &[u8], bias: i32, output: &mut [O], finish: impl Fn(i32) -> O) {
        // 2: a bilinear enlargement. 4 to 6: a bicubic resize that changes little.
        with_known_count!(
            self.taps,
            [2, 4, 5, 6],
            TAPS => self.run_with(TAPS, input, bias, output, finish),
            self.run_with(self.taps, input, bias, output, finish)
        )
    }

    /// `taps` are the table's, here once more because the compiler may know them.
    #[inline(always)]
    fn run_with<O>(
        &self,
        taps: usize,
        input: &[u8],
        bias: i32,
        output: &mut [O],
        finish: impl Fn(i32) -> O,
    ) {
        for (step, weights) in self.steps.iter().zip(self.weights.chunks_exact(taps)) {
            let input = &input[step.input..][..LANES + CHANNELS * (taps - 1)];
            let mut sums = [bias; LANES];
            for tap in 0..taps {
                let samples = &input[CHANNELS * tap..][..LANES];
                for lane in 0..LANES {
                    sums[lane] += weights[tap][lane].into() * i32::from(samples[lane]);
                }
            }
            for (out, sum) in output[step.output..][..LANES].iter_mut().zip(sums) {
                *out = finish(sum);
            }
        }
    }
}

/// The longest run of outputs from `first` on that can read at one distance, and that distance.
///
/// An output with fewer than `taps` inputs of its own may start earlier, with weights of zero in front.
fn stretch<W>(outputs: &[Taps<W>], first: usize, taps: usize) -> (usize, isize) {
    let leads = |pixel: usize| {
        let own = &outputs[pixel];
        let earliest = (own.start + own.weights.len()).saturating_sub(taps);
        (earliest as isize - pixel as isize, own.start as isize - pixel as isize)
    };
    let (mut low, mut high) = leads(first);
    let mut end = first + 1;
    while end < outputs.len() {
        let (next_low, next_high) = leads(end);
        if low.max(next_low) > high.min(next_high) {
            break;
        }
        (low, high) = (low.max(next_low), high.min(next_high));
        end += 1;
    }
    (end, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pass as it is defined, for one row of pixels.
    fn plain(outputs: &[Taps<i32>], row: &[u8]) -> Vec<i32> {
        let sample = |pixel: usize, channel: usize| {
            let own = &outputs[pixel];
            let reads = (own.start..).map(|input| i32::from(row[3 * input + channel]));
            own.weights.iter().zip(reads).map(|(weight, sample)| weight * sample).sum::<i32>()
        };
        (0..3 * outputs.len()).map(|i| 5 + sample(i / 3, i % 3)).collect()
    }

    fn vectorised(outputs: &[Taps<i32>], row: &[u8]) -> Vec<i32> {
        let table = LaneTable::new(outputs, row.len() / 3);
        let mut input = row.to_vec();
        // Whatever lies beyond the row must not matter.
        input.resize(table.input_len(), 171);
        let mut out = vec![0; table.output_len()];
        table.run(&input, 5, &mut out, |sum| sum);
        out.truncate(3 * outputs.len());
        out
    }

    fn any_pass() -> impl Strategy<Value = (Vec<Taps<i32>>, Vec<u8>)> {
        (1usize..60, 1usize..8).prop_flat_map(|(source, most)| {
            let taps = (0..source, proptest::collection::vec(-9i32..9, 1..=most)).prop_map(
                move |(start, mut weights)| {
                    weights.truncate(source - start);
                    Taps { start, weights }
                },
            );
            (
                proptest::collection::vec(taps, 1..80),
                proptest::collection::vec(any::<u8>(), 3 * source..=3 * source),
            )
        })
    }

    proptest! {
        #[test]
        fn equals_the_plain_pass((outputs, row) in any_pass()) {
            prop_assert_eq!(vectorised(&outputs, &row), plain(&outputs, &row));
        }
    }

    #[test]
    fn a_resize_that_changes_little_has_long_stretches() {
        let outputs: Vec<_> =
            (0..256).map(|d| Taps { start: d * 243 / 256, weights: vec![1i16, 1] }).collect();
        let table = LaneTable::new(&outputs, 243);
        // 13 distances of about 59 samples each: 4 vectors of 16 apiece.
        assert!(table.steps.len() <= 4 * 14, "{} vectors", table.steps.len());
    }
}
