//! A tiny synthetic checkpoint that takes the place of a released one: on a small hub, with a lock file of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gr00t_blackhole::checkpoint::synth::{self, Size, TOKENIZER_FOLDER};
use gr00t_blackhole::checkpoint::{Checkpoint, survey};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::weights::lock::{Lock, Origin};

use crate::server::{Hub, REVISION};

pub const REPO: &str = "maker/tiny-n17";
pub const TOKENIZER_REPO: &str = "maker/backbone";
const TOKENIZER_FILES: [&str; 3] = ["added_tokens.json", "merges.txt", "vocab.json"];

/// The checkpoint, its hub and its lock file.
pub struct Released {
    pub hub: Hub,
    pub folder: tempfile::TempDir,
    /// The checkpoint as it was made, without its tokenizer.
    pub made: PathBuf,
}

impl Released {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let made = folder.path().join("made");
        synth::write(Version::N17, Size::Tiny, &made, &|_, _| {}).expect("checkpoint");
        let hub = Hub::start();
        let tokenizer = made.join(TOKENIZER_FOLDER);
        for file in TOKENIZER_FILES {
            let bytes = fs::read(tokenizer.join(file)).expect("tokenizer file");
            hub.put(TOKENIZER_REPO, file, bytes, false);
        }
        fs::rename(&tokenizer, folder.path().join(TOKENIZER_FOLDER)).expect("moved");
        fs::write(made.join("LICENSE"), "Nothing is allowed.\n").expect("terms");
        let this = Self { hub, folder, made };
        for file in this.files() {
            let bytes = fs::read(this.made.join(&file)).expect("file");
            this.hub.put(REPO, &file, bytes, file.ends_with(".safetensors"));
        }
        fs::write(this.lock(), this.lock_text()).expect("lock file");
        this
    }

    /// Names of the checkpoint's files.
    pub fn files(&self) -> Vec<String> {
        crate::support::files_in(&self.made)
    }

    pub fn shard(&self) -> String {
        let mut files = self.files().into_iter();
        files.find(|file| file.ends_with(".safetensors")).expect("a shard")
    }

    pub fn lock(&self) -> PathBuf {
        self.folder.path().join("weights.lock")
    }

    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("hf/hub")
    }

    pub fn snapshot(&self) -> PathBuf {
        self.cache().join("models--maker--tiny-n17/snapshots").join(REVISION)
    }

    fn lock_text(&self) -> String {
        let stored = Checkpoint::open(&self.made).expect("checkpoint");
        let entries = |files: &[String]| -> String {
            files.iter().map(|file| format!("\"{file}\" = {{}}\n")).collect()
        };
        format!(
            "# A lock file for tests.\n[n17]\nrepo = \"{REPO}\"\nrevision = \"{REVISION}\"\ntensors = {}\ntensor_bytes = {}\n\
             \n[n17.files]\n{}\n[n17.licence]\nname = \"No License\"\nfile = \"LICENSE\"\nnote = \"Nothing is allowed.\"\n\
             \n[n17.tokenizer]\nrepo = \"{TOKENIZER_REPO}\"\n\n[n17.tokenizer.files]\n{}",
            stored.names().count(),
            survey(&self.made).bytes,
            entries(&self.files()),
            entries(&TOKENIZER_FILES.map(str::to_owned)),
        )
    }

    pub fn parsed(&self) -> Lock {
        Lock::parse(&fs::read_to_string(self.lock()).expect("lock"), Origin::BuiltIn).expect("lock")
    }

    /// The program with this hub, cache and lock file, and nothing of this process' environment that would matter.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("HF_ENDPOINT", &self.hub.address)
            .env("HF_HOME", self.folder.path().join("hf"))
            .env("GR00T_WEIGHTS_LOCK", self.lock());
        for variable in [
            "HF_HUB_CACHE",
            "HUGGINGFACE_HUB_CACHE",
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "HF_TOKEN_PATH",
            "HF_HUB_OFFLINE",
            "XDG_CACHE_HOME",
            "ALL_PROXY",
            "all_proxy",
            "HTTPS_PROXY",
            "https_proxy",
            "HTTP_PROXY",
            "http_proxy",
        ] {
            command.env_remove(variable);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command(arguments).output().expect("the program"))
    }

    pub fn fetch(&self) -> Answer {
        self.run(&["weights", "fetch", "--version", "n17", "--accept-licence"])
    }

    /// Copies the snapshot's files to a plain folder.
    pub fn copied(&self, name: &str) -> PathBuf {
        let copy = self.folder.path().join(name);
        copy_files(&self.made, &copy);
        copy
    }
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for file in crate::support::files_in(from) {
        fs::copy(from.join(&file), to.join(&file)).expect("copied");
    }
}

/// What the program said.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Answer {
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    pub fn failed(self) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        self
    }
}
