//! `serve`, `smoke` and `bench-http` as programs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use gr00t_blackhole::contract::Version;
use serde_json::Value;
use tempfile::TempDir;

use super::rig::{checkpoint, robot};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GR00T_") {
            command.env_remove(name);
        }
    }
    command.env("GR00T_CACHE_DIR", "none");
    command
}

/// A server that runs as a program of its own.
pub struct Running {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Running {
    pub fn start(version: Version, folder: TempDir, variables: &[(&str, &str)]) -> Self {
        let mut child = program()
            .args([
                "serve",
                "--http",
                "127.0.0.1:0",
                "--threads",
                "1",
                "--embodiment",
                robot(version),
            ])
            .arg("--snapshot")
            .arg(folder.path().join("tiny"))
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { child, url, _folder: folder }
    }

    fn client(&self, command: &str, more: &[&str]) -> Output {
        let arguments = [command, "--url", &self.url, "--wait", "60"];
        program().args(arguments).args(more).output().expect("it runs")
    }

    /// Asks the server to end; what it has logged.
    pub fn end(mut self) -> String {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().expect("kill");
        assert!(told.success());
        let mut log = String::new();
        let mut errors = self.child.stderr.take().expect("a pipe");
        errors.read_to_string(&mut log).expect("text");
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn a_served_policy_passes_its_smoke_test_and_is_timed() {
    let version = Version::N17;
    let variables = [("GR00T_DIT_BACKEND", "megakernel"), ("GR00T_WARMUP_RUNS", "2")];
    let server = Running::start(version, checkpoint(version), &variables);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("smoke.json");
    let out = file.to_str().expect("text");

    let smoke = server.client("smoke", &["--out", out]);
    assert_eq!(smoke.status.code(), Some(0), "{}", text(&smoke.stderr));
    let line = text(&smoke.stdout);
    assert!(line.starts_with("PASS tiny-cpu n17: PCC(actions)=1.000000 max|d|=0.0000 "), "{line}");
    for part in [
        "PCC(action_pred_valid)=1.000000",
        "repeat_maxdiff=0.0e+00 seed_path_ok device_ms=",
        "per_group[eef_9d=",
    ] {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
    let report = json(&file);
    assert_eq!(report["pass"], true);
    assert_eq!(report["groups"].as_array().expect("groups").len(), 3);

    let file = folder.path().join("bench.json");
    let out = file.to_str().expect("text");
    let bench = server.client("bench-http", &["--n", "5", "--warmup", "1", "--out", out]);
    assert_eq!(bench.status.code(), Some(0), "{}", text(&bench.stderr));
    let report = json(&file);
    assert_eq!(report["requests"], 5);
    for stage in ["decode", "encode", "device", "decode_actions", "total", "wall"] {
        assert!(report["times"][stage]["median"].as_f64().expect(stage) >= 0.0);
        assert!(text(&bench.stdout).contains(stage));
    }

    let log = server.end();
    assert!(log.contains("ignored") && log.contains("GR00T_DIT_BACKEND"), "{log}");
    assert!(log.contains("Application startup complete"), "{log}");
    assert!(log.contains("warm-up 2/2"), "{log}");
}

#[test]
fn a_golden_is_what_the_smoke_test_is_held_to() {
    let version = Version::N16;
    let folder = checkpoint(version);
    let snapshot = folder.path().join("tiny");
    let record =
        |golden: &mut Command| golden.arg("--snapshot").arg(&snapshot).output().expect("it runs");
    let recorded = record(program().args(["golden", "record", "--embodiment", robot(version)]));
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let server = Running::start(version, folder, &[("GR00T_HTTP_TOKEN", "pear")]);

    let refused = server.client("smoke", &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("status 401"), "{}", text(&refused.stderr));
    let report = tempfile::NamedTempFile::new().expect("a file");
    let out = report.path().to_str().expect("text");
    let smoke = server.client("smoke", &["--token", "pear", "--out", out]);
    assert_eq!(smoke.status.code(), Some(0), "{}", text(&smoke.stderr));
    let report = json(report.path());
    assert!(report["source"].as_str().expect("text").starts_with("golden in "), "{report}");
    assert!(server.end().contains("agrees with the golden"));
}

#[test]
fn what_cannot_be_served_has_a_status() {
    let version = Version::N16;
    let folder = checkpoint(version);
    let serve = |arguments: &[&str], variables: &[(&str, &str)]| {
        program()
            .args(["serve", "--http", "127.0.0.1:0"])
            .arg("--snapshot")
            .arg(folder.path().join("tiny"))
            .args(arguments)
            .envs(variables.iter().copied())
            .output()
            .expect("it runs")
    };
    let unknown = serve(&["--embodiment", "nobody"], &[]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown.stderr));
    assert!(text(&unknown.stderr).contains("'nobody'"), "{}", text(&unknown.stderr));
    // As in a service's file that has not been filled in.
    let blank = ["GR00T_VERSION", "GR00T_TOKENIZER_DIR", "GR00T_DEFAULT_SEED", "GR00T_HTTP_TOKEN"];
    let unknown = serve(&["--embodiment", "nobody"], &blank.map(|name| (name, "")));
    assert!(text(&unknown.stderr).contains("'nobody'"), "{}", text(&unknown.stderr));
    let token = serve(&["--embodiment", "gr1", "--token", ""], &[]);
    assert_eq!(token.status.code(), Some(2), "{}", text(&token.stderr));
    let layout = serve(&["--embodiment", "gr1"], &[("GR00T_LAYOUT", "droid")]);
    assert_eq!(layout.status.code(), Some(2));
    assert!(text(&layout.stderr).contains("no layout 'droid'"), "{}", text(&layout.stderr));
    let release = serve(&["--embodiment", "gr1"], &[("HF_MODEL", "nvidia/GR00T-N1.5-3B")]);
    assert_eq!(release.status.code(), Some(2), "{}", text(&release.stderr));
    let version = serve(&["--embodiment", "gr1"], &[("GR00T_VERSION", "n17")]);
    assert_eq!(version.status.code(), Some(1), "{}", text(&version.stderr));
    let queue = serve(&["--embodiment", "gr1", "--queue", "0"], &[]);
    assert_eq!(queue.status.code(), Some(2));
}

#[test]
fn a_server_that_is_not_there_fails_the_smoke_test() {
    let output = program()
        .args(["smoke", "--url", "http://127.0.0.1:9", "--wait", "0"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not ready"), "{}", text(&output.stderr));
}
