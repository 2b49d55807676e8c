//! Progress of downloads on standard error: a bar for every file on a terminal, a line now and then elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::gigabytes;
use crate::locked::locked;
use crate::weights::fetch::Watcher;

/// How often a line is written where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Short enough for a bar beside a shard's name on 80 columns.
const FILE_BAR: &str = "{msg:33!} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}";
const ALL_BAR: &str = "{msg:33!} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";

/// Bars of files and of all of them together.
pub struct Files {
    bars: MultiProgress,
    state: Mutex<State>,
    terminal: bool,
}

struct State {
    files: BTreeMap<String, File>,
    all: ProgressBar,
    /// Bytes that this run has received.
    received: u64,
    started: Instant,
    last_line: Instant,
}

struct File {
    bar: ProgressBar,
    size: u64,
    /// `None` until the first report, which tells what an earlier run has left.
    position: Option<u64>,
}

impl Files {
    pub fn new() -> Self {
        let (bars, now) = (MultiProgress::new(), Instant::now());
        let state = State {
            files: BTreeMap::new(),
            all: ProgressBar::hidden(),
            received: 0,
            started: now,
            last_line: now,
        };
        Self { bars, state: Mutex::new(state), terminal: std::io::stderr().is_terminal() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn bar(&self, name: &str, size: u64, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(size)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(name.to_owned());
        self.bars.add(bar)
    }

    /// Bytes that this run has received.
    pub fn received(&self) -> u64 {
        self.state().received
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        self.state().all.finish_and_clear();
        // What cannot be cleared stays on the terminal.
        let _ = self.bars.clear();
    }
}

impl State {
    /// Counts how far a file is. What an earlier run has left was not received now.
    fn count(&mut self, name: &str, position: u64) {
        let Some(file) = self.files.get_mut(name) else { return };
        let before = file.position.unwrap_or(position);
        self.received += position.saturating_sub(before);
        file.position = Some(position);
        file.bar.set_position(position);
        let there = self.files.values().filter_map(|file| file.position).sum();
        self.all.set_position(there);
    }

    fn line(&self) -> String {
        let total: u64 = self.files.values().map(|file| file.size).sum();
        let there: u64 = self.files.values().filter_map(|file| file.position).sum();
        let rate = self.received as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        let left = total.saturating_sub(there) as f64 / rate.max(1.0);
        format!(
            "{} of {}, {:.1} MB/s, {left:.0} s left",
            gigabytes(there),
            gigabytes(total),
            rate / 1e6
        )
    }
}

impl Watcher for Files {
    fn note(&self, line: &str) {
        self.bars.suspend(|| eprintln!("{line}"));
    }

    fn planned(&self, files: &[(&str, u64)]) {
        let mut state = self.state();
        for (name, size) in files {
            let bar = self.bar(name, *size, FILE_BAR);
            state.files.insert((*name).to_owned(), File { bar, size: *size, position: None });
        }
        let total = files.iter().map(|(_, size)| size).sum();
        state.all = self.bar("all", total, ALL_BAR);
        state.started = Instant::now();
    }

    fn at(&self, file: &str, position: u64) {
        let mut state = self.state();
        state.count(file, position);
        if !self.terminal && state.last_line.elapsed() >= LINE_PERIOD {
            state.last_line = Instant::now();
            eprintln!("{}", state.line());
        }
    }

    fn end(&self, file: &str) {
        let mut state = self.state();
        if let Some(size) = state.files.get(file).map(|file| file.size) {
            state.count(file, size);
        }
        if let Some(file) = state.files.get(file) {
            file.bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_run_has_left_was_not_received_now() {
        let files = Files::new();
        files.planned(&[("a", 100), ("b", 50)]);
        files.at("a", 40);
        files.at("a", 60);
        files.at("a", 0);
        files.at("a", 10);
        files.end("b");
        assert_eq!(files.received(), 30);
        assert!(files.state().line().starts_with("0.000 GB of 0.000 GB"));
    }
}
