//! The environment variables of the serving documents: which are obeyed, and which are only named.
//!
//! Those that are also options of a command stand at the options (`GR00T_VERSION`, `GR00T_WARMUP_RUNS`, ...).

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::contract::Version;
use crate::weights::lock::Release;

/// Variables that begin like those of the documents and are obeyed, here or at the options of commands.
const OBEYED: [&str; 15] = [
    "GR00T_CACHE_DIR",
    "GR00T_DEFAULT_SEED",
    "GR00T_EMBODIMENT",
    "GR00T_HTTP_TOKEN",
    "GR00T_LAYOUT",
    "GR00T_LOG_FORMAT",
    "GR00T_TOKENIZER_DIR",
    "GR00T_TOKENIZER_DIR_N15",
    "GR00T_TOKENIZER_DIR_N16",
    "GR00T_TOKENIZER_DIR_N17",
    "GR00T_TORCH_THREADS",
    "GR00T_VERSION",
    "GR00T_WARMUP_PCC_MIN",
    "GR00T_WARMUP_RUNS",
    "GR00T_WEIGHTS_DIR",
];
/// Those of the documents that set up a card or a Python process; others that begin with [`PREFIX`] are told as well.
const OF_A_CARD: [&str; 7] = [
    "MESH_DEVICE",
    "TT_CACHE_PATH",
    "TT_DEVICE_ID",
    "TT_DIT_CACHE_DIR",
    "TT_METAL_CACHE",
    "TT_METAL_VISIBLE_DEVICES",
    "TT_MESH_SHAPE",
];
const PREFIX: &str = "GR00T_";
/// Variables that this program has for other commands, and its own that are not about serving.
const ELSEWHERE: [&str; 2] = ["GR00T_WEIGHTS_LOCK", "GR00T_BLACKHOLE_"];

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Directory of the tokenizer files of this version.
    pub tokenizer: Option<PathBuf>,
    /// Threads of the CPU backend.
    pub threads: Option<usize>,
    /// Variables without effect, by name.
    pub ignored: Vec<String>,
}

/// A variable that cannot be obeyed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{name} is '{found}', but {version} is released as '{wanted}'; correct it or unset it")]
    OtherRelease { name: &'static str, found: String, wanted: String, version: Version },
    #[error("GR00T_TORCH_THREADS is '{found}'; a number from 1 to 256 is needed")]
    Threads { found: String },
}

impl Environment {
    /// Of a policy of `version`, which is released as `release`. Empty variables count as unset.
    ///
    /// # Errors
    /// A variable that names another release, or is no number.
    pub fn read(
        variables: &BTreeMap<String, String>,
        version: Version,
        release: &Release,
    ) -> Result<Self, EnvironmentError> {
        let given = |name: &str| variables.get(name).filter(|value| !value.is_empty());
        let released = [
            ("HF_MODEL", Some(&release.weights.repo)),
            ("TT_WEIGHTS_REVISION", release.weights.revision.as_ref()),
        ];
        for (name, wanted) in released {
            if let (Some(found), Some(wanted)) = (given(name), wanted)
                && found != wanted
            {
                let (found, wanted) = (found.clone(), wanted.clone());
                return Err(EnvironmentError::OtherRelease { name, found, wanted, version });
            }
        }
        let tokenizer = format!("GR00T_TOKENIZER_DIR_{}", version.name().to_uppercase());
        Ok(Self {
            tokenizer: given(&tokenizer).map(PathBuf::from),
            threads: given("GR00T_TORCH_THREADS").map(|text| threads(text)).transpose()?,
            ignored: variables.keys().filter(|name| is_ignored(name)).cloned().collect(),
        })
    }
}

fn threads(text: &str) -> Result<usize, EnvironmentError> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| EnvironmentError::Threads { found: text.to_owned() })
}

fn is_ignored(name: &str) -> bool {
    let own = OBEYED.contains(&name) || ELSEWHERE.iter().any(|start| name.starts_with(start));
    OF_A_CARD.contains(&name) || (name.starts_with(PREFIX) && !own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::lock::{BUILT_IN, Lock, Origin};

    fn read(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).unwrap();
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let release = lock.release(Version::N16).unwrap();
        Environment::read(&variables.collect(), Version::N16, release)
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let found = read(&[
            ("GR00T_DIT_BACKEND", "megakernel"),
            ("GR00T_EMBODIMENT", "gr1"),
            ("GR00T_NUM_CQS", "2"),
            ("GR00T_WEIGHTS_LOCK", "weights.lock"),
            ("HOME", "/root"),
            ("TT_DEVICE_ID", "0"),
        ]);
        assert_eq!(found.unwrap().ignored, ["GR00T_DIT_BACKEND", "GR00T_NUM_CQS", "TT_DEVICE_ID"]);
    }

    #[test]
    fn the_tokenizer_is_that_of_the_version() {
        let found = read(&[("GR00T_TOKENIZER_DIR_N15", "a"), ("GR00T_TOKENIZER_DIR_N16", "b")]);
        assert_eq!(found.unwrap().tokenizer, Some(PathBuf::from("b")));
    }

    #[test]
    fn another_release_is_refused() {
        assert!(read(&[("HF_MODEL", "nvidia/GR00T-N1.6-3B"), ("TT_WEIGHTS_REVISION", "")]).is_ok());
        for (name, value) in [("HF_MODEL", "nvidia/GR00T-N1.5-3B"), ("TT_WEIGHTS_REVISION", "main")]
        {
            let error = read(&[(name, value)]).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn threads_are_a_number_within_limits() {
        assert_eq!(read(&[("GR00T_TORCH_THREADS", "4")]).unwrap().threads, Some(4));
        for wrong in ["0", "257", "many"] {
            read(&[("GR00T_TORCH_THREADS", wrong)]).expect_err(wrong);
        }
    }
}
