//! `metadata.yaml` of rosbag2, versions 1 to 9.

use std::fs;
use std::path::{Component, Path};

use serde::Deserialize;

use super::error::BagError;
use super::limits::{MAX_FILES, MAX_METADATA_BYTES, MAX_TOPICS};
use crate::regular;

pub const METADATA_FILE: &str = "metadata.yaml";
/// The newest version that is known.
pub const NEWEST_VERSION: i64 = 9;
/// Up to this version, file names begin with the name of the bag's directory.
const LAST_VERSION_WITH_FOLDER: i64 = 3;

/// What a `metadata.yaml` says, as far as it matters to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Metadata {
    pub version: i64,
    pub storage_identifier: String,
    pub relative_file_paths: Option<Vec<String>>,
    pub starting_time: Option<StartingTime>,
    pub duration: Option<Nanoseconds>,
    pub message_count: Option<u64>,
    pub topics_with_message_count: Option<Vec<CountedTopic>>,
    pub compression_format: Option<String>,
    pub compression_mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct StartingTime {
    pub nanoseconds_since_epoch: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Nanoseconds {
    pub nanoseconds: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct CountedTopic {
    pub topic_metadata: TopicMetadata,
    pub message_count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct TopicMetadata {
    pub name: String,
    #[serde(rename = "type")]
    pub message_type: String,
}

/// In `metadata.yaml`, everything stands under one key.
#[derive(Deserialize)]
struct Document {
    rosbag2_bagfile_information: Option<Metadata>,
}

/// How the messages of a bag are compressed, beside what the files themselves do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Not, or as files, which files show by themselves.
    Plain,
    /// Every message by itself.
    Message,
}

impl Metadata {
    /// Reads the file in `dir`; `None` if there is none, or an empty one, as a full disk leaves it.
    ///
    /// # Errors
    /// A file that cannot be read or is no `metadata.yaml`.
    pub fn read(dir: &Path) -> Result<Option<Self>, BagError> {
        let path = dir.join(METADATA_FILE);
        let bytes = match fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BagError::Io { path, error }),
        };
        if bytes > MAX_METADATA_BYTES {
            let (what, limit) = (METADATA_FILE, MAX_METADATA_BYTES);
            return Err(BagError::TooLarge { path, what, bytes, limit });
        }
        let text = regular::read_text(&path, MAX_METADATA_BYTES).map_err(BagError::io(&path))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        Self::parse(&text).map(Some).map_err(|reason| BagError::Metadata { path, reason })
    }

    /// Takes the text of a `metadata.yaml` apart.
    ///
    /// # Errors
    /// Why it is none, on one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = serde_saphyr::from_str(text).map_err(|error| one_line(&error))?;
        let metadata = match document.rosbag2_bagfile_information {
            Some(metadata) => metadata,
            // Where the text is stored in a bag file, the key is left out.
            None => serde_saphyr::from_str(text).map_err(|error| one_line(&error))?,
        };
        if metadata.version < 1 {
            return Err(format!("its version is {}", metadata.version));
        }
        for (what, found, limit) in [
            ("files", metadata.files().len(), MAX_FILES),
            ("topics", metadata.topics().len(), MAX_TOPICS),
        ] {
            if found > limit {
                return Err(format!("it names {found} {what}, more than {limit}"));
            }
        }
        Ok(metadata)
    }

    /// Names of the bag files, in their order, which all have to be files of `dir` itself.
    ///
    /// # Errors
    /// A name that leads elsewhere.
    pub fn file_names(&self, dir: &Path) -> Result<Vec<String>, BagError> {
        let plain = |name: &String| {
            plain_name(name, self.version <= LAST_VERSION_WITH_FOLDER).ok_or_else(|| {
                BagError::OutsideName { path: dir.join(METADATA_FILE), name: name.clone() }
            })
        };
        self.files().iter().map(plain).collect()
    }

    fn files(&self) -> &[String] {
        self.relative_file_paths.as_deref().unwrap_or_default()
    }

    /// Topics with the number of their messages.
    pub fn topics(&self) -> &[CountedTopic] {
        self.topics_with_message_count.as_deref().unwrap_or_default()
    }

    /// How messages are compressed.
    ///
    /// # Errors
    /// A way that is not read; `path` is where it is stated.
    pub fn mode(&self, path: &Path) -> Result<Mode, BagError> {
        let mode = self.compression_mode.clone().unwrap_or_default().to_ascii_lowercase();
        let format = self.compression_format.clone().unwrap_or_default();
        match (mode.as_str(), format.as_str()) {
            ("" | "none", _) | ("file", "zstd") => Ok(Mode::Plain),
            ("message", "zstd") => Ok(Mode::Message),
            _ => Err(BagError::Compression { path: path.into(), format, mode }),
        }
    }
}

