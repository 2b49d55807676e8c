//! A whole snapshot directory: version, tensors, configuration, processing and embodiments, all checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::embodiments::{EmbodimentProblem, Sources};
use super::json::{self, Fields};
use super::network::HeadConfig;
use super::processor::{self, PROCESSOR_FILE, Processor, Schema};
use super::slots::{self, SLOTS_FILE};
use super::statistics::STATISTICS_FILE;
use super::{Checkpoint, CheckpointError, hub, n16, n17};
use crate::contract::{Embodiment, Version};

/// File with the network's numbers.
pub const CONFIG_FILE: &str = "config.json";

/// The network of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    N16(n16::Config),
    N17(n17::Config),
}

impl Network {
    pub fn version(&self) -> Version {
        match self {
            Network::N16(_) => Version::N16,
            Network::N17(_) => Version::N17,
        }
    }
}

/// Every tag that a snapshot mentions, with its embodiment or the reason why there is none.
type Embodiments = BTreeMap<String, Result<Embodiment, EmbodimentProblem>>;

/// What the three processor files say, which N1.6 and N1.7 have in common.
struct Declared {
    processor: Processor,
    modalities: Map<String, Value>,
    statistics: Map<String, Value>,
    slots: Map<String, Value>,
}

impl Declared {
    /// Reads them from `dir`; `built_in` are the slots of tags that the files leave out.
    fn read(
        dir: &Path,
        schema: &Schema,
        built_in: &[(&str, usize)],
    ) -> Result<Self, CheckpointError> {
        let (processor, modalities) = processor::read(&dir.join(PROCESSOR_FILE), schema)?;
        let statistics = json::read_object_with_non_finite(&dir.join(STATISTICS_FILE))?;
        let slots = slots::read(&dir.join(SLOTS_FILE), built_in)?;
        Ok(Self { processor, modalities, statistics, slots })
    }

    fn embodiments(&self, head: &HeadConfig) -> Embodiments {
        let sources = Sources {
            processor: &self.processor,
            modalities: &self.modalities,
            statistics: &self.statistics,
            slots: &self.slots,
            slot_count: head.slots,
            action_rows: head.action_rows,
        };
        sources.build_all()
    }
}

/// Everything that a snapshot directory says, checked before any work.
#[derive(Debug)]
pub struct Snapshot {
    dir: PathBuf,
    tensors: Arc<Checkpoint>,
    network: Network,
    processor: Processor,
    embodiments: Embodiments,
}

impl Snapshot {
    /// Opens a snapshot directory, or the folder of a model in a hub cache. Tensors are mapped, not read.
    ///
    /// # Errors
    /// Any file that is missing, damaged, or asks for something that is not served. An embodiment that cannot be served is
    /// not an error here: [`Snapshot::embodiment`] says why.
    pub fn open(dir: &Path) -> Result<Self, CheckpointError> {
        if !dir.is_dir() {
            return Err(CheckpointError::NotADirectory { dir: dir.to_owned() });
        }
        let dir = hub::resolve(dir)?;
        match read_version(&dir)? {
            Version::N16 => Self::open_n16(dir),
            Version::N17 => Self::open_n17(dir),
            version => {
                Err(CheckpointError::UnsupportedVersion { path: dir.join(CONFIG_FILE), version })
            }
        }
    }

    fn open_n16(dir: PathBuf) -> Result<Self, CheckpointError> {
        let declared = Declared::read(&dir, &n16::PROCESSOR_SCHEMA, &n16::BUILT_IN_SLOTS)?;
        let tensors = Checkpoint::open(&dir)?;
        let config = n16::open(&dir, &tensors, &declared.processor)?;
        let embodiments = declared.embodiments(&config.head);
        Ok(Self::new(dir, tensors, Network::N16(config), declared.processor, embodiments))
    }

    fn open_n17(dir: PathBuf) -> Result<Self, CheckpointError> {
        let nested = dir.join(n17::PROCESSOR_FOLDER);
        let in_root = dir.join(PROCESSOR_FILE).exists() || !nested.join(PROCESSOR_FILE).exists();
        let files = if in_root { &dir } else { &nested };
        let slots: Vec<(&str, usize)> = n17::built_in_slots().collect();
        let declared = Declared::read(files, &n17::PROCESSOR_SCHEMA, &slots)?;
        let tensors = Checkpoint::open(&dir)?;
        let config = n17::open(&dir, &tensors, &declared.processor)?;
        let embodiments = declared.embodiments(&config.head);
        Ok(Self::new(dir, tensors, Network::N17(config), declared.processor, embodiments))
    }

    fn new(
        dir: PathBuf,
        tensors: Checkpoint,
        network: Network,
        processor: Processor,
        embodiments: Embodiments,
    ) -> Self {
        Self { dir, tensors: Arc::new(tensors), network, processor, embodiments }
    }

    /// The snapshot directory, inside the hub cache where one was given.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn version(&self) -> Version {
        self.network.version()
    }

    pub fn tensors(&self) -> &Arc<Checkpoint> {
        &self.tensors
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The embodiment of a tag.
    ///
    /// # Errors
    /// The tag is unknown, or cannot be served; the text says why and lists the tags that are served.
    pub fn embodiment(&self, tag: &str) -> Result<&Embodiment, CheckpointError> {
        let tag = self.resolve(tag);
        let served = || self.served().map(|embodiment| embodiment.tag.clone()).collect();
        match self.embodiments.get(tag) {
            Some(Ok(embodiment)) => Ok(embodiment),
            Some(Err(problem)) => Err(CheckpointError::Embodiment {
                dir: self.dir.clone(),
                tag: tag.to_owned(),
                problem: Box::new(problem.clone()),
                served: served(),
            }),
            None => Err(CheckpointError::UnknownEmbodiment {
                dir: self.dir.clone(),
                tag: tag.to_owned(),
                served: served(),
            }),
        }
    }

    /// The tag that is meant by `name`. N1.7 also knows the names of the reference's constants, in any case.
    fn resolve<'a>(&self, name: &'a str) -> &'a str {
        let known = self.embodiments.contains_key(name);
        match self.network {
            Network::N17(_) if !known => n17::tag_of(name).unwrap_or(name),
            _ => name,
        }
    }

    /// Every embodiment that can be served, sorted by tag.
    pub fn served(&self) -> impl Iterator<Item = &Embodiment> {
        self.embodiments.values().filter_map(|embodiment| embodiment.as_ref().ok())
    }

    /// Every tag that a file of the snapshot mentions, sorted, with its embodiment or the reason why there is none.
    pub fn embodiments(
        &self,
    ) -> impl Iterator<Item = (&str, Result<&Embodiment, &EmbodimentProblem>)> {
        self.embodiments.iter().map(|(tag, embodiment)| (tag.as_str(), embodiment.as_ref()))
    }
}

/// Which version `config.json` declares.
fn read_version(dir: &Path) -> Result<Version, CheckpointError> {
    let path = dir.join(CONFIG_FILE);
    let object = json::read_object(&path)?;
    let fields = Fields::new(&path, &object);
    let declared = fields.get("model_type").and_then(Value::as_str);
    Version::ALL.into_iter().find(|version| declared == Some(version.model_type())).ok_or_else(
        || fields.refuse("model_type", Version::ALL.map(Version::model_type).join(", ")),
    )
}
