//! `package`: the manifest is what `tt-model` reads as schema 5.1, and says what the lock file says.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::weights::lock::{BUILT_IN, Lock, Origin};
use serde::Deserialize;

/// The schema, with nothing optional that the manifest leaves out and nothing that the schema does not know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: String,
    repo: String,
    name: String,
    weights: Weights,
    kind: String,
    arch: String,
    source: Source,
    runtime: Runtime,
    serve: Serve,
    verify: Vec<String>,
    card: Card,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weights {
    repo: String,
    revision: String,
    allow_patterns: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    tt_metal: GitSource,
    code: Vec<String>,
    extra_code: Vec<ExtraCode>,
    ubuntu: String,
    python: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GitSource {
    repo: String,
    r#ref: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtraCode {
    root: String,
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    app: String,
    mesh_shape_env: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    port: u16,
    hardware: String,
    mesh_device: String,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    description: String,
    quickstart: String,
}

/// Runs `package` with a file in the program's place.
fn package(out: &Path, arguments: &[&str]) -> Output {
    let program = out.join("program");
    std::fs::write(&program, "the program").expect("written");
    Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"))
        .env_remove("GR00T_WEIGHTS_LOCK")
        .args(["package", "--out"])
        .arg(out.join("packages"))
        .arg("--program")
        .arg(program)
        .args(arguments)
        .output()
        .expect("it runs")
}

fn folders(output: &Output) -> Vec<PathBuf> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

fn manifest(folder: &Path) -> Manifest {
    let text = std::fs::read_to_string(folder.join("tt-model.yaml")).expect("a manifest");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

#[test]
fn every_version_has_a_manifest_that_agrees_with_the_lock_file() {
    let out = tempfile::tempdir().expect("a folder");
    let folders = folders(&package(out.path(), &["--owner", "you"]));
    let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).expect("the built-in lock file");
    assert_eq!(folders.len(), Version::ALL.len());
    for (version, folder) in Version::ALL.into_iter().zip(folders) {
        let (made, release) = (manifest(&folder), lock.release(version).expect("a release"));
        assert_eq!(made.weights.repo, release.weights.repo);
        assert_eq!(Some(&made.weights.revision), release.weights.revision.as_ref());
        assert!(is_commit(&made.weights.revision), "{}", made.weights.revision);
        assert!(made.weights.allow_patterns.iter().eq(release.weights.files.keys()));

        let env = |name: &str| made.serve.env.get(name).map(String::as_str);
        assert_eq!(env("TT_WEIGHTS_REVISION"), Some(made.weights.revision.as_str()));
        assert_eq!(env("GR00T_VERSION"), Some(version.name()));
        let (robot, layout) = match version {
            Version::N15 | Version::N16 => ("gr1", "gr1"),
            Version::N17 => ("oxe_droid_relative_eef_relative_joint", "droid"),
        };
        assert_eq!((env("GR00T_EMBODIMENT"), env("GR00T_LAYOUT")), (Some(robot), Some(layout)));

        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(made.name, name);
        assert!(made.card.description.contains(&release.licence.name), "no licence");
        assert!(made.card.quickstart.contains(&format!("tt-model serve {}", made.repo)));
        assert!(!made.card.description.contains("# GR00T"), "tt-model writes the title");
    }
}

#[test]
fn the_manifest_keeps_the_rules_of_the_schema() {
    let out = tempfile::tempdir().expect("a folder");
    let arguments = ["--owner", "some-one", "--version", "n16"];
    let [folder] = folders(&package(out.path(), &arguments)).try_into().expect("one package");
    let made = manifest(&folder);
    assert_eq!(made.schema, "5.1");
    assert_eq!(made.repo, "some-one/GR00T-N1.6-3B-p150");
    let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    assert!(made.name.chars().all(slug) && made.name.starts_with(char::is_alphanumeric));
    assert_eq!((made.kind.as_str(), made.arch.as_str()), ("tt-dit-server", "blackhole"));
    assert_eq!((made.serve.hardware.as_str(), made.serve.mesh_device.as_str()), ("p150", "P150"));
    assert_eq!(made.serve.port, 20000);
    assert!(
        is_commit(&made.source.tt_metal.r#ref) && made.source.tt_metal.repo.starts_with("https://")
    );
    assert_eq!((made.source.ubuntu.as_str(), made.source.python.as_str()), ("24.04", "3.12"));
    assert_eq!(made.runtime.mesh_shape_env, "TT_MESH_SHAPE");
    for path in
        made.source.code.iter().chain(made.source.extra_code.iter().flat_map(|code| &code.paths))
    {
        assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
    }

    // `runtime.app` is MODULE:ATTRIBUTE of what an entry ships, and so is what `verify` imports.
    let (module, attribute) = made.runtime.app.split_once(':').expect("a module and an attribute");
    let [code] = &made.source.extra_code[..] else { panic!("{:?}", made.source.extra_code) };
    let file = folder.join(&code.root).join(module.replace('.', "/")).with_extension("py");
    let text = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(text.contains(&format!("\n{attribute} = ")), "no {attribute} in {}", file.display());
    assert!(code.paths.iter().any(|path| module.starts_with(path.as_str())));
    assert!(!made.verify.is_empty() && made.verify.iter().all(|line| line.contains(module)));

    let program = file.with_file_name("gr00t_blackhole");
    assert_eq!(std::fs::read_to_string(&program).expect("the program"), "the program");
    assert_eq!(program.metadata().expect("the program").permissions().mode() & 0o777, 0o755);
}

#[test]
fn yaml_of_other_readers_has_no_numbers_where_strings_are_meant() {
    let out = tempfile::tempdir().expect("a folder");
    for folder in folders(&package(out.path(), &["--owner", "you"])) {
        let text = std::fs::read_to_string(folder.join("tt-model.yaml")).expect("a manifest");
        for quoted in
            ["schema: \"5.1\"", "ubuntu: \"24.04\"", "python: \"3.12\"", "GR00T_WARMUP_RUNS: \"3\""]
        {
            assert!(text.replace('\'', "\"").contains(quoted), "no {quoted} in {text}");
        }
    }
}

#[test]
fn what_cannot_be_packaged_is_refused_by_name() {
    let out = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| {
        let output = package(out.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--owner", "a/b"]).contains("'a/b' owns no repository"));

    let floating = out.path().join("floating.lock");
    let pinned = BUILT_IN.lines().filter(|line| !line.starts_with("revision"));
    std::fs::write(&floating, pinned.collect::<Vec<_>>().join("\n")).expect("written");
    let floating = floating.to_str().expect("text");
    let error = refused(&["--owner", "you", "--version", "n17", "--lock", floating]);
    assert!(error.contains("floating.lock") && error.contains("revision"), "{error}");
    assert!(!out.path().join("packages").exists(), "something was written");
}

#[test]
fn a_package_is_replaced_while_its_program_runs() {
    let out = tempfile::tempdir().expect("a folder");
    let arguments = ["--owner", "you", "--version", "n15"];
    let [folder] = folders(&package(out.path(), &arguments)).try_into().expect("one package");
    let program = folder.join("code/gr00t_blackhole_server/gr00t_blackhole");
    std::fs::copy("/bin/sleep", &program).expect("copied");
    let mut running = Command::new(&program).arg("60").spawn().expect("it runs");
    let again = package(out.path(), &arguments);
    running.kill().and_then(|()| running.wait()).expect("it ends");
    folders(&again);
    assert_eq!(std::fs::read_to_string(&program).expect("the program"), "the program");
}
