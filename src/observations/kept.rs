//! The newest few of something, by number.

use std::collections::VecDeque;

use super::KEPT_FRAMES;

/// The newest [`KEPT_FRAMES`] frames of one camera, in whatever form.
#[derive(Debug)]
pub(super) struct Newest<T>(VecDeque<(u64, T)>);

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Newest<T> {
    pub fn push(&mut self, number: u64, item: T) {
        if self.0.len() == KEPT_FRAMES {
            self.0.pop_front();
        }
        self.0.push_back((number, item));
    }

    pub fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.0.iter()
    }
}
