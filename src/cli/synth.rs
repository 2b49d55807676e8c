//! `synth`: writing a synthetic checkpoint.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::checkpoint::synth::{self, Size};
use crate::contract::Version;

/// Writes a complete snapshot directory with deterministic made-up weights: the same names, shapes and files as a
/// released checkpoint, for tests, demonstrations and measurements. It knows nothing about robots.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// Model version: n16.
    #[arg(long)]
    version: Version,
    /// tiny: a few megabytes; mid: real widths, few layers; full: the real 3B size (6.6 GB for n16).
    #[arg(long)]
    size: Size,
    /// Directory to write; must not exist or be empty.
    #[arg(long)]
    out: PathBuf,
}

pub fn run(args: &SynthArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let progress = super::progress::Bytes::new("writing weights");
    synth::write(args.version, args.size, &args.out, &|done, total| progress.update(done, total))?;
    progress.finish();
    eprintln!("{} ready after {:.1} s", args.out.display(), start.elapsed().as_secs_f64());
    Ok(())
}
