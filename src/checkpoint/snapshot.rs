//! A whole snapshot directory: version, tensors, configuration, processing and embodiments, all checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::embodiments::{EmbodimentProblem, Sources};
use super::json::{self, Fields};
use super::layout::check_tensors;
use super::network::HeadConfig;
use super::processor::{self, PROCESSOR_FILE, Processor, Schema};
use super::slots::{self, SLOTS_FILE};
use super::statistics::STATISTICS_FILE;
use super::{Checkpoint, CheckpointError, TensorSpec, hub, n15, n16, n17};
use crate::contract::{Embodiment, Version};

/// File with the network's numbers.
pub const CONFIG_FILE: &str = "config.json";

/// The network of a snapshot, with what its files say about processing; for N1.5 that is up to the data configs.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    N15(n15::Config),
    N16(n16::Config, Processor),
    N17(n17::Config, Processor),
}

impl Network {
    pub fn version(&self) -> Version {
        match self {
            Network::N15(_) => Version::N15,
            Network::N16(..) => Version::N16,
            Network::N17(..) => Version::N17,
        }
    }

    /// Reads the network of the snapshot directory `dir`, without comparing its tensors with the stored ones.
    pub(super) fn read(dir: &Path, stored: &Checkpoint) -> Result<Self, CheckpointError> {
        Ok(match read_version(dir)? {
            Version::N15 => Network::N15(n15::read_config(dir)?),
            Version::N16 => {
                let Declared { processor, .. } = Declared::n16(dir)?;
                Network::N16(n16::read_config(dir, stored, &processor)?, processor)
            }
            Version::N17 => {
                let Declared { processor, .. } = Declared::n17(dir)?;
                Network::N17(n17::read_config(dir, &processor)?, processor)
            }
        })
    }

    /// Every tensor of the network, in the order of the reference's modules.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        match self {
            Network::N15(config) => n15::tensors(config),
            Network::N16(config, _) => n16::tensors(config),
            Network::N17(config, _) => n17::tensors(config),
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

    fn n16(dir: &Path) -> Result<Self, CheckpointError> {
        Self::read(dir, &n16::PROCESSOR_SCHEMA, &n16::BUILT_IN_SLOTS)
    }

