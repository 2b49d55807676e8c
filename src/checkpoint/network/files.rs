//! The files that describe a network.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::checkpoint::json::{self, Fields};
use crate::checkpoint::{CONFIG_FILE, CheckpointError};

/// `config.json`, and the file that overrides the built-in geometry of the backbone, if there is one.
pub struct ConfigFiles {
    config: (PathBuf, Map<String, Value>),
    backbone: Option<(PathBuf, Map<String, Value>)>,
}

impl ConfigFiles {
    /// Reads them from a snapshot directory; `backbone` is a path inside it.
    ///
    /// # Errors
    /// No `config.json`, or a file that is damaged.
    pub fn read(dir: &Path, backbone: &str) -> Result<Self, CheckpointError> {
        let path = dir.join(CONFIG_FILE);
        let config = json::read_object(&path)?;
        let backbone_path = dir.join(backbone);
        let backbone = json::read_object_if_present(&backbone_path)?;
        Ok(Self {
            config: (path, config),
            backbone: backbone.map(|object| (backbone_path, object)),
        })
    }

    pub fn config(&self) -> Fields<'_> {
        let (path, object) = &self.config;
        Fields::new(path, object)
    }

    pub fn backbone(&self) -> Option<Fields<'_>> {
        self.backbone.as_ref().map(|(path, object)| Fields::new(path, object))
    }
}
