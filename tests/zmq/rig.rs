//! Servers in this process.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::golden::DEFAULT_FLOOR;
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::serve::engine::{self, Engine, Predict};
use gr00t_blackhole::serve::zmq::{End, Handler, Limits, Server, Settings};
use gr00t_blackhole::serve::{Model, ModelOptions};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::stub::Stub;

/// The one that everything here runs on.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

/// An engine that is ready.
pub fn engine<P: Predict + 'static>(policy: P, model: Model, limits: engine::Limits) -> Engine {
    let (engine, _) = Engine::start(limits, move || Ok::<_, Infallible>((policy, model))).unwrap();
    runtime().block_on(engine.started());
    engine
}

/// A tiny checkpoint in a folder, made where there is none.
pub fn snapshot(version: Version, folder: &Path) -> PathBuf {
    let snapshot = folder.join(version.name());
    if !snapshot.exists() {
        synth::write(version, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    }
    snapshot
}

pub fn model_options(version: Version, snapshot: PathBuf) -> ModelOptions {
    let tag = match version {
        Version::N15 | Version::N16 => "gr1",
        Version::N17 => "oxe_droid_relative_eef_relative_joint",
    };
    let embodiment = Some(tag.to_owned());
    ModelOptions {
        policy: PolicyOptions { snapshot, embodiment, threads: 1, ..PolicyOptions::default() },
        warm_up: 1,
        floor: DEFAULT_FLOOR,
        golden: None,
        default_seed: None,
        layout: None,
    }
}

/// An engine that is ready, and another policy of the same checkpoint.
pub fn policies(version: Version, folder: &Path) -> (Engine, Policy) {
    let options = model_options(version, snapshot(version, folder));
    let (policy, model) = Model::load(&options).unwrap();
    let engine = engine(policy, model, engine::Limits::default());
    (engine, Policy::load(&options.policy).unwrap())
}

fn of_stub(stub: Stub, limits: engine::Limits) -> Engine {
    let model = stub.model();
    engine(stub, model, limits)
}

/// A handler without a socket.
pub struct Asking(Handler);

impl Asking {
    pub fn stub(stub: Stub, settings: Settings) -> Self {
        Self::engine(of_stub(stub, engine::Limits::default()), settings)
    }

    pub fn engine(engine: Engine, settings: Settings) -> Self {
        Self(Handler::new(engine, settings))
    }

    pub fn handle(&self, request: &[u8]) -> Vec<u8> {
        runtime().block_on(self.0.handle(request.to_vec()))
    }

    pub fn is_killed(&self) -> bool {
        self.0.is_killed()
    }
}

/// How a server is set up.
#[derive(Default)]
pub struct Setup {
    pub engine: engine::Limits,
    pub settings: Settings,
    pub limits: Limits,
}

/// A server on a free port that ends with its test.
pub struct Serving {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<End>>,
}

impl Serving {
    pub fn stub(stub: Stub, setup: Setup) -> Self {
        Self::engine(of_stub(stub, setup.engine), setup.settings, setup.limits)
    }

    pub fn engine(engine: Engine, settings: Settings, limits: Limits) -> Self {
        let handler = Handler::new(engine, settings);
        let any = ([127, 0, 0, 1], 0).into();
        let server = runtime().block_on(Server::bind(any, handler, limits)).unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = watch::channel(false);
        let task = Some(runtime().spawn(server.run(stopped)));
        Self { address, stop, task }
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the server has ended, and tells why.
    pub fn ended(&mut self) -> End {
        runtime().block_on(self.task.take().unwrap()).unwrap()
    }
}
