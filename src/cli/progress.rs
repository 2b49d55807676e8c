//! Progress of long work on standard error: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar; what it counts is up to how it was made.
pub struct Bar(ProgressBar);

impl Bar {
    /// Counts bytes.
    pub fn of_bytes(what: &'static str) -> Self {
        Self::new(what, "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
    }

    /// Counts nanoseconds of a recording.
    pub fn of_recorded_time(what: &'static str) -> Self {
        Self::new(what, "{msg} {wide_bar} {percent}% {elapsed} done, {eta} left")
    }

    /// Counts things, of which there are `total`, where that is known.
    pub fn of_things(what: &'static str, total: Option<u64>) -> Self {
        let bar = Self::new(what, "{msg} {wide_bar} {pos}/{len} {eta} left");
        if let Some(total) = total {
            bar.0.set_length(total);
        }
        bar
    }

    fn new(what: &'static str, template: &str) -> Self {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::no_length().with_style(style).with_message(what))
    }

    /// `done` of `total` are finished.
    pub fn update(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// One more is finished.
    pub fn step(&self) {
        self.0.inc(1);
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
