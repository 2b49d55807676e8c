//! `tt-model.yaml`, as `tt-model` reads it: schema 5.1, of the kind `tt-dit-server`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_saphyr::LitString;

use super::{APP, CODE, PROGRAM, model_name};
use crate::contract::Version;
use crate::serve::documented_robot;
use crate::weights::lock::Release;

/// A string, so that no reader takes it for a number.
const SCHEMA: &str = "5.1";
/// The tt-metal that the serving documents of N1.6 and N1.7 were measured with.
const TT_METAL: (&str, &str) =
    ("https://github.com/tenstorrent/tt-metal", "668c290757550588d0ce46b180c344a462a2aaf5");
/// The schema wants a file of tt-metal; the program needs none.
const TT_METAL_CODE: &str = "models/common/utility_functions.py";
/// What `tt-model` mounts for converted weights and keeps over restarts: `~/.cache/tt-model/NAME/weights` of the host.
const KEPT: &str = "/weight-cache";

/// The manifest of one version.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    schema: &'static str,
    /// Where the package is published.
    repo: String,
    /// Of the container, of its caches on the host, and of the folder of the package.
    pub name: String,
    weights: Weights,
    kind: &'static str,
    arch: &'static str,
    source: Source,
    runtime: Runtime,
    serve: Serve,
    verify: Vec<String>,
    card: Card,
}

/// A pointer: `tt-model` downloads just these files, at this revision.
#[derive(Clone, Debug, Serialize)]
struct Weights {
    repo: String,
    revision: String,
    allow_patterns: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Source {
    tt_metal: GitSource,
    code: Vec<&'static str>,
    extra_code: Vec<ExtraCode>,
    ubuntu: &'static str,
    python: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct GitSource {
    repo: &'static str,
    #[serde(rename = "ref")]
    commit: &'static str,
}

/// Folders that are copied into the image beside tt-metal's.
#[derive(Clone, Debug, Serialize)]
struct ExtraCode {
    /// Relative to where `tt-model` runs: the folder of the manifest.
    root: &'static str,
    paths: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct Runtime {
    app: String,
    mesh_shape_env: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct Serve {
    port: u16,
    hardware: &'static str,
    mesh_device: &'static str,
    env: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, Serialize)]
struct Card {
    description: LitString,
    quickstart: LitString,
}

impl Manifest {
    /// `None` for a release without a revision.
    pub fn new(version: Version, release: &Release, owner: &str) -> Option<Self> {
        let revision = release.weights.revision.clone()?;
        let model = model_name(release);
        let (name, repo) =
            (format!("{}-p150", model.to_lowercase()), format!("{owner}/{model}-p150"));
        Some(Self {
            schema: SCHEMA,
            weights: Weights {
                repo: release.weights.repo.clone(),
                allow_patterns: release.weights.files.keys().cloned().collect(),
                revision: revision.clone(),
            },
            kind: "tt-dit-server",
            arch: "blackhole",
            source: Source::default(),
            runtime: Runtime { app: format!("{APP}.app:app"), mesh_shape_env: "TT_MESH_SHAPE" },
            serve: Serve {
                port: 20000,
                hardware: "p150",
                mesh_device: "P150",
                env: environment(version, revision),
            },
            verify: vec![
                format!("from {APP}.app import app; assert app"),
                format!(
                    "import subprocess; from {APP}.app import PROGRAM; subprocess.run([PROGRAM, '--version'], check=True)"
                ),
            ],
            card: Card {
                description: LitString(description(version).to_owned()),
                quickstart: LitString(quickstart(&repo, &name)),
            },
            repo,
            name,
        })
    }
}

impl Default for Source {
    fn default() -> Self {
        Self {
            tt_metal: GitSource { repo: TT_METAL.0, commit: TT_METAL.1 },
            code: vec![TT_METAL_CODE],
            extra_code: vec![ExtraCode { root: CODE, paths: vec![APP] }],
            ubuntu: "24.04",
            python: "3.12",
        }
    }
}

/// What `serve` is told; `tt-model` adds the hub cache, the weights' repository and the mesh.
fn environment(version: Version, revision: String) -> BTreeMap<&'static str, String> {
    let (embodiment, layout) = documented_robot(version);
    BTreeMap::from([
        ("TT_WEIGHTS_REVISION", revision),
        ("GR00T_VERSION", version.name().to_owned()),
        ("GR00T_EMBODIMENT", embodiment.to_owned()),
        ("GR00T_LAYOUT", layout.to_owned()),
        ("GR00T_TOKENIZER_DIR", format!("{KEPT}/tokenizer")),
        ("GR00T_CACHE_DIR", format!("{KEPT}/prepared")),
        ("GR00T_WARMUP_RUNS", "3".to_owned()),
    ])
}

/// The model card, without its title, which `tt-model` writes itself.
fn description(version: Version) -> &'static str {
    let card = match version {
        Version::N15 => include_str!("../../docs/models/n15.md"),
        Version::N16 => include_str!("../../docs/models/n16.md"),
        Version::N17 => include_str!("../../docs/models/n17.md"),
    };
    card.split_once('\n').map_or(card, |(_, rest)| rest).trim()
}

fn quickstart(repo: &str, name: &str) -> String {
    format!(
        "Put the tokenizer files into `~/.cache/tt-model/{name}/weights/tokenizer`, then\n\n\
         ```bash\n\
         tt-model serve {repo}\n\
         curl -s localhost:20000/demo | jq .request | curl -s localhost:20000/predict -H 'Content-Type: application/json' -d @-\n\
         tt-model stop {repo}\n\
         ```\n\n\
         The server is `{PROGRAM} serve`; it computes on the processor of the host, not yet on the card."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::lock::{BUILT_IN, Lock, Origin};

    #[test]
    fn a_release_that_is_not_pinned_has_no_manifest() {
        let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).expect("the built-in lock file");
        for version in Version::ALL {
            let mut release = lock.release(version).expect("a release").clone();
            assert!(Manifest::new(version, &release, "you").is_some());
            release.weights.revision = None;
            assert!(Manifest::new(version, &release, "you").is_none());
        }
    }
}
