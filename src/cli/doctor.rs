//! `doctor`: what keeps the node from working here, each with its fix.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::contract::Version;
use crate::doctor::{self, Request, System};
use crate::node::params::Value;

/// Longest time that topics are listened to [s].
const MAX_SECONDS: f64 = 600.0;
const MIN_SECONDS: f64 = 0.5;

/// Look for what keeps the node from working here: machine, checkpoint, parameters, DDS, the robot's topics.
///
/// One line per check: `ok`, `warn` (works, but not well or not always) or `FAIL` (will not work), what was found, and what to do
/// about it. Exit status: 0 if nothing fails, 1 if something does, 2 for wrong usage.
///
/// Give it the arguments of the node, and it listens to the topics that the node would read:
/// `gr00t_blackhole doctor --ros-args --params-file robot.yaml`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Snapshot directory of the checkpoint; overrides the parameter `snapshot`.
    #[arg(long)]
    snapshot: Option<PathBuf>,
    /// Version of the checkpoint: n15, n16 or n17; overrides the parameter `version`.
    #[arg(long)]
    version: Option<Version>,
    /// Directory of the tokenizer files; overrides the parameter `tokenizer`.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// Embodiment tag; overrides the parameter `embodiment`.
    #[arg(long)]
    embodiment: Option<String>,
    /// How long topics are listened to, once they have been found: 0.5 to 600 s.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// JSON instead of lines: `{"findings": [{"level", "subject", "found", "fix"}]}`.
    #[arg(long)]
    json: bool,
    /// ROS arguments of the node, such as `--ros-args --params-file FILE`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ROS_ARGS")]
    ros_args: Vec<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let range = MIN_SECONDS..=MAX_SECONDS;
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("a number from {MIN_SECONDS} to {MAX_SECONDS} is needed"))
}

pub fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let options = [
        ("snapshot", args.snapshot.as_ref().map(path)),
        ("version", args.version.map(|version| version.name().to_owned())),
        ("tokenizer", args.tokenizer.as_ref().map(path)),
        ("embodiment", args.embodiment.clone()),
    ];
    let given =
        |(name, value): (&str, Option<String>)| Some((name.to_owned(), Value::Text(value?)));
    let request = Request {
        overrides: options.into_iter().filter_map(given).collect(),
        ros_args: args.ros_args.clone(),
        seconds: args.seconds,
    };
    let report = doctor::examine(&System::here(), &request)?;
    super::print(&if args.json { report.json()? } else { report.text() })?;
    match report.failures() {
        0 => Ok(()),
        1 => bail!("1 check has failed"),
        failures => bail!("{failures} checks have failed"),
    }
}