/// The name of a file in the bag's own directory; in old versions the name of the directory may stand before it, which counts for
/// nothing, so that a bag may be renamed.
fn plain_name(name: &str, with_folder: bool) -> Option<String> {
    let components: Vec<Component<'_>> = Path::new(name).components().collect();
    let file = match components.as_slice() {
        [Component::Normal(file)] => file,
        [Component::CurDir, Component::Normal(file)] => file,
        [Component::Normal(_), Component::Normal(file)] if with_folder => file,
        _ => return None,
    };
    file.to_str().filter(|file| !file.contains('\0')).map(str::to_owned)
}

fn one_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(version: i64, more: &str) -> String {
        format!(
            "rosbag2_bagfile_information:\n  version: {version}\n  storage_identifier: sqlite3\n  relative_file_paths:\n    - a_0.db3\n    - a_1.db3\n  duration:\n    nanoseconds: 5\n  starting_time:\n    nanoseconds_since_epoch: 7\n  message_count: 3\n  topics_with_message_count:\n    - topic_metadata:\n        name: /a\n        type: std_msgs/msg/String\n        serialization_format: cdr\n{more}      message_count: 3\n"
        )
    }

    #[test]
    fn every_version_is_read() {
        let qos_text = "        offered_qos_profiles: \"- history: 3\\n  depth: 0\"\n";
        let qos_list = "        offered_qos_profiles:\n          - history: keep_last\n            depth: 10\n        type_description_hash: RIHS01_0\n";
        for (version, more) in [(1, ""), (2, ""), (4, qos_text), (5, qos_text), (9, qos_list)] {
            let metadata = Metadata::parse(&text(version, more)).unwrap();
            assert_eq!(metadata.version, version);
            assert_eq!(metadata.file_names(Path::new("/bag")).unwrap(), ["a_0.db3", "a_1.db3"]);
            assert_eq!(metadata.topics()[0].topic_metadata.name, "/a");
            assert_eq!(metadata.topics()[0].message_count, 3);
            assert_eq!(metadata.mode(Path::new("m")).unwrap(), Mode::Plain);
        }
        let bare = text(9, "").replace("rosbag2_bagfile_information:\n", "").replace("\n  ", "\n");
        let bare = bare.strip_prefix("  ").unwrap().to_owned();
        assert_eq!(Metadata::parse(&bare).unwrap(), Metadata::parse(&text(9, "")).unwrap());
    }

    #[test]
    fn names_stay_in_the_directory() {
        for (name, with_folder, expected) in [
            ("a_0.mcap", false, Some("a_0.mcap")),
            ("./a_0.mcap", false, Some("a_0.mcap")),
            ("a/a_0.mcap", true, Some("a_0.mcap")),
            ("a/a_0.mcap", false, None),
            ("../a_0.mcap", true, None),
            ("../../etc/passwd", false, None),
            ("/etc/passwd", true, None),
            ("..", true, None),
            ("", true, None),
            ("a/b/c.mcap", true, None),
        ] {
            assert_eq!(plain_name(name, with_folder).as_deref(), expected, "{name} {with_folder}");
        }
    }

    #[test]
    fn compression_is_read_or_refused_by_name() {
        let with = |format: &str, mode: &str| {
            let more = format!("  compression_format: '{format}'\n  compression_mode: '{mode}'\n");
            Metadata::parse(&(text(5, "") + &more)).unwrap().mode(Path::new("metadata.yaml"))
        };
        assert_eq!(with("", "").unwrap(), Mode::Plain);
        assert_eq!(with("zstd", "FILE").unwrap(), Mode::Plain);
        assert_eq!(with("zstd", "MESSAGE").unwrap(), Mode::Message);
        assert_eq!(with("zstd", "message").unwrap(), Mode::Message);
        for (format, mode) in [("lz4", "FILE"), ("", "MESSAGE"), ("zstd", "TOPIC")] {
            let error = with(format, mode).unwrap_err().to_string();
            assert!(error.contains(format) && error.contains(&mode.to_lowercase()), "{error}");
        }
    }

    #[test]
    fn what_is_no_metadata_is_refused_on_one_line() {
        for text in [
            "a: [",
            "just text",
            "rosbag2_bagfile_information: 3",
            "version: 0\nstorage_identifier: x",
        ] {
            let reason = Metadata::parse(text).unwrap_err();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        }
    }
}
