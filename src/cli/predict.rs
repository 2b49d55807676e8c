//! `predict`: one chunk from an observation file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::policy_args::{self, PolicyArgs};
use crate::contract::{ActionChunk, Noise, PredictOptions, Representation};
use crate::observation_file;
use crate::policy::Policy;
use crate::whole;

/// Compute one action chunk from an observation file; no ROS involved.
#[derive(Debug, Args)]
pub struct PredictArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Observation as JSON: instruction, frames (picture files), state, and optionally seed or noise.
    #[arg(long)]
    observation: PathBuf,
    #[arg(long, help = policy_args::seed_help())]
    seed: Option<u64>,
    /// Also give the network's output before decoding, as `normalized`.
    #[arg(long)]
    return_normalized: bool,
    /// Write the JSON here instead of to standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// The chunk as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    version: &'a str,
    embodiment: &'a str,
    /// What computed the chunk, with its numbers.
    backend: &'a str,
    instruction: &'a str,
    /// Null when the noise was given explicitly.
    seed: Option<u64>,
    stamp_ns: i64,
    action_horizon: usize,
    action_keys: Vec<&'a str>,
    action_dims: BTreeMap<&'a str, usize>,
    representations: BTreeMap<&'a str, Representation>,
    /// Per group: one row per step, physical units.
    actions: BTreeMap<&'a str, Vec<&'a [f32]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized: Option<&'a [f32]>,
    timing_ms: BTreeMap<&'static str, f64>,
}

pub fn run(args: &PredictArgs) -> anyhow::Result<()> {
    let options = args.policy.options()?;
    let (observation, noise) = observation_file::read(&args.observation)?;
    let mut policy = Policy::load(&options)?;
    let noise = args.seed.map(Noise::Seed).or(noise);
    let predicted = policy.predict(&observation, &PredictOptions { noise, ..Default::default() });
    let chunk = policy_args::with_numbers(&policy, predicted)?;
    let json =
        serde_json::to_string_pretty(&answer(&chunk, &policy.backend(), args.return_normalized))?;
    match &args.out {
        Some(path) => whole::write(path, (json + "\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => super::print(&(json + "\n"))?,
    }
    Ok(())
}

fn answer<'a>(chunk: &'a ActionChunk, backend: &'a str, with_normalized: bool) -> Answer<'a> {
    let groups = || chunk.groups.iter();
    let milliseconds =
        chunk.timings.stages().map(|(stage, time)| (stage, time.as_secs_f64() * 1e3));
    let total = ("total", chunk.timings.total().as_secs_f64() * 1e3);
    Answer {
        version: chunk.version.name(),
        embodiment: &chunk.embodiment,
        backend,
        instruction: &chunk.instruction,
        seed: chunk.seed,
        stamp_ns: chunk.stamp_ns,
        action_horizon: chunk.horizon,
        action_keys: groups().map(|group| group.name.as_str()).collect(),
        action_dims: groups().map(|group| (group.name.as_str(), group.dim)).collect(),
        representations: groups().map(|g| (g.name.as_str(), g.representation)).collect(),
        actions: groups()
            .map(|group| (group.name.as_str(), group.values.chunks_exact(group.dim).collect()))
            .collect(),
        normalized: with_normalized.then_some(chunk.normalized.as_slice()),
        timing_ms: milliseconds.into_iter().chain([total]).collect(),
    }
}
