//! The model versions that are served.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A GR00T model version; each has its own checkpoint schema, image chain, prompt and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    N15,
    N16,
    N17,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 3] = [Version::N15, Version::N16, Version::N17];

    /// Short name, as used on the command line and in messages: `n15`, `n16`, `n17`.
    pub fn name(self) -> &'static str {
        match self {
            Version::N15 => "n15",
            Version::N16 => "n16",
            Version::N17 => "n17",
        }
    }

    /// The value of `model_type` in the checkpoint's `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Version::N15 => "gr00t_n1_5",
            Version::N16 => "Gr00tN1d6",
            Version::N17 => "Gr00tN1d7",
        }
    }

    /// Seed of the initial noise where a request gives none: the deployed policy's own.
    pub fn default_seed(self) -> u64 {
        match self {
            Version::N15 => 0,
            Version::N16 | Version::N17 => 42,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Version::ALL
            .into_iter()
            .find(|version| version.name() == text)
            .ok_or_else(|| format!("version '{text}' is not one of n15, n16, n17"))
    }
}
