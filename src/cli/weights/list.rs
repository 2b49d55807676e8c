//! `weights list`.

use super::gigabytes;
use crate::contract::Version;
use crate::weights::cache::Cache;
use crate::weights::locate::{self, LocateError};
use crate::weights::lock::{HubFiles, Lock, Release, Tokenizer};

pub fn run(lock: &Lock) -> anyhow::Result<()> {
    let cache = Cache::from_env();
    let mut text = format!("{}; cache {}\n", lock.origin(), cache.root().display());
    for version in lock.versions() {
        text += &describe(version, lock.release(version)?, lock, &cache);
    }
    crate::cli::print(&text)
}

fn describe(version: Version, release: &Release, lock: &Lock, cache: &Cache) -> String {
    let Release { weights, tensors, tensor_bytes, licence, tokenizer } = release;
    let state = match locate::snapshot(lock, cache, version) {
        Ok(dir) => format!("in {}", dir.display()),
        Err(LocateError::Absent { .. }) => "not in the cache".to_owned(),
        Err(error) => format!("not ready: {error}"),
    };
    let tokenizer = match tokenizer {
        Tokenizer::Hub(files) => match locate::tokenizer(lock, cache, version) {
            Ok(Some(dir)) => format!("in {}", dir.display()),
            _ => format!("{}, not in the cache", name(files)),
        },
        Tokenizer::Elsewhere { place, .. } => format!("not on the hub: {place}"),
    };
    let known = weights.files.values().filter(|file| file.sha256.is_some()).count();
    format!(
        "\n{version}  {}\n  {tensors} tensors, {}; {} files, {known} hashes known\n  {}: {}\n  weights {state}\n  tokenizer {tokenizer}\n",
        name(weights),
        gigabytes(*tensor_bytes),
        weights.files.len(),
        licence.name,
        licence.note,
    )
}

fn name(files: &HubFiles) -> String {
    let revision = files.revision.as_deref().unwrap_or("(revision not known yet)");
    format!("{} @ {revision}", files.repo)
}
