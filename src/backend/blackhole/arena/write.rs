//! Packing an arena into a file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use rayon::prelude::*;
use tempfile::NamedTempFile;

use super::file::Header;
use super::pack::{BankBytes, Packing};
use super::{Arena, ArenaError, ArenaPlan, BANKS, Progress};
use crate::checkpoint::Checkpoint;
use crate::{disk, whole};

/// Bytes that are packed before the pages of their weights are given back.
const RELEASE_BYTES: u64 = 128 << 20;

impl Arena {
    /// Packs an arena into the file `out`, on all threads of the current rayon pool, and gives it a key, which says
    /// what it was made from ([`ArenaPlan::key`]). `progress` hears of bytes of packed banks.
    ///
    /// The file is written beside its place and renamed when it is whole, whoever else does the same.
    ///
    /// # Errors
    /// A weight that is not in the checkpoint, a place that cannot be written to, a full disk. Nothing is left behind
    /// then.
    pub fn write(
        plan: &ArenaPlan,
        checkpoint: &Checkpoint,
        key: &str,
        out: &Path,
        progress: Progress<'_>,
    ) -> Result<(), ArenaError> {
        let write = |error| ArenaError::Write { path: out.to_owned(), error };
        let dir = folder_of(out);
        fs::create_dir_all(&dir).map_err(write)?;
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!("{}{name}-", whole::PARTIAL);
        whole::remove_abandoned(&dir, &prefix);
        let partial = whole::partial_in(&dir, &prefix);
        finish(partial.map_err(write)?, plan, checkpoint, key, out, progress)
    }
}

/// Fills a file and puts it in its place; if that fails, the file is removed.
fn finish(
    partial: NamedTempFile,
    plan: &ArenaPlan,
    checkpoint: &Checkpoint,
    key: &str,
    out: &Path,
    progress: Progress<'_>,
) -> Result<(), ArenaError> {
    let packing = Packing::new(plan, checkpoint)?;
    let failed = |error: io::Error| write_error(out, plan, error);
    let encode = |hashes: [Hash; BANKS]| {
        Header::new(plan, key, hashes).encode().map_err(|error| failed(error.into()))
    };
    // Every hash is as long as those that are not known yet.
    let start = encode([blake3::hash(&[]); BANKS])?.len() as u64;
    let needed = start + plan.bytes();
    let free = disk::free_bytes(&folder_of(out)).map_err(failed)?;
    if free < needed {
        return Err(ArenaError::DiskFull { path: out.to_owned(), needed, free });
    }

    let file = partial.as_file();
    let mut banks = Banks::new(file, start, plan);
    // While one block is packed, the one before it is hashed and written.
    let (mut packed, mut next) = (BankBytes::default(), BankBytes::default());
    let mut released = 0;
    for pieces in packing.blocks() {
        let pack = || packing.pack(pieces, &mut next);
        let (packs, writes) = rayon::join(pack, || banks.append(&packed));
        packs?;
        writes.map_err(failed)?;
        std::mem::swap(&mut packed, &mut next);
        progress(banks.done, plan.bytes());
        if banks.done - released >= RELEASE_BYTES {
            released = banks.done;
            // Without it, only more memory is taken.
            let _ = checkpoint.release();
        }
    }
    banks.append(&packed).map_err(failed)?;
    progress(banks.done, plan.bytes());
    let header = encode(banks.hashes())?;
    file.write_all_at(&header, 0).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    partial.persist(out).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Banks that are being written.
struct Banks<'a> {
    file: &'a File,
    /// How far each is: where its next byte belongs in the file, and the hash of all before.
    banks: [(u64, Hasher); BANKS],
    /// Bytes of all banks that are written.
    done: u64,
}

impl<'a> Banks<'a> {
    /// The first one begins at `start` in the file.
    fn new(file: &'a File, start: u64, plan: &ArenaPlan) -> Self {
        let mut at = start;
        let banks = std::array::from_fn(|bank| {
            let begin = at;
            at += plan.bank_bytes(bank as u8);
            (begin, Hasher::new())
        });
        Self { file, banks, done: 0 }
    }

    fn append(&mut self, bytes: &BankBytes) -> io::Result<()> {
        let file = self.file;
        self.banks.par_iter_mut().zip(bytes.par_iter()).try_for_each(|((at, hasher), bytes)| {
            hasher.update_rayon(bytes);
            file.write_all_at(bytes, *at)?;
            *at += bytes.len() as u64;
            io::Result::Ok(())
        })?;
        self.done += bytes.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        Ok(())
    }

    fn hashes(&self) -> [Hash; BANKS] {
        self.banks.each_ref().map(|(_, hasher)| hasher.finalize())
    }
}

fn write_error(out: &Path, plan: &ArenaPlan, error: io::Error) -> ArenaError {
    let path = out.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let free = disk::free_bytes(&folder_of(out)).unwrap_or_default();
            ArenaError::DiskFull { path, needed: plan.bytes(), free }
        }
        _ => ArenaError::Write { path, error },
    }
}

/// The folder that a file is in, or will be.
fn folder_of(out: &Path) -> PathBuf {
    match out.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Blob, HoistRules};
    use super::*;
    use crate::backend::blackhole::numerics::DtypePolicy;
    use crate::checkpoint::synth::{self, Size};
    use crate::contract::Version;

    #[test]
    fn a_full_disk_is_told_and_nothing_is_left() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let snapshot = dir.path().join("tiny");
        synth::write(Version::N16, Size::Tiny, &snapshot, &|_, _| {}).expect("a tiny checkpoint");
        let checkpoint = Checkpoint::open(&snapshot).expect("it opens");
        let blob = Blob { name: "blob".to_owned(), bank: 0, bytes: vec![1; 100_000] };
        let rules = HoistRules::default();
        let plan = ArenaPlan::new(&[], DtypePolicy::Bf16, &[], vec![blob], &rules).expect("valid");

        let folder = dir.path().join("arenas");
        fs::create_dir(&folder).expect("the folder is ours");
        // A file that has its place, but whose bytes go to a device that is always full.
        let full = |path: &Path| {
            File::create(path)?;
            File::options().write(true).open("/dev/full")
        };
        let partial = tempfile::Builder::new().make_in(&folder, full).expect("a device of Linux");
        let out = folder.join("arena");
        let error = finish(partial, &plan, &checkpoint, "key", &out, &|_, _| ());
        let error = error.expect_err("nothing can be written");
        assert!(
            matches!(&error, ArenaError::DiskFull { path, needed: 100_032, .. } if *path == out),
            "{error}"
        );
        assert_eq!(fs::read_dir(&folder).expect("the folder is ours").count(), 0);
    }
}
