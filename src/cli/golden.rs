//! `golden`: recording what a checkpoint predicts, and checking it.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand, value_parser};

use super::policy_args::{self, LoadArgs, PolicyArgs};
use crate::contract::CancelToken;
use crate::golden::{self, GateError, Golden, Held};
use crate::observation_file;
use crate::policy::Policy;

/// Record what a checkpoint predicts, and check that it is still predicted.
#[derive(Debug, Args)]
pub struct GoldenArgs {
    #[command(subcommand)]
    command: GoldenCommand,
}

#[derive(Debug, Subcommand)]
enum GoldenCommand {
    /// Predict once with the CPU in f32 and keep observation and chunk: the node then checks itself against them before
    /// a robot depends on it.
    Record(RecordArgs),
    /// Predict from the observation of a golden and compare, group by group.
    ///
    /// A line a group: PCC is Pearson's correlation and concordance Lin's, both over all steps and columns of the group;
    /// max|d| is the largest difference, behind it the largest value of the golden, in the unit of the group. Exit
    /// status: 0 if every group reaches the floor, 1 if not.
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct RecordArgs {
    #[command(flatten)]
    policy: LoadArgs,
    /// Observation as JSON, as for `predict`; default: grey pictures and states in the middle of their range. One of the
    /// robot's own says more.
    #[arg(long)]
    observation: Option<PathBuf>,
    /// Directory to write, which must not exist; default: golden/EMBODIMENT in the snapshot, where the node looks.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Directory of the golden; default: golden/EMBODIMENT in the snapshot.
    #[arg(long)]
    golden: Option<PathBuf>,
    /// Lowest correlation and concordance of every action group that passes.
    #[arg(long, default_value_t = golden::DEFAULT_FLOOR, value_parser = policy_args::floor)]
    floor: f64,
    /// Predictions, all of which have to give the same bytes.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..))]
    times: u32,
}

pub fn run(args: &GoldenArgs) -> anyhow::Result<()> {
    match &args.command {
        GoldenCommand::Record(args) => record(args),
        GoldenCommand::Check(args) => check(args),
    }
}

fn record(args: &RecordArgs) -> anyhow::Result<()> {
    let mut policy = Policy::load(&args.policy.options())?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => golden::place(policy.snapshot(), &policy.embodiment().tag)?,
    };
    let golden = match &args.observation {
        Some(path) => {
            let (observation, noise) = observation_file::read(path)?;
            Golden::record(&mut policy, observation, noise)?
        }
        None => {
            let observation = policy.made_up_observation()?;
            Golden::record(&mut policy, observation, None)?
        }
    };
    golden.write(&out)?;
    super::print(&format!("{} recorded with {}\n", out.display(), policy.backend()))
}

fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let mut policy = Policy::load(&args.policy.options()?)?;
    let tag = policy.embodiment().tag.clone();
    let Some(dir) = golden::find(args.golden.as_deref(), policy.snapshot(), &tag)? else {
        let place = golden::place(policy.snapshot(), &tag)?;
        bail!("there is no golden in {}; make one with `golden record`", place.display());
    };
    let cancel = CancelToken::default();
    let Held { agreement, golden_of } =
        match golden::check(&mut policy, &dir, args.floor, args.times, &cancel) {
            Err(GateError::Policy(error)) => policy_args::with_numbers(&policy, Err(error)),
            checked => Ok(checked?),
        }?;
    let lines: String = agreement.0.iter().map(|group| format!("{group}\n")).collect();
    super::print(&format!(
        "{}\n{}, against {} in {}\n{lines}",
        agreement.verdict(args.floor),
        policy.backend(),
        golden_of,
        dir.display()
    ))
}
