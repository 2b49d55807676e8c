//! What came on one topic over the whole recording.

use crate::node::stats::InputStats;

/// More kinds of refusals or formats than this are counted, but not kept one by one.
const MAX_KINDS: usize = 32;

/// The messages of one input.
#[derive(Clone, Debug, Default)]
pub struct InputLog {
    /// The checkpoint's key of a camera; the names of the groups of a state; `transforms`.
    pub name: String,
    pub topic: String,
    pub message_type: String,
    pub stats: InputStats,
    /// Times of reception of what was taken in, nanoseconds.
    pub taken_ns: Vec<i64>,
    /// Why messages were refused, by kind.
    pub refusals: Vec<Kind>,
    /// What the messages look like: encodings and sizes of pictures, orders of joints.
    pub formats: Vec<Kind>,
    /// Times of reception of joint states whose names came in another order than before.
    pub order_changes_ns: Vec<i64>,
    /// What is worth saying once about accepted pictures.
    pub notes: Vec<String>,
}

/// A kind of message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Of the first one.
    pub text: String,
    pub count: u64,
    /// Time of reception of the first and of the last one, nanoseconds.
    pub first_ns: i64,
    pub last_ns: i64,
}

impl InputLog {
    pub fn new(name: &str, topic: &str, message_type: &str) -> Self {
        let [name, topic, message_type] = [name, topic, message_type].map(str::to_owned);
        Self { name, topic, message_type, ..Self::default() }
    }

    /// A message was refused.
    pub fn refused(&mut self, reason: &str, log_ns: i64, steady_ns: i64) {
        self.stats.refused(reason, steady_ns);
        note(&mut self.refusals, reason, log_ns, without_numbers);
    }

    /// A message has this format.
    pub fn has_format(&mut self, format: String, log_ns: i64) {
        note(&mut self.formats, &format, log_ns, str::to_owned);
    }

    pub fn note_once(&mut self, note: String) {
        if self.notes.len() < MAX_KINDS && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Messages per second between the first and the last that was taken in.
    pub fn mean_hz(&self) -> Option<f64> {
        let (first, last) = (self.taken_ns.first()?, self.taken_ns.last()?);
        let span_s = (last - first) as f64 / 1e9;
        (span_s > 0.0).then(|| (self.taken_ns.len() - 1) as f64 / span_s)
    }

    /// The longest time without anything that was taken in: its two ends.
    pub fn longest_gap(&self) -> Option<[i64; 2]> {
        let gaps = self.taken_ns.windows(2).map(|pair| [pair[0], pair[1]]);
        // Of two that are equally long, the first.
        gaps.rev().max_by_key(|[from, to]| to.saturating_sub(*from))
    }
}

/// Counts a text among those of its kind.
fn note(kinds: &mut Vec<Kind>, text: &str, log_ns: i64, kind_of: impl Fn(&str) -> String) {
    let wanted = kind_of(text);
    let known = kinds.iter().position(|kind| kind_of(&kind.text) == wanted);
    match known {
        Some(place) => {
            kinds[place].count += 1;
            kinds[place].last_ns = log_ns;
        }
        None if kinds.len() < MAX_KINDS => {
            kinds.push(Kind { text: text.to_owned(), count: 1, first_ns: log_ns, last_ns: log_ns })
        }
        None => {}
    }
}

/// Sentences that differ in their numbers say the same.
fn without_numbers(text: &str) -> String {
    let mut kind = String::with_capacity(text.len());
    for c in text.chars() {
        let is_digit = c.is_ascii_digit();
        if !is_digit {
            kind.push(c);
        } else if !kind.ends_with('#') {
            kind.push('#');
        }
    }
    // Numbers with a point, and without.
    kind.replace("#.#", "#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_by_kind() {
        let mut log = InputLog::new("ego", "/ego", "x");
        log.refused("its stamp is 5.012 s ahead", 10, 10);
        log.refused("its stamp is 6 s ahead", 20, 20);
        log.refused("encoding 'yuv' is not supported", 30, 30);
        let kinds: Vec<_> = log.refusals.iter().map(|k| (k.count, k.first_ns, k.last_ns)).collect();
        assert_eq!(kinds, [(2, 10, 20), (1, 30, 30)]);
        assert_eq!(log.refusals[0].text, "its stamp is 5.012 s ahead");
        assert_eq!(log.stats.refused_count(), 3);
    }

    #[test]
    fn rates_and_gaps_are_those_of_what_was_taken_in() {
        let mut log = InputLog::new("ego", "/ego", "x");
        assert_eq!((log.mean_hz(), log.longest_gap()), (None, None));
        log.taken_ns = vec![0, 100_000_000, 200_000_000, 500_000_000];
        assert_eq!(log.mean_hz(), Some(6.0));
        assert_eq!(log.longest_gap(), Some([200_000_000, 500_000_000]));
    }
}
