//! `replay`: a policy against a recording.

use std::path::PathBuf;
#[cfg(feature = "ros")]
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::{WrongUsage, reproduce};
use crate::bag::BagReader;
use crate::node::params::Value;
use crate::node::params::file;
#[cfg(feature = "ros")]
use crate::node::{play, publish_bag};
use crate::observations::Recording;
use crate::replay::{self, Alternative, Bound, Fidelity, Given, Pace, ReplayError, Request};

/// Predict from a recording as the node would have, and compare with what was recorded.
///
/// A recording of observations (parameter `record_observations`) needs neither topics nor commands: every chunk in it is
/// predicted again and compared bit for bit.
///
/// The bag's messages go through the node's own conversion, history and gates, driven by recorded time; no ROS is needed.
/// Exit status: 0 if every bound is kept, 1 if one is broken, no chunk was predicted (with --against, by one policy or the
/// other) or the recording cannot be used, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Bag: its directory, or a single file.
    #[arg(value_name = "BAG")]
    bag: PathBuf,
    /// Parameter file of the node; topics, conversion, gates and limits are those that it gives.
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// One parameter, as on the node's command line; may be repeated, and counts more than the file.
    #[arg(short, long = "param", value_name = "NAME:=VALUE")]
    param: Vec<String>,
    /// Full name of the node, which decides about the file's sections and relative topics.
    #[arg(long, default_value = "/policy", value_name = "NAME")]
    node: String,
    /// Remapping rule, as on the node's command line; may be repeated.
    #[arg(long, value_name = "FROM:=TO")]
    remap: Vec<String>,
    /// Snapshot directory of the checkpoint; overrides the parameter `snapshot`.
    #[arg(long)]
    snapshot: Option<PathBuf>,
    /// What computes: cpu, blackhole or sim; overrides the parameter `backend`.
    #[arg(long)]
    backend: Option<String>,

    /// Predict so many times a second; default: execute_steps or rate_hz of the parameters. The moments lie on a grid that
    /// begins with the recording.
    #[arg(long, value_name = "HZ", value_parser = rate, conflicts_with_all = ["every", "at_goals"])]
    rate: Option<f64>,
    /// Predict at every N-th frame of the first camera.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "at_goals")]
    every: Option<u64>,
    /// Predict where a node predicted while the recording was made, with the same instructions and seeds, and compare bit
    /// for bit; needs recorded chunks.
    #[arg(long)]
    at_goals: bool,
    /// What the robot is to do; default: what recorded chunks say, or else the parameter `instruction`.
    #[arg(long, value_name = "TEXT")]
    instruction: Option<String>,
    /// Another instruction from so many seconds after the recording's start on; may be repeated.
    #[arg(long, value_name = "SECONDS=TEXT", value_parser = instruction_at)]
    instruction_at: Vec<(f64, String)>,
    /// From the moment of an observation until its chunk counts [ms], for jumps and stalls between chunks.
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = latency)]
    latency_ms: f64,

    /// Topic of recorded commands: JointTrajectory, JointState (targets), or ActionChunk; default: the only JointTrajectory,
    /// or else the recorded chunks.
    #[arg(long, value_name = "TOPIC")]
    commands: Option<String>,
    /// Topic of recorded chunks (gr00t_blackhole/ActionChunk); default: the only one.
    #[arg(long, value_name = "TOPIC")]
    chunks: Option<String>,
    /// Compare bit for bit with an earlier replay: its folder, or its chunks.safetensors.
    #[arg(long, value_name = "PATH")]
    previous: Option<PathBuf>,
    /// Compare with another policy on the same observations: keys backend (cpu, blackhole, sim), device_id, device_python,
    /// numerics (f32, card), dtype_policy, math_fidelity, accumulation, threads, snapshot, tokenizer, letterbox,
    /// data_config.
    #[arg(long, value_name = "KEY=VALUE,...")]
    against: Option<Alternative>,

    /// Fail if the mean absolute error against the commands, over executed rows, is larger; of all groups, or of one; may be
    /// repeated.
    #[arg(long, value_name = "[GROUP=]X", value_parser = Bound::max_mae)]
    max_mae: Vec<Bound>,
    /// Fail unless this holds, such as chunks>=100 or 'refusals == 0'; report.json lists all `measures`; may be repeated.
    #[arg(long, value_name = "KEY OP VALUE")]
    expect: Vec<Bound>,
    /// Write report.json, report.html, chunks.safetensors, latency.json and diagrams into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Predict nothing: publish the bag onto its topics as it was recorded, with its time on /clock, for nodes that are
    /// running with use_sim_time.
    #[cfg(feature = "ros")]
    #[arg(long, conflicts_with_all = ["params", "rate", "every", "at_goals", "out", "json"])]
    publish: bool,
    /// With --publish: recorded seconds per second (default 1).
    #[cfg(feature = "ros")]
    #[arg(long, value_name = "X", value_parser = play::rate, requires = "publish")]
    factor: Option<f64>,
    /// With --publish: wait this many seconds for a subscriber on every topic (default 30); 0 begins at once.
    #[cfg(feature = "ros")]
    #[arg(long, value_name = "SECONDS", value_parser = play::wait, requires = "publish")]
    wait: Option<f64>,
    /// Print report.json instead of sentences.
    #[arg(long)]
    json: bool,
}

