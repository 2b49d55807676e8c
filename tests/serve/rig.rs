//! A server in this process, and the plainest of clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::golden::DEFAULT_FLOOR;
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::serve::engine::{self, Engine, Predict};
use gr00t_blackhole::serve::http::{self, App, Identity, Server};
use gr00t_blackhole::serve::{Model, ModelError, ModelOptions, Token};
use gr00t_blackhole::weights::lock::{BUILT_IN, Lock, Origin};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Longer than anything takes that is expected to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The robot of each version that the documents serve.
pub fn robot(version: Version) -> &'static str {
    match version {
        Version::N15 | Version::N16 => "gr1",
        Version::N17 => "oxe_droid_relative_eef_relative_joint",
    }
}

/// A tiny checkpoint.
pub fn checkpoint(version: Version) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    synth::write(version, Size::Tiny, &folder.path().join("tiny"), &|_, _| {}).expect("written");
    folder
}

pub fn model_options(version: Version, folder: &TempDir) -> ModelOptions {
    ModelOptions {
        policy: PolicyOptions {
            snapshot: folder.path().join("tiny"),
            embodiment: Some(robot(version).to_owned()),
            threads: 1,
            ..Default::default()
        },
        warm_up: 1,
        floor: DEFAULT_FLOOR,
        golden: None,
        default_seed: None,
        layout: None,
    }
}

/// How a server is set up.
#[derive(Default)]
pub struct Setup {
    pub http: http::Limits,
    pub engine: engine::Limits,
    pub token: Option<Token>,
}

/// A server that runs.
pub struct Rig {
    pub address: SocketAddr,
    pub engine: Engine,
    pub stop: watch::Sender<bool>,
    /// Another policy of the same checkpoint, of the shared rigs only.
    pub spare: Option<Mutex<Policy>>,
    /// The shared rigs have none: nobody would remove it.
    _folder: Option<TempDir>,
    runtime: Runtime,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl Rig {
    /// The one of a version with the limits that everybody has; it is shared by the tests.
    pub fn of(version: Version) -> &'static Rig {
        static RIGS: [OnceLock<Rig>; 3] = [const { OnceLock::new() }; 3];
        RIGS[version as usize].get_or_init(|| {
            let mut rig = Rig::with_policy(version, Setup::default(), |policy| policy);
            rig.ready();
            let folder = rig._folder.take().expect("a folder");
            let policy = Policy::load(&model_options(version, &folder).policy).expect("a policy");
            rig.spare = Some(Mutex::new(policy));
            rig
        })
    }

    /// A server whose policy is made of a real one.
    pub fn with_policy<P: Predict + 'static>(
        version: Version,
        setup: Setup,
        wrap: impl FnOnce(Policy) -> P + Send + 'static,
    ) -> Self {
        Self::loading(version, setup, |options| {
            let (policy, model) = Model::load(options)?;
            Ok((wrap(policy), model))
        })
    }

    pub fn loading<P: Predict + 'static>(
        version: Version,
        setup: Setup,
        load: impl FnOnce(&ModelOptions) -> Result<(P, Model), ModelError> + Send + 'static,
    ) -> Self {
        let folder = checkpoint(version);
        let options = model_options(version, &folder);
        let (engine, _ended) =
            Engine::start(setup.engine, move || load(&options)).expect("a thread");
        let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).expect("the built-in lock file");
        let release = lock.release(version).expect("a release");
        let identity = Identity::new(version, release, None, "cpu");
        let app = App::new(engine.clone(), identity, setup.http, setup.token);
        let runtime = Runtime::new().expect("a runtime");
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = runtime.block_on(Server::bind(address, app)).expect("a free port");
        let address = server.address().expect("an address");
        let (stop, stopped) = watch::channel(false);
        let serving = Some(runtime.spawn(server.run(stopped)));
        let (spare, _folder) = (None, Some(folder));
        Self { address, engine, stop, spare, _folder, runtime, serving }
    }

    /// Waits until the policy is loaded.
    pub fn ready(&self) -> Arc<Model> {
        self.runtime.block_on(self.engine.started());
        self.engine.model().expect("a policy")
    }

    /// Tells the server to stop and waits for its end.
    pub fn ended(&mut self) {
        self.stop.send_replace(true);
        let serving = self.serving.take().expect("it ends once");
        self.runtime.block_on(serving).expect("no panic");
    }

    pub fn get(&self, path: &str) -> Answer {
        exchange(self.address, &format!("GET {path} HTTP/1.1\r\n"), b"")
    }

    pub fn predict(&self, body: &Value) -> Answer {
        self.post(body.to_string().as_bytes())
    }

    /// Posts these bytes as JSON.
    pub fn post(&self, body: &[u8]) -> Answer {
        let head = "POST /predict HTTP/1.1\r\nContent-Type: application/json\r\n";
        exchange(self.address, head, body)
    }

    /// The request of the demonstration, which is answered with 200.
    pub fn demo(&self) -> Value {
        self.get("/demo").json()["request"].clone()
    }
}

/// What a server has answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The answer, if it is a chunk.
    pub fn chunk(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }
}

/// Sends a request on a connection of its own and reads the answer.
pub fn exchange(address: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let length = body.len();
    let rest = format!("Host: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head.to_owned() + &rest).as_bytes()).expect("sent");
    // A server that refuses may close before all is sent.
    let _ = stream.write_all(body);
    answer(&mut stream)
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream
}

/// The rest of a connection as an answer.
pub fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A reset after the answer, for what was not read of the request, is no failure.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

/// Waits for something that happens on another thread.
pub fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
