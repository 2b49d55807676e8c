//! `serve` as a program, with both servers on one policy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::serve::arrays::{Dialect, Map, decode};
use gr00t_blackhole::serve::client::Client as HttpClient;
use tempfile::TempDir;

use crate::asks::get_action;
use crate::client::{Client, PATIENCE, greeting};
use crate::messages::{error_of, plain};
use crate::rig::snapshot;

/// What a process may grow by while it is abused, in KiB. Three rounds of abuse send it 40 times as much.
const GROWTH_KIB: usize = 24 << 10;

/// A server that runs as a program of its own.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    _folder: TempDir,
}

fn serve(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GR00T_") {
            command.env_remove(name);
        }
    }
    command.env("GR00T_CACHE_DIR", "none");
    command.args(["serve", "--threads", "1", "--embodiment", "gr1", "--snapshot"]);
    command.arg(snapshot(Version::N16, folder.path())).args(arguments);
    command
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(&folder, arguments);
        let pipes = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, _folder: folder }
    }

    /// The address of the next server that it says it listens on.
    fn address(&mut self, scheme: &str) -> SocketAddr {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        let prefix = format!("listening on {scheme}://");
        line.trim().strip_prefix(&prefix).expect(&line).parse().unwrap()
    }

    /// Resident memory, KiB.
    fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The status with which it ends, and what else it has printed.
    fn ended(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (status.code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn output(arguments: &[&str]) -> Output {
    serve(&tempfile::tempdir().unwrap(), arguments).output().unwrap()
}

#[test]
fn one_process_has_both_servers_and_a_client_that_may_ends_it() {
    let any = "127.0.0.1:0";
    let mut running =
        Running::start(&["--http", any, "--zmq", any, "--token", "pear", "--allow-kill"]);
    let http = running.address("http");
    let zmq = running.address("tcp");
    // Answered once the policy is loaded.
    let mut client = Client::connect(zmq);
    assert!(error_of(&client.ask(&plain("ping", None))).unwrap().starts_with("Unauthorized"));
    assert_eq!(error_of(&client.ask(&plain("ping", Some("pear")))), None);
    let shows = |token: &str| {
        HttpClient::new(&format!("http://{http}"), Some(token.to_owned())).get("/info").is_ok()
    };
    assert!(shows("pear") && !shows("peas"));
    assert_eq!(error_of(&client.ask(&plain("kill", Some("pear")))), None);
    assert_eq!(running.ended(), (Some(0), String::new()));
}

#[test]
fn http_is_not_served_where_only_the_other_is_asked_for() {
    let mut running = Running::start(&["--zmq", "127.0.0.1:0"]);
    let zmq = running.address("tcp");
    let mut client = Client::connect(zmq);
    let error = error_of(&client.ask(&plain("kill", None))).unwrap();
    assert!(error.contains("'kill' is off"), "{error}");
    running.child.kill().unwrap();
    assert_eq!(running.ended().1, "");
}

#[test]
fn what_cannot_be_served_has_a_status() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let taken = output(&["--zmq", &address]);
    assert_eq!(taken.status.code(), Some(1));
    let text = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(text.contains(&format!("cannot listen on {address}")), "{text}");
    assert_eq!(output(&["--allow-kill"]).status.code(), Some(2));
    assert_eq!(output(&["--zmq", "localhost"]).status.code(), Some(2));
}

/// Some of everything that a server has to bear; about 300 MB in all.
fn abuse(http: SocketAddr, zmq: SocketAddr) {
    let megabyte = vec![0x55; 1 << 20];
    let announced = |length: u64| [&[1, 0, 2][..], &length.to_be_bytes()].concat();
    for round in 0..20u8 {
        let mut vanishing = Client::connect(zmq);
        vanishing.stream.write_all(&announced(64 << 20)).unwrap();
        for _ in 0..4 {
            vanishing.stream.write_all(&megabyte).unwrap();
        }
        // Larger than what is accepted, and never there as a whole.
        let mut endless = Client::connect(zmq);
        endless.stream.write_all(&announced(u64::MAX)).unwrap();
        for _ in 0..4 {
            endless.stream.write_all(&megabyte).unwrap();
        }
        let mut garbage = Client::connect(zmq);
        assert!(error_of(&garbage.ask(&vec![round; 1 << 20])).is_some());
        let mut raw = TcpStream::connect(zmq).unwrap();
        let _ = raw.write_all(&megabyte);
        let half_open = TcpStream::connect(zmq).unwrap();
        (&half_open).write_all(&greeting("REQ")[..20]).unwrap();

        let mut body = TcpStream::connect(http).unwrap();
        body.write_all(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n")
            .unwrap();
        for _ in 0..4 {
            body.write_all(&megabyte).unwrap();
        }
    }
}

#[test]
fn memory_stays_flat_and_answers_the_same_under_abuse() {
    let any = "127.0.0.1:0";
    let mut running = Running::start(&["--http", any, "--zmq", any]);
    let http = running.address("http");
    let zmq = running.address("tcp");
    let mut client = Client::connect(zmq);
    // Answered once the policy is loaded.
    client.ask(&plain("ping", None));
    let nothing = get_action(Map::default(), Dialect::DEFAULT);
    let before = client.ask(&nothing);
    decode(&before).unwrap();
    abuse(http, zmq);
    let settled = running.memory();
    for _ in 0..3 {
        abuse(http, zmq);
    }
    assert_eq!(client.ask(&nothing), before);
    let demo = HttpClient::new(&format!("http://{http}"), None);
    demo.wait(PATIENCE, |_| {}).unwrap();
    let request = demo.get("/demo").unwrap()["request"].to_string();
    demo.predict(request.as_bytes()).unwrap();
    let grown = running.memory().saturating_sub(settled);
    assert!(grown < GROWTH_KIB, "grown by {grown} KiB from {settled} KiB");
}
