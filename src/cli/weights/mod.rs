//! `weights`: released checkpoints, from the lock file to the disk.

mod fetch;
mod list;
mod lock;
mod progress;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::contract::Version;
use crate::weights::lock::{Lock, LockError};

// What the commands do stands at their arguments, so that `--help` shows all of it.

/// Fetch released checkpoints into the hub cache, and verify what lies on a disk.
///
/// Which revisions and files are meant stands in weights.lock, which the program carries inside. The cache is that of Python's
/// huggingface_hub: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE,
/// HTTPS_PROXY and NO_PROXY mean what they mean there.
#[derive(Debug, Args)]
pub struct WeightsArgs {
    /// Lock file to use instead of the built-in one, or of the one that GR00T_WEIGHTS_LOCK names.
    #[arg(long, global = true, value_name = "FILE")]
    lock: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Fetch(fetch::FetchArgs),
    Lock(lock::LockArgs),
    Verify(verify::VerifyArgs),
    /// List released checkpoints: revision, size, what is known of them, and where they are in the cache.
    List,
}

pub fn run(args: &WeightsArgs) -> anyhow::Result<()> {
    let file = args.lock.as_deref();
    let lock = || Lock::find(file);
    match &args.command {
        Command::Fetch(fetch) => fetch::run(fetch, &lock()?),
        Command::Lock(fill) => lock::run(fill, file),
        Command::Verify(verify) => verify::run(verify, &lock()?),
        Command::List => list::run(&lock()?),
    }
}

/// The versions that are meant: those that are given, or all of the lock file.
fn chosen(lock: &Lock, given: &[Version]) -> Result<Vec<Version>, LockError> {
    for version in given {
        lock.release(*version)?;
    }
    let mut versions = given.to_vec();
    versions.sort_unstable();
    versions.dedup();
    Ok(if versions.is_empty() { lock.versions().collect() } else { versions })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.3} GB", bytes as f64 / 1e9)
}
