//! Which files a bag consists of.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::BagError;
use super::limits::MAX_FILES;
use super::metadata::{METADATA_FILE, Metadata};
use super::note::Note;

/// Endings of bag files, by which they are found where no metadata names them.
const ENDINGS: [&str; 4] = [".mcap", ".db3", ".mcap.zstd", ".db3.zstd"];
/// Ending of a file that is compressed as a whole.
const PACKED: &str = ".zstd";

/// The files of a bag, in their order.
pub(super) struct BagFiles {
    pub files: Vec<PathBuf>,
    pub metadata: Option<Metadata>,
    pub notes: Vec<Note>,
}

/// Finds the files of the bag at `path`: a directory, or a single bag file, which is read by its own words.
///
/// # Errors
/// No bag there, files that are missing or stand elsewhere, or several that may be the same.
pub(super) fn find(path: &Path) -> Result<BagFiles, BagError> {
    let found = fs::metadata(path).map_err(BagError::io(path))?;
    if !found.is_dir() {
        return Ok(BagFiles { files: vec![path.into()], metadata: None, notes: Vec::new() });
    }
    let present = bag_files(path)?;
    match Metadata::read(path)? {
        Some(metadata) => named(path, &present, metadata),
        None => unnamed(path, present),
    }
}

fn named(dir: &Path, present: &[String], metadata: Metadata) -> Result<BagFiles, BagError> {
    let mut notes = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut missing = Vec::new();
    for name in metadata.file_names(dir)? {
        if dir.join(&name).is_file() {
            names.push(name);
        } else if let Some(found) = other_name(&name).filter(|other| dir.join(other).is_file()) {
            notes.push(Note::OtherName { named: name, found: found.clone() });
            names.push(found);
        } else {
            missing.push(name);
        }
    }
    if !missing.is_empty() {
        return Err(BagError::MissingFiles { dir: dir.into(), files: missing });
    }
    if names.is_empty() {
        let reason = "it names no bag file".into();
        return Err(BagError::Metadata { path: dir.join(METADATA_FILE), reason });
    }
    if let Some(name) =
        names.iter().enumerate().find_map(|(i, name)| names[..i].contains(name).then_some(name))
    {
        let reason = format!("it names {name} twice");
        return Err(BagError::Metadata { path: dir.join(METADATA_FILE), reason });
    }
    for file in present.iter().filter(|file| !names.contains(file)) {
        notes.push(Note::UnnamedFile { file: file.clone() });
    }
    let files = names.iter().map(|name| dir.join(name)).collect();
    Ok(BagFiles { files, metadata: Some(metadata), notes })
}

fn unnamed(dir: &Path, mut present: Vec<String>) -> Result<BagFiles, BagError> {
    // bag_2 before bag_10.
    present.sort_by(|a, b| (stem(a).len(), a).cmp(&(stem(b).len(), b)));
    if present.is_empty() {
        return Err(BagError::NoBag(dir.into()));
    }
    let twins = present.windows(2).find(|pair| stem(&pair[0]) == stem(&pair[1]));
    if let Some([first, second]) = twins {
        let (dir, first, second) = (dir.into(), first.clone(), second.clone());
        return Err(BagError::Ambiguous { dir, first, second });
    }
    let first = &present[0];
    if let Some(other) = present.iter().find(|name| series(name) != series(first)) {
        let (dir, first, other) = (dir.into(), first.clone(), other.clone());
        return Err(BagError::SeveralBags { dir, first, other });
    }
    let notes = vec![Note::NoMetadata { files: present.len() }];
    let files = present.iter().map(|name| dir.join(name)).collect();
    Ok(BagFiles { files, metadata: None, notes })
}

/// The name of a bag file without its ending.
fn stem(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The name that the files of one bag have in common: what stands before the number of a split.
fn series(name: &str) -> &str {
    let stem = stem(name);
    match stem.rsplit_once('_') {
        Some((series, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => series,
        _ => stem,
    }
}

/// The name of a file without its compression, or with it.
fn other_name(name: &str) -> Option<String> {
    match name.strip_suffix(PACKED) {
        Some(plain) => Some(plain.to_owned()),
        None => Some(format!("{name}{PACKED}")),
    }
}

/// Names in `dir` that look like bag files. Hidden files are none: other systems leave such beside every file.
fn bag_files(dir: &Path) -> Result<Vec<String>, BagError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(BagError::io(dir))? {
        let name = entry.map_err(BagError::io(dir))?.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && dir.join(name).is_file() {
            names.push(name.to_owned());
        }
        if names.len() > MAX_FILES {
            return Err(BagError::TooManyFiles(dir.into()));
        }
    }
    names.sort();
    Ok(names)
}
