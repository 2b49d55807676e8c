//! `weights fetch`.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;
use clap::{Args, value_parser};

use super::progress::Files;
use super::{chosen, gigabytes};
use crate::contract::Version;
use crate::weights::cache::Cache;
use crate::weights::fetch::{self, FetchError, Options};
use crate::weights::hub::Hub;
use crate::weights::licence::Terms;
use crate::weights::locate::{folder, missing, tokenizer_hint};
use crate::weights::lock::{HubFiles, Lock, Release, Tokenizer};

/// Download released checkpoints into the hub cache; goes on where an earlier run was interrupted.
///
/// Fetches the files that the lock file lists, compares sizes and hashes on the way, and the tokenizer's files where they are
/// on a hub. The licence is shown and accepted once.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Versions to fetch, n15, n16 or n17; may be repeated.
    #[arg(long = "version", required_unless_present = "all")]
    versions: Vec<Version>,
    /// Fetch every version of the lock file.
    #[arg(long, conflicts_with = "versions")]
    all: bool,
    /// Accept the licences, which are asked for once otherwise.
    #[arg(long)]
    accept_licence: bool,
    /// Files that are downloaded at the same time, 1 to 32.
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u8).range(1..=32))]
    jobs: u8,
}

pub fn run(args: &FetchArgs, lock: &Lock) -> anyhow::Result<()> {
    let (hub, cache) = (Hub::from_env()?, Cache::from_env());
    let versions = chosen(lock, &args.versions)?;
    for version in &versions {
        let release = lock.release(*version)?;
        require_licence(args, &hub, &cache, release)?;
    }
    let options = Options { jobs: usize::from(args.jobs), ..Options::default() };
    for version in versions {
        let release = lock.release(version)?;
        let snapshot = fetch_one(&hub, &cache, &release.weights, &options)?;
        println!("{version}: {snapshot}");
        fetch_tokenizer(lock, version, &hub, &cache, &options)?;
    }
    Ok(())
}

/// Fetches the files of one repository; gives the folder and what had to be done for it.
fn fetch_one(
    hub: &Hub,
    cache: &Cache,
    files: &HubFiles,
    options: &Options,
) -> Result<String, FetchError> {
    let watcher = Files::new();
    let fetched = fetch::fetch(hub, cache, files, options, &watcher)?;
    watcher.finish();
    let done = match fetched.downloaded {
        0 => "was in the cache".to_owned(),
        files => format!("{files} files, {}", gigabytes(watcher.received())),
    };
    Ok(format!("{} ({done})", fetched.snapshot.display()))
}

fn fetch_tokenizer(
    lock: &Lock,
    version: Version,
    hub: &Hub,
    cache: &Cache,
    options: &Options,
) -> anyhow::Result<()> {
    match &lock.release(version)?.tokenizer {
        Tokenizer::Hub(files) => {
            println!("{version} tokenizer: {}", fetch_one(hub, cache, files, options)?);
        }
        Tokenizer::Elsewhere { .. } => {
            println!("{version} tokenizer files: {}", tokenizer_hint(lock, version)?);
        }
    }
    Ok(())
}

/// Shows the licence and asks for it, unless it has been accepted.
fn require_licence(
    args: &FetchArgs,
    hub: &Hub,
    cache: &Cache,
    release: &Release,
) -> anyhow::Result<()> {
    let repo = cache.repo(&release.weights.repo);
    let terms = Terms::new(hub, &repo, &release.weights, &release.licence);
    // Where nothing is fetched, nothing is accepted.
    let missing = missing(&folder(cache, &release.weights), &release.weights.files);
    if terms.accepted() || missing.is_empty() {
        return Ok(());
    }
    eprintln!("{}", terms.text());
    if !args.accept_licence && !asked()? {
        bail!(
            "the licence has to be accepted once: read it, then run this again with --accept-licence"
        );
    }
    terms.accept().map_err(|(path, error)| FetchError::Io { path, error })?;
    Ok(())
}

/// Asks on a terminal; elsewhere nobody accepts.
fn asked() -> anyhow::Result<bool> {
    let (input, mut output) = (std::io::stdin(), std::io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return Ok(false);
    }
    write!(output, "Do you accept it? [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes)))
}
