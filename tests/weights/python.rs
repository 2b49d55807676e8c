//! The cache that Python's library leaves, and the one that it finds. Run with
//! `HUGGINGFACE_PYTHON=/path/to/python cargo test --test weights -- --ignored`.

use std::process::Command;

use crate::released::{Answer, REPO, Released, TOKENIZER_REPO};
use crate::server::REVISION;

/// Prints the folder of the repository, with or without a revision.
const FIND: &str = "
import sys
from huggingface_hub import snapshot_download
print(snapshot_download(sys.argv[1], revision=sys.argv[2] or None))
";

/// Downloads files at a revision.
const DOWNLOAD: &str = "
import sys
from huggingface_hub import hf_hub_download
for file in sys.argv[3:]:
    print(hf_hub_download(sys.argv[1], file, revision=sys.argv[2]))
";

fn python(released: &Released, offline: bool, program: &str, arguments: &[&str]) -> Answer {
    let python = std::env::var_os("HUGGINGFACE_PYTHON").expect("HUGGINGFACE_PYTHON is not set");
    let output = Command::new(python)
        .args(["-c", program])
        .args(arguments)
        .env("HOME", released.folder.path())
        .env("HF_HOME", released.folder.path().join("hf"))
        .env("HF_ENDPOINT", &released.hub.address)
        .env("HF_HUB_OFFLINE", if offline { "1" } else { "0" })
        .env("HF_HUB_DISABLE_XET", "1")
        .output()
        .expect("python");
    Answer::of(output)
}

#[test]
#[ignore = "needs a Python with huggingface_hub"]
fn python_finds_what_was_fetched_here() {
    let released = Released::new();
    released.fetch().succeeded();
    let seen = released.hub.seen().len();
    for revision in [REVISION, ""] {
        let found = python(&released, true, FIND, &[REPO, revision]).succeeded().out;
        assert_eq!(found.trim(), released.snapshot().display().to_string());
    }
    assert_eq!(released.hub.seen().len(), seen);
    // And has nothing to download when it may.
    released.hub.forget();
    let files = released.files();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let arguments = [&[REPO, REVISION], &files[..]].concat();
    python(&released, false, DOWNLOAD, &arguments).succeeded();
    assert_eq!(released.hub.sent(), 0);
}

#[test]
#[ignore = "needs a Python with huggingface_hub"]
fn what_python_has_fetched_is_found_here() {
    let released = Released::new();
    let files = released.files();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    python(&released, false, DOWNLOAD, &[&[REPO, REVISION], &files[..]].concat()).succeeded();
    let tokenizer = ["added_tokens.json", "merges.txt", "vocab.json"];
    let arguments = [&[TOKENIZER_REPO, "main"], &tokenizer[..]].concat();
    python(&released, false, DOWNLOAD, &arguments).succeeded();
    let command = |arguments: &[&str]| {
        let output = released.command(arguments).env("HF_HUB_OFFLINE", "1").output();
        Answer::of(output.expect("the program")).succeeded()
    };
    let fetch = ["weights", "fetch", "--version", "n17", "--accept-licence"];
    let fetched = command(&fetch).out;
    assert_eq!(fetched.matches("was in the cache").count(), 2, "{fetched}");
    let count = files.len();
    let verified = command(&["weights", "verify"]).out;
    assert!(verified.contains(&format!("{count} of {count} hashes compared")), "{verified}");
    let listed = command(&["weights", "list"]).out;
    assert!(listed.contains("weights in ") && listed.contains("tokenizer in "), "{listed}");
}
