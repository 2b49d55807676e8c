//! The files of a plan.

use std::fs;
use std::path::Path;

use super::error::PlanError;
use super::page;
use super::report::Report;
use crate::whole;

pub const REPORT: &str = "plan.json";
pub const PAGE: &str = "plan.html";

/// Writes both into a folder, which is made if it is not there; files of these names are replaced, each as a whole.
///
/// # Errors
/// What cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<(), PlanError> {
    let failed = |path: &Path, error| PlanError::Write { path: path.to_owned(), error };
    if folder.exists() && !folder.is_dir() {
        return Err(PlanError::NotAFolder { path: folder.to_owned() });
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        whole::write(&path, text.as_bytes()).map_err(|error| failed(&path, error))
    };
    let json = serde_json::to_string_pretty(report)
        .map_err(|error| failed(folder, std::io::Error::other(error)))?;
    file(REPORT, json + "\n")?;
    file(PAGE, page::page(report))
}
