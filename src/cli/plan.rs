//! `plan`: what a request would cost on a card.

use std::path::PathBuf;

use anyhow::bail;
use clap::{ArgGroup, Args};

use super::WrongUsage;
use crate::backend::blackhole::core_map;
use crate::backend::blackhole::cost::{Assumptions, RATES, Rate, Rates};
use crate::backend::blackhole::numerics::{DtypePolicy, MathFidelity};
use crate::contract::Version;
use crate::plan::{self, PlanError, Planned, Prompt, Request, Wanted};

/// Plan what a request would cost on a Blackhole card, without one, and without weights.
///
/// Every operation is counted from its shapes: bytes of DRAM by bank, bytes through the network on chip, products of tiles,
/// instructions of the vector unit; documented rates make times of them. The layout is that of the serving documents'
/// demonstration, and their measured times stand beside the sums.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("network").required(true), after_long_help = rates())]
pub struct PlanArgs {
    /// The released network of a version: n15, n16 or n17.
    #[arg(long, group = "network")]
    version: Option<Version>,
    /// The network of a snapshot directory instead, which has to be complete.
    #[arg(long, group = "network")]
    snapshot: Option<PathBuf>,
    #[arg(long, value_name = "N", help = images())]
    images: Option<usize>,
    #[arg(long, value_name = "N", help = text_tokens())]
    text_tokens: Option<usize>,
    /// Rows and columns of patches of a picture, n17 only (default 16x28).
    #[arg(long, value_name = "ROWSxCOLUMNS", value_parser = grid)]
    grid: Option<[usize; 2]>,
    /// Count what depends on the instruction alone, which is otherwise kept from the request before; only n16 has such work.
    #[arg(long)]
    new_instruction: bool,
    /// Leave out the vision work of the older half of the pictures, which were seen as new ones before; n17 only.
    #[arg(long)]
    history_cache: bool,
    /// Which weights are bfp8_b. `mixed` takes the least time; the serving documents have `mixed_dit`, and so has `fidelity`.
    #[arg(long, value_enum, default_value_t = DtypePolicy::Mixed)]
    dtype_policy: DtypePolicy,
    /// How many bits of its operands the matrix engine multiplies.
    #[arg(long, value_enum, default_value_t)]
    math_fidelity: MathFidelity,
    /// Where the readers of the persistent program stand.
    #[arg(long, value_enum, default_value_t)]
    core_layout: core_map::Layout,
    /// Another rate; may be repeated for other rates. `--help` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    rate: Vec<String>,
    /// Write plan.json and plan.html into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print plan.json instead of tables.
    #[arg(long)]
    json: bool,
}

fn images() -> String {
    format!(
        "Pictures: cameras times frames per camera [default: {}]",
        of_versions(|prompt| prompt.images())
    )
}

fn text_tokens() -> String {
    format!("Tokens of the instruction [default: {}]", of_versions(|prompt| prompt.text()))
}

/// Such as `n15 1, n16 1, n17 4`.
fn of_versions(number: fn(Prompt) -> usize) -> String {
    let versions = Version::ALL.map(|of| format!("{of} {}", number(Prompt::of(of))));
    versions.join(", ")
}

/// All rates with their sources.
fn rates() -> String {
    let row = |rate: &Rate| {
        format!("  {} = {} {}\n     {}", rate.name, rate.default, rate.unit, rate.text)
    };
    format!("Rates:\n{}", RATES.iter().map(row).collect::<Vec<_>>().join("\n"))
}

fn grid(text: &str) -> Result<[usize; 2], String> {
    let sides = text
        .split_once('x')
        .and_then(|(rows, columns)| Some([rows.parse().ok()?, columns.parse().ok()?]));
    sides.ok_or_else(|| "rows x columns are needed, such as 16x28".to_owned())
}

pub fn run(args: &PlanArgs) -> anyhow::Result<()> {
    let request = request(args).map_err(with_status)?;
    let planned = match (&args.snapshot, args.version) {
        (Some(dir), _) => Planned::of_snapshot(dir),
        (None, Some(version)) => Planned::released(version),
        (None, None) => bail!("neither --version nor --snapshot"),
    };
    let planned = planned.map_err(with_status)?;
    let report = plan::report(&planned, &request).map_err(with_status)?;
    if let Some(folder) = &args.out {
        plan::write(&report, folder).map_err(with_status)?;
    }
    if args.json {
        return super::print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    let mut text = plan::text(&report);
    if let Some(folder) = &args.out {
        let path = |name: &str| folder.join(name).display().to_string();
        text += &format!("\nWritten: {} and {}\n", path(plan::REPORT), path(plan::PAGE));
    }
    super::print(&text)
}

fn request(args: &PlanArgs) -> Result<Request, PlanError> {
    let rates = Rates::with(&args.rate)?;
    Ok(Request {
        wanted: Wanted { images: args.images, text_tokens: args.text_tokens, grid: args.grid },
        assumptions: Assumptions { policy: args.dtype_policy, fidelity: args.math_fidelity, rates },
        new_instruction: args.new_instruction,
        history_cache: args.history_cache,
        core_layout: args.core_layout,
    })
}

/// Wrong arguments end with status 2.
fn with_status(error: PlanError) -> anyhow::Error {
    if error.is_usage() { WrongUsage(error.to_string()).into() } else { error.into() }
}
