//! Changes at random.

use rand_mt::Mt64;

/// Changes that a case has at most.
const MAX_CHANGES: u32 = 8;
/// Longest piece that is moved or removed.
const MAX_PIECE: usize = 64;
/// Bytes at the edges of what lengths, counts and signs can say.
const EDGES: [u8; 10] = [0, 1, 0x1F, 0x20, 0x7F, 0x80, 0x8F, 0x9F, 0xFE, 0xFF];

/// Numbers of one case.
pub struct Mutator(Mt64);

impl Mutator {
    pub fn of_case(case: u64) -> Self {
        Self(Mt64::new(case))
    }

    /// One of the seeds, changed.
    pub fn change(&mut self, seeds: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
        let mut data = seeds[self.below(seeds.len())].clone();
        // Half of the cases have one change, a quarter two: with many, nothing but the first is reached.
        for _ in 0..(1 + self.0.next_u64().trailing_zeros()).min(MAX_CHANGES) {
            self.step(&mut data, seeds, words);
        }
        data
    }

    fn step(&mut self, data: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&[u8]]) {
        let at = self.place(data.len());
        let piece = at..data.len().min(at + 1 + self.below(MAX_PIECE));
        match self.below(9) {
            0 if at < data.len() => data[at] ^= 1 << self.below(8),
            1 if at < data.len() => data[at] = EDGES[self.below(EDGES.len())],
            2 if at < data.len() => data[at] = self.0.next_u64() as u8,
            3 => data.truncate(at),
            4 => drop(data.drain(piece)),
            5 => {
                let copy = data[piece].to_vec();
                let to = self.place(data.len());
                data.splice(to..to, copy);
            }
            6 => drop(data.splice(at..at, words[self.below(words.len())].iter().copied())),
            7 => {
                let word = words[self.below(words.len())];
                let end = data.len().min(at + word.len());
                data.splice(at..end, word.iter().copied());
            }
            // The start of one and the end of another.
            8 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.place(other.len());
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
            // There is no byte to be changed.
            _ => data.push(self.0.next_u64() as u8),
        }
    }

    /// A place in so many bytes, often near their start, where what they say stands.
    fn place(&mut self, length: usize) -> usize {
        let near = if self.below(2) == 0 { length.min(256) } else { length };
        self.below(near + 1)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }
}
