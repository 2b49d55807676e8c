//! `bag info`: what a recording holds.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::bag::{BagReader, CDR, Note};

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Look into a recording; no ROS involved.
///
/// Recordings are rosbag2 directories or single bag files, mcap and sqlite3, compressed or not.
#[derive(Debug, Args)]
pub struct BagArgs {
    #[command(subcommand)]
    command: BagCommand,
}

#[derive(Debug, Subcommand)]
enum BagCommand {
    /// Print topics, types, counts, rates, duration, and what is odd about a recording.
    Info(InfoArgs),
}

#[derive(Debug, Args)]
struct InfoArgs {
    /// Bag directory or bag file.
    path: PathBuf,
    /// Read every message: counts and rates are then those of the messages themselves, and damage is found.
    #[arg(long)]
    check: bool,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// What a recording holds.
#[derive(Serialize)]
struct Report {
    path: PathBuf,
    files: Vec<File>,
    /// Times of the first and the last message, nanoseconds; null without messages.
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    duration_s: f64,
    /// Null if some topic's is not known.
    messages: Option<u64>,
    topics: Vec<TopicReport>,
    notes: Vec<NoteReport>,
}

#[derive(Serialize)]
struct File {
    name: String,
    storage: &'static str,
}

#[derive(Serialize)]
struct TopicReport {
    name: String,
    message_type: String,
    encoding: String,
    /// Whether messages begin with a header, as far as that is known.
    stamped: bool,
    messages: Option<u64>,
    /// Messages a second: over the whole bag, or after a check between the topic's own first and last one.
    rate_hz: Option<f64>,
}

/// A note with its sentence.
#[derive(Serialize)]
struct NoteReport {
    text: String,
    #[serde(flatten)]
    note: Note,
}

impl From<&Note> for NoteReport {
    fn from(note: &Note) -> Self {
        Self { text: note.to_string(), note: note.clone() }
    }
}

pub fn run(args: &BagArgs) -> Result<()> {
    let BagCommand::Info(args) = &args.command;
    let bag = BagReader::open(&args.path)?;
    let mut report = Report::of(&bag);
    if args.check {
        report.check(&bag)?;
    }
    let text =
        if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.text() };
    super::print(&text)
}

impl Report {
    fn of(bag: &BagReader) -> Self {
        let span_s = bag.duration().as_secs_f64();
        let topics = bag.topics().iter().map(|topic| TopicReport {
            name: topic.name.clone(),
            message_type: topic.message_type.clone(),
            encoding: topic.encoding.clone(),
            stamped: topic.stamped,
            messages: topic.messages,
            rate_hz: topic.messages.and_then(|count| rate(count, span_s)),
        });
        Self {
            path: bag.path().to_owned(),
            files: bag.files().map(|(storage, name)| File { name, storage }).collect(),
            start_ns: bag.span_ns().map(|(start, _)| start),
            end_ns: bag.span_ns().map(|(_, end)| end),
            duration_s: span_s,
            messages: bag.topics().iter().map(|topic| topic.messages).sum(),
            topics: topics.collect(),
            notes: bag.notes().iter().map(NoteReport::from).collect(),
        }
    }

    /// Reads every message that can be read.
    fn check(&mut self, bag: &BagReader) -> Result<()> {
        let mut seen: Vec<Option<(u64, u64, u64)>> = vec![None; self.topics.len()];
        let is_read =
            |encoding: &str, message_type: &str| encoding == CDR && !message_type.is_empty();
        let mut messages = bag.messages(|topic| is_read(&topic.encoding, &topic.message_type))?;
        for message in messages.by_ref() {
            let message = message?;
            let time = message.log_time_ns;
            let (count, first, last) = seen[message.topic].unwrap_or((0, time, time));
            seen[message.topic] = Some((count + 1, first.min(time), last.max(time)));
        }
        self.notes.extend(messages.notes().iter().map(NoteReport::from));
        for (topic, seen) in self.topics.iter_mut().zip(seen) {
            if is_read(&topic.encoding, &topic.message_type) {
                let (count, first, last) = seen.unwrap_or_default();
                topic.messages = Some(count);
                topic.rate_hz = rate(count, (last - first) as f64 / NANOSECONDS_PER_SECOND);
            }
        }
        self.messages = self.topics.iter().map(|topic| topic.messages).sum();
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let files: Vec<_> =
            self.files.iter().map(|file| format!("{} ({})", file.name, file.storage)).collect();
        let count = self.messages.map_or("?".into(), |count| count.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", self.path.display(), files.join(", "));
        let _ = writeln!(text, "{count} messages in {:.3} s", self.duration_s);
        if let (Some(start), Some(end)) = (self.start_ns, self.end_ns) {
            let _ = writeln!(text, "from {start} to {end} ns");
        }
        let name_width = self.topics.iter().map(|topic| topic.name.len()).max().unwrap_or(0);
        let type_width =
            self.topics.iter().map(|topic| topic.message_type.len()).max().unwrap_or(0);
        for topic in &self.topics {
            let count = topic.messages.map_or("?".into(), |count| count.to_string());
            let rate = topic.rate_hz.map_or(String::new(), |rate| format!("{rate:.2} Hz"));
            let (name, message_type) = (&topic.name, &topic.message_type);
            let _ = writeln!(
                text,
                "  {name:name_width$}  {message_type:type_width$}  {count:>8}  {rate:>10}"
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {}", note.text);
        }
        text
    }
}

/// Messages a second over `span_s`; none for fewer than two.
fn rate(count: u64, span_s: f64) -> Option<f64> {
    (count > 1 && span_s > 0.0).then(|| (count - 1) as f64 / span_s)
}
