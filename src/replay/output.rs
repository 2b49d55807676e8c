//! The files of a replay.

use std::fs;
use std::path::{Path, PathBuf};

use super::chunk_file::{self, Run, Stored};
use super::error::ReplayError;
use super::pictures::Section;
use super::{Replay, html, png};

pub const REPORT: &str = "report.json";
pub const LATENCY: &str = "latency.json";
pub const CHUNKS: &str = "chunks.safetensors";
pub const PAGE: &str = "report.html";
/// How the names of diagrams of action groups begin.
pub const ACTIONS: &str = "actions_";

/// Writes everything into a folder, which is made if it is not there; files of these names are replaced. Gives back
/// their names.
///
/// # Errors
/// What cannot be written.
pub fn write(replay: &Replay, folder: &Path) -> Result<Vec<String>, ReplayError> {
    fs::create_dir_all(folder).map_err(|error| write_error(folder, error))?;
    remove_pictures(folder);
    let mut written = Vec::new();
    let mut file = |name: &str, bytes: &[u8]| -> Result<(), ReplayError> {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| write_error(&path, error))?;
        written.push(name.to_owned());
        Ok(())
    };
    file(REPORT, &json(&replay.report, folder)?)?;
    file(LATENCY, &json(&replay.latency, folder)?)?;
    file(CHUNKS, &replay.chunks)?;
    let mut sections = replay.actions();
    sections.extend([replay.ages(), replay.latencies()]);
    file(PAGE, html::page(replay, &sections).as_bytes())?;
    for Section { title, name, charts, time } in &sections {
        let parts = charts.chunks(png::MAX_PANELS).enumerate();
        for (number, part) in parts {
            let name = if number == 0 {
                format!("{name}.png")
            } else {
                format!("{name}_{}.png", number + 1)
            };
            png::save(&folder.join(&name), title, part, time)?;
            written.push(name);
        }
    }
    Ok(written)
}

/// Removes the diagrams of an earlier replay, which may have had other groups.
fn remove_pictures(folder: &Path) {
    if !folder.join(REPORT).exists() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(ACTIONS) && name.ends_with(".png") {
            // One that stays is a nuisance and no reason to give nothing.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn json(value: &impl serde::Serialize, folder: &Path) -> Result<Vec<u8>, ReplayError> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| write_error(folder, std::io::Error::other(error)))?;
    Ok((text + "\n").into_bytes())
}

fn write_error(path: &Path, error: std::io::Error) -> ReplayError {
    ReplayError::Write { path: path.to_owned(), error }
}

/// An earlier run.
pub struct Previous {
    /// What it goes by.
    pub name: String,
    pub run: Run,
    pub chunks: Vec<Stored>,
}

/// The chunks of an earlier run: its folder, or the chunk file itself.
///
/// # Errors
/// It is no such thing.
pub fn read_chunks(path: &Path) -> Result<Previous, ReplayError> {
    let file: PathBuf = if path.is_dir() { path.join(CHUNKS) } else { path.to_owned() };
    let (run, chunks) = chunk_file::read(&file)
        .map_err(|problem| ReplayError::Previous { path: file.clone(), problem })?;
    Ok(Previous { name: path.display().to_string(), run, chunks })
}