const MAX_RATE_HZ: f64 = 1000.0;
const MAX_LATENCY_MS: f64 = 600_000.0;

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate <= MAX_RATE_HZ);
    rate.ok_or_else(|| format!("a rate above 0 and up to {MAX_RATE_HZ} Hz is needed"))
}

fn latency(text: &str) -> Result<f64, String> {
    let latency = text.parse().ok().filter(|latency| (0.0..=MAX_LATENCY_MS).contains(latency));
    latency.ok_or_else(|| format!("0 to {MAX_LATENCY_MS} ms are possible"))
}

fn instruction_at(text: &str) -> Result<(f64, String), String> {
    let form = || format!("'{text}' is not SECONDS=TEXT, such as 12.5=put it back");
    let (seconds, instruction) = text.split_once('=').ok_or_else(form)?;
    let seconds: f64 = seconds.trim().parse().map_err(|_| form())?;
    if !(0.0..1e9).contains(&seconds) || instruction.trim().is_empty() {
        return Err(form());
    }
    Ok((seconds, instruction.to_owned()))
}

pub fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    #[cfg(feature = "ros")]
    if args.publish {
        let factor = args.factor.unwrap_or(1.0);
        let wait = args.wait.map_or(publish_bag::DEFAULT_WAIT, Duration::from_secs_f64);
        return publish_bag::run(&args.bag, publish_bag::Pace { factor, wait });
    }
    let request = request(args).map_err(|error| WrongUsage(error.to_string()))?;
    let bag = BagReader::open(&args.bag)?;
    if Recording::is_one(&bag) {
        refuse_what_needs_topics(&request)?;
        return reproduce::run(
            &Recording::of(bag)?,
            request.overrides,
            args.out.as_deref(),
            args.json,
        );
    }
    let progress = super::progress::Bar::of_recorded_time("replaying");
    let replayed = replay::run_on(bag, &request, &|done, total| progress.update(done, total));
    progress.finish();
    let replay = replayed.map_err(with_status)?;
    if let Some(folder) = &args.out {
        replay::write(&replay, folder).map_err(with_status)?;
    }
    let text = if args.json {
        serde_json::to_string_pretty(&replay.report)?
    } else {
        replay.report.findings.join("\n")
    };
    super::print(&(text + "\n"))?;
    if replay.report.moments.chunks == 0 {
        bail!("no chunk was predicted");
    }
    let against = replay.report.against.as_ref().filter(|against| against.chunks == 0);
    if let Some(Fidelity { against, first_failure: Some(reason), .. }) = against {
        bail!("the other policy, {against}, gave no chunk: {reason}");
    }
    if !replay.report.unmeasured.is_empty() {
        return Err(WrongUsage(replay.report.unmeasured.join("\n")).into());
    }
    match &replay.broken()[..] {
        [] => Ok(()),
        broken => bail!("{}", broken.join("\n")),
    }
}

