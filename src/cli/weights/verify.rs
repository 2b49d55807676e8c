//! `weights verify`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use clap::Args;

use super::{chosen, gigabytes};
use crate::cli::progress::Bar;
use crate::contract::Version;
use crate::weights::cache::Cache;
use crate::weights::locate;
use crate::weights::lock::{Lock, Release, Tokenizer};
use crate::weights::verify::{self, Checked, Report};

/// Check sizes, hashes, and every tensor of a checkpoint; exit status 1 if anything is wrong.
///
/// Compares the index with the headers of the shards, and those with every tensor of the network and its shape. Prints one line
/// for each fault. Without an option, every released checkpoint that is in the cache. Hashes that are not known yet are not compared; in a hub
/// cache the names of the blobs are hashes, too.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Released checkpoints in the cache, n15, n16 or n17; may be repeated.
    #[arg(long = "version")]
    versions: Vec<Version>,
    /// A snapshot directory, for example of a fine-tuned checkpoint, of which only the hashes are not known.
    #[arg(long, conflicts_with = "versions")]
    snapshot: Option<PathBuf>,
    /// The directory has to hold this released checkpoint, file by file.
    #[arg(long, requires = "snapshot", value_name = "VERSION")]
    released: Option<Version>,
    /// List the tensors that are stored and never read.
    #[arg(long)]
    unused: bool,
}

pub fn run(args: &VerifyArgs, lock: &Lock) -> anyhow::Result<()> {
    let cache = Cache::from_env();
    let mut faults = 0;
    if let Some(dir) = &args.snapshot {
        let released = match args.released {
            Some(version) => Some((version, lock.release(version)?)),
            None => None,
        };
        let reading = Reading::new();
        let report = verify::verify(dir, released, &|done, total| reading.at(done, total));
        faults += show(args, &report, &reading)?;
        return outcome(faults);
    }
    let mut looked_at = 0;
    for version in chosen(lock, &args.versions)? {
        let release = lock.release(version)?;
        let dir = locate::folder(&cache, &release.weights);
        if !dir.is_dir() {
            if !args.versions.is_empty() {
                // Says what to do, as a start would.
                locate::snapshot(lock, &cache, version)?;
            }
            continue;
        }
        looked_at += 1;
        let reading = Reading::new();
        let progress = |done, total| reading.at(done, total);
        let report = verify::verify(&dir, Some((version, release)), &progress);
        faults += show(args, &report, &reading)?;
        faults += show_tokenizer(version, release, &cache)?;
    }
    if looked_at == 0 {
        bail!(
            "no released checkpoint is in the cache {}; `gr00t_blackhole weights fetch` brings one, --snapshot names a directory",
            cache.root().display()
        );
    }
    outcome(faults)
}

fn outcome(faults: usize) -> anyhow::Result<()> {
    match faults {
        0 => Ok(()),
        1 => bail!("1 fault"),
        faults => bail!("{faults} faults"),
    }
}

/// Bytes that are read, and how fast.
struct Reading {
    bar: Bar,
    started: Instant,
}

impl Reading {
    fn new() -> Self {
        Self { bar: Bar::of_bytes("verifying"), started: Instant::now() }
    }

    fn at(&self, done: u64, total: u64) {
        self.bar.update(done, total);
    }
}

/// Prints what was found; the number of faults.
fn show(args: &VerifyArgs, report: &Report, reading: &Reading) -> anyhow::Result<usize> {
    reading.bar.finish();
    let version = report.version.map_or("unknown version", Version::name);
    let mut text = format!("{version} in {}\n", report.dir.display());
    let expected = report.expected_tensors.map_or_else(String::new, |count| format!(" of {count}"));
    text += &format!(
        "  {}{expected} tensors, {}; {} are stored and never read\n",
        report.tensors,
        gigabytes(report.bytes),
        report.unused.len()
    );
    if args.unused {
        for name in &report.unused {
            text += &format!("    unused: {name}\n");
        }
    }
    text += &hashes(&report.files, reading.started.elapsed().as_secs_f64());
    for fault in &report.faults {
        text += &format!("  FAULT {fault}\n");
    }
    if report.faults.is_empty() {
        text += "  no fault\n";
    }
    crate::cli::print(&text)?;
    Ok(report.faults.len())
}

fn hashes(files: &[Checked], seconds: f64) -> String {
    let unknown: Vec<&str> =
        files.iter().filter(|file| !file.known).map(|file| file.path.as_str()).collect();
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    if files.is_empty() {
        return "  no hashes are known of these files\n".to_owned();
    }
    let mut text = format!(
        "  {} of {} hashes compared; {} read in {seconds:.1} s, {:.2} GB/s\n",
        files.len() - unknown.len(),
        files.len(),
        gigabytes(bytes),
        bytes as f64 / 1e9 / seconds.max(1e-3)
    );
    if !unknown.is_empty() {
        text += &format!(
            "  not known yet, `weights lock` fills it in: hashes of {}\n",
            unknown.join(", ")
        );
    }
    text
}

/// Checks the tokenizer's files where they are in the cache; the number of faults.
fn show_tokenizer(version: Version, release: &Release, cache: &Cache) -> anyhow::Result<usize> {
    let Tokenizer::Hub(files) = &release.tokenizer else { return Ok(0) };
    let dir = locate::folder(cache, files);
    if !dir.is_dir() {
        crate::cli::print(&format!(
            "{version} tokenizer: {} is not in the cache; `gr00t_blackhole weights fetch --version {version}` brings it\n",
            files.repo
        ))?;
        return Ok(0);
    }
    let (checked, faults) = verify::verify_tokenizer(&dir, &files.files, &|_, _| {});
    let mut text = format!("{version} tokenizer in {}\n", dir.display());
    text += &format!("  {} files read\n", checked.len());
    for fault in &faults {
        text += &format!("  FAULT {fault}\n");
    }
    crate::cli::print(&text)?;
    Ok(faults.len())
}
