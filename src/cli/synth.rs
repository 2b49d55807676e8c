//! `synth`: writing a synthetic checkpoint.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::checkpoint::synth::{self, Size};
use crate::contract::Version;

/// Write a synthetic checkpoint: same names and shapes as a released one, made-up weights.
///
/// The snapshot directory is complete and always the same, for tests, demonstrations and measurements. It knows nothing
/// about robots.
#[derive(Debug, Args)]
#[command(after_help = sizes())]
pub struct SynthArgs {
    /// Model version: n15, n16 or n17.
    #[arg(long)]
    version: Version,
    /// tiny: small widths, few layers; mid: real widths, few layers; full: the released network.
    #[arg(long)]
    size: Size,
    /// Directory to write; must not exist or be empty.
    #[arg(long)]
    out: PathBuf,
}

/// Weights of every version and size.
fn sizes() -> String {
    let row = |version: Version| {
        let gigabytes = |size: Size| {
            format!("{size} {:.3} GB", synth::weight_bytes(version, size) as f64 / 1e9)
        };
        format!("  {version}: {}", Size::ALL.map(gigabytes).join(", "))
    };
    format!("Weights on disk:\n{}", Version::ALL.map(row).join("\n"))
}

pub fn run(args: &SynthArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let progress = super::progress::Bar::of_bytes("writing weights");
    synth::write(args.version, args.size, &args.out, &|done, total| progress.update(done, total))?;
    progress.finish();
    eprintln!("{} ready after {:.1} s", args.out.display(), start.elapsed().as_secs_f64());
    Ok(())
}
