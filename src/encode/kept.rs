//! What was made of the frames seen last, so that no frame is encoded twice.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::contract::Frame;

/// Most frames whose results are kept: a second of history at 60 frames a second.
const LIMIT: usize = 64;

/// Results by the identity of their frame, as long as someone else holds the frame.
#[derive(Debug, Default)]
pub struct Kept<T> {
    /// Oldest first. A weak reference keeps the frame's address from being used for another frame, but not its pixels.
    entries: VecDeque<(Weak<Frame>, T)>,
}

impl<T: Default> Kept<T> {
    /// What `make` made of `frame`, now or earlier. `make` is handed a result of a forgotten frame to write over, or a
    /// new one.
    pub fn get_or_make(&mut self, frame: &Arc<Frame>, make: impl FnOnce(&mut T)) -> &T {
        let known = self.entries.iter().position(|(kept, _)| is_same(kept, frame));
        let at = known.unwrap_or_else(|| {
            let mut value = self.forget_one();
            make(&mut value);
            self.entries.push_back((Arc::downgrade(frame), value));
            self.entries.len() - 1
        });
        &self.entries[at].1
    }

    /// Takes out the result of a frame that nobody holds any more, or where there are too many the oldest.
    fn forget_one(&mut self) -> T {
        let gone = self.entries.iter().position(|(frame, _)| frame.strong_count() == 0);
        let full = (self.entries.len() >= LIMIT).then_some(0);
        let forgotten = gone.or(full).and_then(|at| self.entries.remove(at));
        forgotten.map(|(_, value)| value).unwrap_or_default()
    }
}

fn is_same(kept: &Weak<Frame>, frame: &Arc<Frame>) -> bool {
    std::ptr::eq(kept.as_ptr(), Arc::as_ptr(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Arc<Frame> {
        Arc::new(Frame::new(64, 64, vec![0; 3 * 64 * 64]).unwrap())
    }

    #[test]
    fn a_frame_is_made_once() {
        let mut kept = Kept::<u32>::default();
        let (one, other) = (frame(), frame());
        assert_eq!(*kept.get_or_make(&one, |value| *value = 1), 1);
        assert_eq!(*kept.get_or_make(&other, |value| *value = 2), 2);
        assert_eq!(*kept.get_or_make(&one.clone(), |_| panic!("made again")), 1);
    }

    #[test]
    fn results_of_frames_that_are_gone_are_written_over() {
        let mut kept = Kept::<Vec<u8>>::default();
        let held = frame();
        kept.get_or_make(&held, |value| value.push(1));
        for _ in 0..1000 {
            // Allocators hand the same address out again and again; the frame is another one each time.
            let mut made = false;
            kept.get_or_make(&frame(), |_| made = true);
            assert!(made);
        }
        assert_eq!(kept.entries.len(), 2);
        kept.get_or_make(&held, |_| panic!("made again"));
    }

    #[test]
    fn the_oldest_goes_where_there_are_too_many() {
        let mut kept = Kept::<usize>::default();
        let frames: Vec<_> = (0..LIMIT + 3).map(|_| frame()).collect();
        for (number, frame) in frames.iter().enumerate() {
            kept.get_or_make(frame, |value| *value = number);
        }
        assert_eq!(kept.entries.len(), LIMIT);
        assert_eq!(*kept.get_or_make(&frames[3], |_| panic!("made again")), 3);
        let mut made = false;
        kept.get_or_make(&frames[2], |_| made = true);
        assert!(made);
    }
}
