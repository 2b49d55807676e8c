//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar that counts bytes.
pub struct Bytes(ProgressBar);

impl Bytes {
    pub fn new(what: &'static str) -> Self {
        let style = ProgressStyle::with_template(
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::no_length().with_style(style).with_message(what))
    }

    /// `done` of `total` bytes are finished.
    pub fn update(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// A progress bar that counts things.
pub struct Count(ProgressBar);

impl Count {
    /// `total` is how many there are, where that is known.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        Self(bar.with_style(style).with_message(what))
    }

    /// One more is done.
    pub fn step(&self) {
        self.0.inc(1);
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// A progress bar over recorded time.
pub struct Recorded(ProgressBar);

impl Recorded {
    pub fn new(what: &'static str) -> Self {
        let style =
            ProgressStyle::with_template("{msg} {wide_bar} {percent}% {elapsed} done, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::no_length().with_style(style).with_message(what))
    }

    /// `done` of `total` nanoseconds of the recording are replayed.
    pub fn update(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
