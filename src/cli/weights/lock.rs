//! `weights lock`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;

use super::chosen;
use crate::cli::progress::Bar;
use crate::contract::Version;
use crate::weights::cache::{Cache, MAIN};
use crate::weights::fill::Filler;
use crate::weights::locate;
use crate::weights::lock::{
    BUILT_IN, Lock, Origin, Release, Tokenizer, VARIABLE, named, read_text,
};
use crate::weights::verify::{self, Checked, Fault};

/// The lock file that is written where no other is named.
const DEFAULT: &str = "weights.lock";

/// Fill sizes and hashes that are not known yet into a lock file, from downloads that are verified first.
///
/// The file is that of --lock or GR00T_WEIGHTS_LOCK, or weights.lock in the current directory; where it does not exist, it becomes a copy of the built-in
/// one. Its comments stay. Use it with --lock or GR00T_WEIGHTS_LOCK.
#[derive(Debug, Args)]
pub struct LockArgs {
    /// Versions to fill in, n15, n16 or n17; default: all that are in the cache.
    #[arg(long = "version")]
    versions: Vec<Version>,
}

pub fn run(args: &LockArgs, file: Option<&Path>) -> anyhow::Result<()> {
    let path = named(file).unwrap_or_else(|| DEFAULT.into());
    let text = if path.exists() { read_text(&path)? } else { BUILT_IN.to_owned() };
    let lock = Lock::parse(&text, Origin::File(path.clone()))?;
    let cache = Cache::from_env();
    let mut filler = Filler::new(&text).context("the lock file cannot be edited")?;
    let mut verified = 0;
    for version in chosen(&lock, &args.versions)? {
        let release = lock.release(version)?;
        match locate::snapshot(&lock, &cache, version) {
            Ok(dir) => fill(&mut filler, version, release, &dir)?,
            Err(error) if !args.versions.is_empty() => return Err(error.into()),
            Err(_) => continue,
        }
        fill_tokenizer(&mut filler, version, release, &cache)?;
        verified += 1;
    }
    if verified == 0 {
        let root = cache.root().display();
        bail!(
            "no released checkpoint is in the cache {root}; `gr00t_blackhole weights fetch` brings one"
        );
    }
    if filler.filled.is_empty() {
        println!("{}: everything that was verified is known already", path.display());
        return Ok(());
    }
    for line in &filler.filled {
        println!("filled in {line}");
    }
    write(&path, &filler.text())?;
    println!("{} is written; use it with --lock or {VARIABLE}", path.display());
    Ok(())
}

fn fill(
    filler: &mut Filler,
    version: Version,
    release: &Release,
    dir: &Path,
) -> anyhow::Result<()> {
    let bar = Bar::of_bytes("verifying");
    let progress = |done, total| bar.update(done, total);
    let report = verify::verify(dir, Some((version, release)), &progress);
    bar.finish();
    // Files that nothing vouches for: neither a blob's name nor the lock file says what they have to be.
    let (vouched, unknown): (Vec<Checked>, Vec<Checked>) =
        report.files.into_iter().partition(|file| file.known);
    refuse(&report.faults)?;
    if let Some(file) = unknown.first() {
        bail!(
            "{}: nothing says which content {} should have; fetch it with `gr00t_blackhole weights fetch --version {version}`",
            dir.display(),
            file.path
        );
    }
    filler.files(&[version.name()], &vouched);
    Ok(())
}

fn fill_tokenizer(
    filler: &mut Filler,
    version: Version,
    release: &Release,
    cache: &Cache,
) -> anyhow::Result<()> {
    let Tokenizer::Hub(files) = &release.tokenizer else { return Ok(()) };
    let dir = locate::folder(cache, files);
    if !dir.is_dir() {
        return Ok(());
    }
    let (checked, faults) = verify::verify_tokenizer(&dir, &files.files, &|_, _| {});
    let faults: Vec<Fault> = faults.into_iter().map(Fault::from).collect();
    refuse(&faults)?;
    let known: Vec<Checked> = checked.into_iter().filter(|file| file.known).collect();
    let table = [version.name(), "tokenizer"];
    filler.files(&table, &known);
    if let Some(revision) = cache.repo(&files.repo).revision_of(MAIN)
        && files.revision.is_none()
    {
        filler.revision(&table, &revision);
    }
    Ok(())
}

/// Nothing is taken from a download with a fault.
fn refuse(faults: &[Fault]) -> anyhow::Result<()> {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { bail!("nothing is filled in: {}", lines.join("; ")) }
}

/// Replaces the file as a whole.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
