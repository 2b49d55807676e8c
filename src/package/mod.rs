//! What `tt-model package` turns into a container that `tt-model serve` runs: a manifest of schema 5.1, and the code that
//! it names.
//!
//! The manifest points to the released weights as the lock file has them; no weights are in a package.

mod manifest;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::contract::Version;
use crate::weights::lock::{Lock, LockError, Release};
use crate::whole;

pub use manifest::Manifest;

/// Name of the manifest, as `tt-model` has it.
const MANIFEST: &str = "tt-model.yaml";
/// The folder beside the manifest whose contents go into the image.
const CODE: &str = "code";
/// The Python package in it, which starts the program.
const APP: &str = "gr00t_blackhole_server";
const APP_TEXT: &str = include_str!("../../packaging/tt_model/app.py");
/// The program beside the Python package's files; `app.py` knows the name.
const PROGRAM: &str = "gr00t_blackhole";

/// What goes into packages, of whatever version.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose repositories packages are published to: the part of `OWNER/NAME` before the slash.
    pub owner: String,
    /// The program that serves in the container; it must not need ROS 2.
    pub program: PathBuf,
}

/// Why there is no package.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "{version} has no revision in {origin}, and a package has to name one; `gr00t_blackhole weights lock` fills it in"
    )]
    NoRevision { version: Version, origin: String },
    #[error(
        "'{owner}' owns no repository: letters, digits, '-', '_' and '.' are accepted, 1 to 96 of them"
    )]
    Owner { owner: String },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot copy the program {}: {error}", path.display())]
    Program { path: PathBuf, error: io::Error },
    #[error("the manifest cannot be written as YAML: {0}")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

/// Writes the package of a version into a folder of its name inside `out`, and gives back that folder. What is there of
/// an earlier package is replaced.
///
/// # Errors
/// A version that the lock file does not pin, an owner that is none, or what the file system reports.
pub fn write(
    version: Version,
    lock: &Lock,
    options: &Options,
    out: &Path,
) -> Result<PathBuf, PackageError> {
    check_owner(&options.owner)?;
    let manifest = Manifest::new(version, lock.release(version)?, &options.owner)
        .ok_or_else(|| PackageError::NoRevision { version, origin: lock.origin().to_string() })?;
    let folder = out.join(&manifest.name);
    let app = folder.join(CODE).join(APP);
    fs::create_dir_all(&app).map_err(|error| PackageError::Write { path: app.clone(), error })?;
    let text = format!(
        "# Made by `gr00t_blackhole package` from {}; make it anew instead of editing it.\n{}",
        lock.origin(),
        serde_saphyr::to_string(&manifest)?
    );
    for (path, text) in [
        (folder.join(MANIFEST), text.as_str()),
        (app.join("__init__.py"), ""),
        (app.join("app.py"), APP_TEXT),
    ] {
        whole::write(&path, text.as_bytes())
            .map_err(|error| PackageError::Write { path, error })?;
    }
    copy_program(&options.program, &app.join(PROGRAM))?;
    Ok(folder)
}

/// Copies by name, since a running program cannot be written over.
fn copy_program(from: &Path, to: &Path) -> Result<(), PackageError> {
    let failed = |error| PackageError::Program { path: from.to_owned(), error };
    let bytes = fs::read(from).map_err(failed)?;
    whole::write(to, &bytes).map_err(failed)?;
    fs::set_permissions(to, Permissions::from_mode(0o755)).map_err(failed)
}

fn check_owner(owner: &str) -> Result<(), PackageError> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=96).contains(&owner.len()) && owner.chars().all(known) {
        return Ok(());
    }
    Err(PackageError::Owner { owner: owner.to_owned() })
}

/// The name of a release without its owner, such as `GR00T-N1.6-3B`.
fn model_name(release: &Release) -> &str {
    release.weights.repo.rsplit('/').next().unwrap_or_default()
}
