//! `bench-http`: how long a running server takes.

use clap::Args;

use super::progress::Bar;
use super::smoke::ServerArgs;
use crate::serve::bench;

/// Time a running server's answers to its demonstration, one request after the other.
///
/// Exit status: 0 when all requests were answered, 1 otherwise, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct BenchHttpArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Requests that are timed.
    #[arg(long, visible_alias = "reps", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    n: u32,
    /// Requests before those.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    warmup: u32,
}

pub fn run(args: &BenchHttpArgs) -> anyhow::Result<()> {
    let client = args.server.client()?;
    let bar = Bar::of_things("timing", Some(u64::from(args.warmup) + u64::from(args.n)));
    let report = bench::measure(&client, args.warmup, args.n, || bar.step());
    bar.finish();
    let report = report?;
    args.server.write(&report)?;
    super::print(&report.to_string())
}