    fn n17(dir: &Path) -> Result<Self, CheckpointError> {
        let nested = dir.join(n17::PROCESSOR_FOLDER);
        let in_root = dir.join(PROCESSOR_FILE).exists() || !nested.join(PROCESSOR_FILE).exists();
        let slots: Vec<(&str, usize)> = n17::built_in_slots().collect();
        Self::read(if in_root { dir } else { &nested }, &n17::PROCESSOR_SCHEMA, &slots)
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
    embodiments: Embodiments,
    /// Tag -> data configs; empty for versions without.
    data_configs: BTreeMap<String, n15::Choices>,
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
            Version::N15 => Self::open_n15(dir),
            Version::N16 => Self::open_n16(dir),
            Version::N17 => Self::open_n17(dir),
        }
    }

    fn open_n15(dir: PathBuf) -> Result<Self, CheckpointError> {
        let metadata = json::read_object_with_non_finite(&dir.join(n15::METADATA_FILE))?;
        let tensors = Checkpoint::open(&dir)?;
        let config = n15::read_config(&dir)?;
        check_tensors(&n15::tensors(&config), &tensors)?;
        let sources = n15::Sources { metadata: &metadata, slot_count: config.head.slots };
        let data_configs = sources.build_all();
        let embodiments = data_configs
            .iter()
            .map(|(tag, choices)| {
                (tag.clone(), n15::choose(tag, choices).map_err(EmbodimentProblem::from))
            })
            .collect();
        Ok(Self {
            dir,
            tensors: Arc::new(tensors),
            network: Network::N15(config),
            embodiments,
            data_configs,
        })
    }

    fn open_n16(dir: PathBuf) -> Result<Self, CheckpointError> {
        let declared = Declared::n16(&dir)?;
        let tensors = Checkpoint::open(&dir)?;
        let config = n16::read_config(&dir, &tensors, &declared.processor)?;
        check_tensors(&n16::tensors(&config), &tensors)?;
        let embodiments = declared.embodiments(&config.head);
        Ok(Self::new(dir, tensors, Network::N16(config, declared.processor), embodiments))
    }

    fn open_n17(dir: PathBuf) -> Result<Self, CheckpointError> {
        let declared = Declared::n17(&dir)?;
        let tensors = Checkpoint::open(&dir)?;
        let config = n17::read_config(&dir, &declared.processor)?;
        check_tensors(&n17::tensors(&config), &tensors)?;
        let embodiments = declared.embodiments(&config.head);
        Ok(Self::new(dir, tensors, Network::N17(config, declared.processor), embodiments))
    }

    fn new(dir: PathBuf, tensors: Checkpoint, network: Network, embodiments: Embodiments) -> Self {
        let data_configs = BTreeMap::new();
        Self { dir, tensors: Arc::new(tensors), network, embodiments, data_configs }
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

    /// What `processor_config.json` says; `None` for N1.5, which has no such file.
    pub fn processor(&self) -> Option<&Processor> {
        match &self.network {
            Network::N15(_) => None,
            Network::N16(_, processor) | Network::N17(_, processor) => Some(processor),
        }
    }

    /// The embodiment of a tag. For N1.5, as the tag's own data config makes it, or the only one that fits.
    ///
    /// # Errors
    /// The tag is unknown, or cannot be served; the text says why and lists the tags that are served.
    pub fn embodiment(&self, tag: &str) -> Result<&Embodiment, CheckpointError> {
        let tag = self.resolve(tag);
        match self.embodiments.get(tag) {
            Some(Ok(embodiment)) => Ok(embodiment),
            Some(Err(problem)) => Err(self.unserved(tag, problem.clone())),
            None => Err(self.unknown(tag)),
        }
    }

    /// The embodiment that a data config of N1.5 makes of a tag's metadata.
    ///
    /// # Errors
    /// A version without data configs; a tag or data config that is unknown; a data config that does not fit.
    pub fn embodiment_with(
        &self,
        tag: &str,
        data_config: &str,
    ) -> Result<&Embodiment, CheckpointError> {
        self.check_data_config(data_config)?;
        let choices = self.data_configs.get(tag).ok_or_else(|| self.unknown(tag))?;
        match choices.get(data_config) {
            Some(Ok(embodiment)) => Ok(embodiment),
            Some(Err(problem)) => Err(self.unserved(tag, problem.clone().into())),
            None => Err(self.unknown(tag)),
        }
    }

    /// What a data config makes of the metadata of every tag, sorted by tag.
    ///
    /// # Errors
    /// A version without data configs; a data config that is unknown.
    pub fn embodiments_with(
        &self,
        data_config: &str,
    ) -> Result<
        impl Iterator<Item = (&str, Result<&Embodiment, &n15::DataConfigProblem>)>,
        CheckpointError,
    > {
        self.check_data_config(data_config)?;
        let tags = self.data_configs.iter();
        Ok(tags.filter_map(move |(tag, choices)| {
            Some((tag.as_str(), choices.get(data_config)?.as_ref()))
        }))
    }

    fn check_data_config(&self, name: &str) -> Result<(), CheckpointError> {
        let known: Vec<&'static str> = match self.network {
            Network::N15(_) => n15::DATA_CONFIGS.iter().map(|config| config.name).collect(),
            _ => vec![],
        };
        if known.contains(&name) {
            return Ok(());
        }
        let (version, data_config) = (self.version(), name.to_owned());
        Err(CheckpointError::UnknownDataConfig { version, data_config, known })
    }

    fn served_tags(&self) -> Vec<String> {
        self.served().map(|embodiment| embodiment.tag.clone()).collect()
    }

    fn unserved(&self, tag: &str, problem: EmbodimentProblem) -> CheckpointError {
        CheckpointError::Embodiment {
            dir: self.dir.clone(),
            tag: tag.to_owned(),
            problem: Box::new(problem),
            served: self.served_tags(),
        }
    }

    fn unknown(&self, tag: &str) -> CheckpointError {
        CheckpointError::UnknownEmbodiment {
            dir: self.dir.clone(),
            tag: tag.to_owned(),
            served: self.served_tags(),
        }
    }

    /// The tag that is meant by `name`. N1.7 also knows the names of the reference's constants, in any case.
    fn resolve<'a>(&self, name: &'a str) -> &'a str {
        let known = self.embodiments.contains_key(name);
        match self.network {
            Network::N17(..) if !known => n17::tag_of(name).unwrap_or(name),
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