fn request(args: &ReplayArgs) -> Result<Request, file::FileError> {
    let mut overrides = match &args.params {
        Some(path) => file::read(path, &args.node)?,
        None => Vec::new(),
    };
    let mut set = |(name, value): (String, Value)| {
        overrides.retain(|(known, _)| *known != name);
        overrides.push((name, value));
    };
    for text in &args.param {
        set(file::assignment(text)?);
    }
    if let Some(snapshot) = &args.snapshot {
        set(("snapshot".to_owned(), Value::Text(snapshot.to_string_lossy().into_owned())));
    }
    if let Some(backend) = &args.backend {
        set(("backend".to_owned(), Value::Text(backend.clone())));
    }
    let pace = match (args.rate, args.every, args.at_goals) {
        (Some(rate), ..) => Pace::Rate(rate),
        (_, Some(every), _) => Pace::Frames(every),
        (_, _, true) => Pace::Goals,
        _ => Pace::Parameters,
    };
    Ok(Request {
        bag: args.bag.clone(),
        overrides,
        node: args.node.clone(),
        remaps: args.remap.clone(),
        pace,
        instructions: Given { first: args.instruction.clone(), later: args.instruction_at.clone() },
        commands: args.commands.clone(),
        chunks: args.chunks.clone(),
        previous: args.previous.clone(),
        against: args.against.clone(),
        latency_ns: (args.latency_ms * 1e6).round() as i64,
        bounds: args.max_mae.iter().chain(&args.expect).cloned().collect(),
    })
}

/// A recording of observations has nothing but predictions.
fn refuse_what_needs_topics(request: &Request) -> Result<(), WrongUsage> {
    let Request { pace, instructions, commands, chunks, previous, against, bounds, .. } = request;
    let meant = [
        (*pace != Pace::Parameters, "--rate, --every and --at-goals"),
        (*instructions != Given::default(), "--instruction and --instruction-at"),
        (commands.is_some() || chunks.is_some(), "--commands and --chunks"),
        (previous.is_some() || against.is_some(), "--previous and --against"),
        (!bounds.is_empty(), "--max-mae and --expect"),
    ];
    match meant.iter().find(|(given, _)| *given) {
        Some((_, names)) => Err(WrongUsage(format!(
            "{names} do not go with a recording of observations: its predictions are made again as they were"
        ))),
        None => Ok(()),
    }
}

/// Wrong arguments and parameters end with status 2.
fn with_status(error: ReplayError) -> anyhow::Error {
    if error.is_usage() { WrongUsage(error.to_string()).into() } else { error.into() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ReplayArgs,
    }

    fn parsed(arguments: &[&str]) -> Result<ReplayArgs, i32> {
        let line = ["x", "bag"].iter().chain(arguments);
        Line::try_parse_from(line).map(|line| line.args).map_err(|error| error.exit_code())
    }

    #[test]
    fn wrong_values_are_wrong_usage() {
        for wrong in [
            &["--rate", "0"][..],
            &["--rate", "NaN"],
            &["--every", "0"],
            &["--rate", "2", "--every", "3"],
            &["--instruction-at", "later=wave"],
            &["--instruction-at", "3="],
            &["--max-mae", "-1"],
            &["--expect", "chunks"],
            &["--against", "backend=tt"],
            &["--latency-ms", "-1"],
        ] {
            assert_eq!(parsed(wrong).err(), Some(2), "{wrong:?}");
        }
    }

    #[test]
    fn arguments_count_more_than_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robot.yaml");
        std::fs::write(&path, "/**:\n  ros__parameters:\n    rate_hz: 1.0\n    snapshot: a\n")
            .unwrap();
        let arguments =
            ["--params", path.to_str().unwrap(), "-p", "rate_hz:=3.0", "--snapshot", "b"];
        let request = request(&parsed(&arguments).unwrap()).unwrap();
        let expected = [
            ("rate_hz".to_owned(), Value::Double(3.0)),
            ("snapshot".to_owned(), Value::Text("b".to_owned())),
        ];
        assert_eq!(request.overrides, expected);
    }
}
