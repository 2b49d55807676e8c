//! Synthetic checkpoints: complete snapshot directories with made-up weights that anyone can make again.
//!
//! Names, shapes and files are those of a released checkpoint; weights are a hash of name and position, statistics and
//! tokenizer are our own. They know nothing about robots.

mod generator;
mod robots;
mod shards;
mod tokenizer;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Value, json};

use super::n16::{self, BACKBONE_FILE, Config};
use super::{CONFIG_FILE, PROCESSOR_FILE, SLOTS_FILE, STATISTICS_FILE};
use crate::contract::Version;

/// Folder of the tokenizer's files in a synthetic snapshot.
pub const TOKENIZER_FOLDER: &str = "tokenizer";

/// How large a synthetic checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Small widths and few layers: a few megabytes.
    Tiny,
    /// Real widths, few layers: 1.3 GB.
    Mid,
    /// The released 3B network.
    Full,
}

impl Size {
    pub const ALL: [Size; 3] = [Size::Tiny, Size::Mid, Size::Full];

    pub fn name(self) -> &'static str {
        match self {
            Size::Tiny => "tiny",
            Size::Mid => "mid",
            Size::Full => "full",
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Size::ALL.into_iter().find(|size| size.name() == text);
        known.ok_or_else(|| format!("size '{text}' is not one of tiny, mid, full"))
    }
}

/// Why no synthetic checkpoint was written.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    #[error("synthetic checkpoints of {version} cannot be made; n16 can")]
    Version { version: Version },
    #[error("{} exists and is not an empty directory; name another one or remove it", path.display())]
    Occupied { path: PathBuf },
    #[error(
        "the disk of {} has {:.1} GB free; the checkpoint needs {:.1} GB",
        path.display(), *free as f64 / 1e9, *needed as f64 / 1e9
    )]
    DiskFull { path: PathBuf, needed: u64, free: u64 },
    #[error("cannot write {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Writes a snapshot to `out`, which must not exist or be empty. `progress` hears how many bytes of weights are done,
/// and of how many, from several threads.
///
/// Everything is written beside `out` and renamed at the end, so that `out` is complete whenever it is there.
///
/// # Errors
/// A version without generator, an occupied target, too little space, or whatever the file system reports.
pub fn write(
    version: Version,
    size: Size,
    out: &Path,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), SynthError> {
    if version != Version::N16 {
        return Err(SynthError::Version { version });
    }
    refuse_occupied(out)?;
    let partial = partial_name(out);
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(|source| io_error(&partial, source))?;
    }
    fs::create_dir_all(&partial).map_err(|source| io_error(&partial, source))?;
    let config = network(size);
    shards::write(&partial, &n16::tensors(&config), shard_limit(size), progress)?;
    write_settings(&partial, size, &config)?;
    write_tokenizer(&partial.join(TOKENIZER_FOLDER))?;
    if out.exists() {
        fs::remove_dir(out).map_err(|source| io_error(out, source))?;
    }
    fs::rename(&partial, out).map_err(|source| io_error(out, source))
}

fn io_error(path: &Path, source: io::Error) -> SynthError {
    SynthError::Io { path: path.to_owned(), source }
}

fn refuse_occupied(out: &Path) -> Result<(), SynthError> {
    let occupied = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(_) => true,
    };
    if occupied { Err(SynthError::Occupied { path: out.to_owned() }) } else { Ok(()) }
}

/// Where the snapshot grows; left over only when the process was killed.
fn partial_name(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".synth-partial");
    out.with_file_name(name)
}

fn network(size: Size) -> Config {
    let mut config = Config::released();
    let Config { vision, llm, head } = &mut config;
    match size {
        Size::Full => {}
        Size::Mid => {
            vision.layers = 2;
            llm.layers = 2;
            head.dit_layers = 4;
        }
        Size::Tiny => {
            (vision.width, vision.layers, vision.heads, vision.mlp_width) = (72, 2, 2, 176);
            (llm.width, llm.layers, llm.mlp_width) = (32, 2, 96);
            (llm.heads, llm.kv_heads, llm.head_dim) = (4, 2, 32);
            (head.dit_layers, head.dit_heads, head.dit_output, head.hidden) = (4, 2, 64, 64);
            (head.slots, head.position_rows) = (3, 64);
        }
    }
    config
}

/// Bytes of tensors in a shard, at most.
fn shard_limit(size: Size) -> u64 {
    match size {
        Size::Tiny => 10_000_000,
        Size::Mid | Size::Full => 5_000_000_000,
    }
}

fn slots(size: Size) -> Value {
    match size {
        Size::Tiny => json!({ "libero_panda": 0, "new_embodiment": 1, "gr1": 2 }),
        Size::Mid | Size::Full => n16::BUILT_IN_SLOTS.into_iter().collect(),
    }
}

fn processor(config: &Config) -> Value {
    json!({
        "processor_class": n16::PROCESSOR_SCHEMA.class,
        "processor_kwargs": {
            "modality_configs": robots::modality_configs(),
            "image_crop_size": null,
            "image_target_size": null,
            "use_albumentations": true,
            "shortest_image_edge": 256,
            "crop_fraction": 0.95,
            "model_name": n16::BACKBONE,
            "model_type": n16::PROCESSOR_SCHEMA.backbone_kind,
            "formalize_language": true,
            "max_state_dim": config.head.state_width,
            "max_action_dim": config.head.action_width,
            "max_action_horizon": config.head.action_rows,
            "use_percentiles": false,
            "clip_outliers": true,
            "apply_sincos_state_encoding": true,
            "use_relative_action": true,
        },
    })
}

fn write_settings(dir: &Path, size: Size, config: &Config) -> Result<(), SynthError> {
    let (network, backbone) = n16::to_json(config);
    write_json(&dir.join(CONFIG_FILE), &network)?;
    if size != Size::Full {
        write_json(&dir.join(BACKBONE_FILE), &backbone)?;
    }
    write_json(&dir.join(PROCESSOR_FILE), &processor(config))?;
    write_json(&dir.join(STATISTICS_FILE), &robots::statistics())?;
    write_json(&dir.join(SLOTS_FILE), &slots(size))
}

fn write_tokenizer(dir: &Path) -> Result<(), SynthError> {
    let files = tokenizer::build();
    fs::create_dir_all(dir).map_err(|source| io_error(dir, source))?;
    write_json(&dir.join("vocab.json"), &files.vocab)?;
    write_json(&dir.join("added_tokens.json"), &files.added_tokens)?;
    let path = dir.join("merges.txt");
    fs::write(&path, files.merges).map_err(|source| io_error(&path, source))
}

fn write_json(path: &Path, value: &Value) -> Result<(), SynthError> {
    fs::write(path, format!("{value:#}\n")).map_err(|source| io_error(path, source))
}
