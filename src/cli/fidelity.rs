//! `fidelity`: what the card's numbers would do to a checkpoint's chunks, and what a device does.

use std::path::PathBuf;

use clap::Args;

use super::policy_args::{self, BackendArgs, CardArgs, LoadArgs};
use super::progress::Bar;
use crate::contract::Noise;
use crate::fidelity::{self, Folder, Given, Run};
use crate::golden;
use crate::observation_file;
use crate::policy::PolicyOptions;

/// Predict in f32 and with a Blackhole card's numbers, and compare every value on the way.
///
/// No card is needed: by default the CPU computes with the card's numbers as well. With --backend, a card or its simulator
/// does, one instruction after the other. Prints how well every action group agrees (correlation, concordance, largest
/// difference) and whether that is enough, which intermediate values lose most, and how much memory the weights would take
/// in each format. The values of the run in f32 are held in memory, 0.5 GB of a full-size N1.6 and more with more pictures,
/// and so are weights that the card changes. Exit status: 0 if every group reaches the floor, 1 if one does not or there is
/// no chunk, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct FidelityArgs {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    backend: BackendArgs,
    #[command(flatten)]
    card: CardArgs,
    /// Observation as JSON, as for `predict`; default: grey pictures and states in the middle of their range. One of the
    /// robot's own says more.
    #[arg(long)]
    observation: Option<PathBuf>,
    #[arg(long, help = policy_args::seed_help())]
    seed: Option<u64>,
    /// Lowest correlation and concordance of every action group that passes.
    #[arg(long, default_value_t = golden::DEFAULT_FLOOR, value_parser = policy_args::floor)]
    floor: f64,
    /// Write fidelity.json, with every value, and fidelity.png into this folder, which is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print fidelity.json instead of tables.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &FidelityArgs) -> anyhow::Result<()> {
    let device = args.backend.device()?;
    let (observation, noise) = match &args.observation {
        Some(path) => {
            let (observation, noise) = observation_file::read(path)?;
            (Some(observation), noise)
        }
        None => (None, None),
    };
    let folder = args.out.as_deref().map(Folder::open).transpose()?;
    let given = Given { observation, noise: args.seed.map(Noise::Seed).or(noise) };
    let in_f32 = Bar::of_things("in f32", None);
    let on_card = Bar::of_things("card's numbers", None);
    let watch = |run, done, total: Option<u64>| match (run, total) {
        (Run::Card, Some(total)) => {
            if done == 1 {
                in_f32.finish();
            }
            on_card.update(done, total);
        }
        _ => in_f32.step(),
    };
    let options = PolicyOptions { device, ..args.load.options() };
    let numerics = args.card.numerics();
    let compared = fidelity::compare(&options, numerics, given, args.floor, &watch);
    in_f32.finish();
    on_card.finish();
    let report = compared?;
    let written = folder.map(|folder| folder.write(&report)).transpose()?;
    let text = match (args.json, written) {
        (true, _) => serde_json::to_string_pretty(&report)? + "\n",
        (false, None) => report.text(),
        (false, Some([json, picture])) => {
            format!("{}\nwritten: {}, {}\n", report.text(), json.display(), picture.display())
        }
    };
    super::print(&text)?;
    Ok(report.check()?)
}
