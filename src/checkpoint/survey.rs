//! Everything that is wrong with the weights of a snapshot, where [`Snapshot::open`] ends at the first fault.

use std::collections::BTreeSet;
use std::path::Path;

use super::layout::compare;
use super::{Checkpoint, CheckpointError, Network, Snapshot, hub};
use crate::contract::Version;

/// What the weights of a snapshot consist of, and every fault.
#[derive(Debug)]
pub struct Survey {
    /// `None` if the files that say it are damaged.
    pub version: Option<Version>,
    /// Tensors that are indexed and stored.
    pub tensors: usize,
    /// Bytes of those tensors.
    pub bytes: u64,
    /// Stored tensors that inference never reads, sorted.
    pub unused: Vec<String>,
    pub faults: Vec<CheckpointError>,
}

/// Compares index, headers and network of the snapshot directory `dir`. Only headers are read.
pub fn survey(dir: &Path) -> Survey {
    let dir = match hub::resolve(dir) {
        Ok(dir) => dir,
        Err(fault) => return Survey::of_nothing(fault),
    };
    let (stored, mut faults) = Checkpoint::survey(&dir);
    faults.extend(stored.not_indexed());
    let mut survey = Survey {
        version: None,
        tensors: stored.names().count(),
        bytes: stored.bytes(),
        unused: Vec::new(),
        faults,
    };
    match Network::read(&dir, &stored) {
        Ok(network) => survey.compare_with(&network, &stored),
        // A missing folder has been told already.
        Err(_) if !dir.is_dir() => {}
        Err(fault) => survey.faults.push(fault),
    }
    if survey.faults.is_empty() {
        // What is left: the files of the processing, and the embodiments.
        survey.faults.extend(Snapshot::open(&dir).err());
    }
    survey
}

impl Survey {
    fn of_nothing(fault: CheckpointError) -> Self {
        Self { version: None, tensors: 0, bytes: 0, unused: Vec::new(), faults: vec![fault] }
    }

    fn compare_with(&mut self, network: &Network, stored: &Checkpoint) {
        let specs = network.tensors();
        let used = specs.iter().filter(|spec| spec.used).map(|spec| spec.name.as_str());
        let used: BTreeSet<&str> = used.collect();
        let unused = stored.names().filter(|name| !used.contains(name));
        self.version = Some(network.version());
        self.unused = unused.map(str::to_owned).collect();
        self.faults.extend(compare(&specs, stored));
    }
}
