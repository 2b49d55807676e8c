//! `predict`: one chunk from an observation file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, value_parser};
use serde::Serialize;

use super::observation_file;
use crate::contract::{ActionChunk, Letterbox, Noise, PredictOptions, Representation, Version};
use crate::policy::{Policy, PolicyOptions};

#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Snapshot directory of the checkpoint; default: the released one of --version in the hub cache.
    #[arg(long, required_unless_present = "version")]
    snapshot: Option<PathBuf>,
    /// Version that the checkpoint has to be of: n15, n16 or n17; any if it is left out.
    #[arg(long)]
    version: Option<Version>,
    /// Observation as JSON: instruction, frames (picture files), state, and optionally seed or noise.
    #[arg(long)]
    observation: PathBuf,
    /// Directory with the tokenizer files; default: the snapshot's `tokenizer` folder, the snapshot itself, or the hub cache.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// Embodiment tag; may be left out when the checkpoint serves only one.
    #[arg(long)]
    embodiment: Option<String>,
    /// Data config, N1.5 only; default: the tag's own, or the only one that fits the checkpoint's metadata.
    #[arg(long)]
    data_config: Option<String>,
    /// Whether frames are padded to squares, N1.7 only: auto (as the checkpoint declares), on or off.
    #[arg(long, default_value_t)]
    letterbox: Letterbox,
    /// Seed of the initial noise; overrides the observation's seed or noise.
    #[arg(long)]
    seed: Option<u64>,
    /// Threads of the CPU backend, 0 to 256; 0 means all cores.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u16).range(0..=256))]
    threads: u16,
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
    let (observation, noise) = observation_file::read(&args.observation)?;
    let mut policy = Policy::load(&PolicyOptions {
        snapshot: args.snapshot.clone().unwrap_or_default(),
        tokenizer: args.tokenizer.clone(),
        embodiment: args.embodiment.clone(),
        data_config: args.data_config.clone(),
        letterbox: args.letterbox,
        threads: usize::from(args.threads),
        version: args.version,
    })?;
    let noise = args.seed.map(Noise::Seed).or(noise);
    let chunk = policy.predict(&observation, &PredictOptions { noise, ..Default::default() })?;
    let json = serde_json::to_string_pretty(&answer(&chunk, args.return_normalized))?;
    match &args.out {
        Some(path) => fs::write(path, json + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => super::print(&(json + "\n"))?,
    }
    Ok(())
}

fn answer(chunk: &ActionChunk, with_normalized: bool) -> Answer<'_> {
    let groups = || chunk.groups.iter();
    let milliseconds =
        chunk.timings.stages().map(|(stage, time)| (stage, time.as_secs_f64() * 1e3));
    let total = ("total", chunk.timings.total().as_secs_f64() * 1e3);
    Answer {
        version: chunk.version.name(),
        embodiment: &chunk.embodiment,
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: PredictArgs,
    }

    #[test]
    fn threads_have_the_range_of_the_node() {
        let parse = |threads: &str| {
            let line = ["x", "--snapshot", "s", "--observation", "o", "--threads", threads];
            Line::try_parse_from(line).map(|line| line.args.threads)
        };
        assert_eq!(parse("256").expect("the largest"), 256);
        for wrong in ["257", "-1", "100000"] {
            assert_eq!(parse(wrong).expect_err(wrong).exit_code(), 2);
        }
    }
}
