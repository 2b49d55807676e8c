//! `package`: what `tt-model` makes a container of.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::WrongUsage;
use crate::contract::Version;
use crate::package::{self, Options};
use crate::weights::lock::Lock;

/// Write what tt-model packages and serves: tt-model.yaml of schema 5.1 and the code that it names, per version.
///
/// The weights are a pointer to the release in weights.lock; none are copied. Then, in the folder that is printed:
/// tt-model package --container tt-model.yaml
#[derive(Debug, Args)]
pub struct PackageArgs {
    /// Version to package: n15, n16 or n17; every one of the lock file if it is left out.
    #[arg(long)]
    version: Option<Version>,
    /// Folder in which each package gets a folder of its own.
    #[arg(long)]
    out: PathBuf,
    /// Owner of the repositories that packages are published to.
    #[arg(long)]
    owner: String,
    /// Program that serves in the container, built without ROS 2; default: this one, if it is.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Lock file; default: that of GR00T_WEIGHTS_LOCK, or else the built-in one.
    #[arg(long)]
    lock: Option<PathBuf>,
}

pub fn run(args: &PackageArgs) -> anyhow::Result<()> {
    let lock = Lock::find(args.lock.as_deref())?;
    let options = Options { owner: args.owner.clone(), program: args.program()? };
    let versions = args.version.map_or_else(|| lock.versions().collect(), |version| vec![version]);
    for version in versions {
        let folder = package::write(version, &lock, &options, &args.out)?;
        super::print(&format!("{}\n", folder.display()))?;
    }
    Ok(())
}

impl PackageArgs {
    fn program(&self) -> anyhow::Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None if cfg!(feature = "ros") => Err(WrongUsage(
                "this program needs ROS 2, which the container does not have; name one that does not with --program \
                 (cargo build --release --no-default-features)"
                    .to_owned(),
            )
            .into()),
            None => std::env::current_exe().context("cannot find this program's own file; name one with --program"),
        }
    }
}
