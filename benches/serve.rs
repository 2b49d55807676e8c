//! What the servers add to a prediction, with tiny policies of all versions, in one run: `cargo bench --bench serve`.
//!
//! One observation, in turn over HTTP (PNG frames) and over ZeroMQ (raw frames) on loopback. From the time that the client
//! measures, that of `Policy::predict` for the same request is taken off, so that no drift of the machine is in the difference.
//! Decoding PNG frames is no server's doing and is measured alone. The exit status is 1 where the median of what a server adds
//! is not below the goal.

#[path = "../tests/zmq/asks.rs"]
#[allow(dead_code)] // The tests use all of it.
mod asks;
#[path = "../tests/zmq/client.rs"]
#[allow(dead_code)] // The tests use all of it.
mod client;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{Observation, PredictOptions, Version};
use gr00t_blackhole::golden::DEFAULT_FLOOR;
use gr00t_blackhole::picture;
use gr00t_blackhole::policy::{Policy, PolicyError, PolicyOptions};
use gr00t_blackhole::serve::arrays::Dialect;
use gr00t_blackhole::serve::bench::Times;
use gr00t_blackhole::serve::client::Client as HttpClient;
use gr00t_blackhole::serve::engine::{self, Engine, Predict, Prediction};
use gr00t_blackhole::serve::http::{self, App, Identity};
use gr00t_blackhole::serve::{Model, ModelOptions, zmq};
use gr00t_blackhole::weights::lock::Lock;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use asks::{get_action, in_envelope, nested};
use client::Client;

/// What a server may add to a prediction, milliseconds.
const GOAL_MS: f64 = 1.0;
const WARM_UP: usize = 20;
const ROUNDS: usize = 200;

fn options(version: Version, snapshot: &Path) -> ModelOptions {
    let tag = match version {
        Version::N15 | Version::N16 => "gr1",
        Version::N17 => "oxe_droid_relative_eef_relative_joint",
    };
    ModelOptions {
        policy: PolicyOptions {
            snapshot: snapshot.to_owned(),
            embodiment: Some(tag.to_owned()),
            ..PolicyOptions::default()
        },
        warm_up: 1,
        floor: DEFAULT_FLOOR,
        golden: None,
        default_seed: None,
        layout: None,
    }
}

/// PNG files of a request.
fn pictures(request: &Value) -> Vec<Vec<u8>> {
    let cameras = request["images"].as_object().expect("cameras").values();
    let frames = cameras.flat_map(|frames| frames.as_array().expect("frames"));
    frames.map(|text| STANDARD.decode(text.as_str().expect("text")).expect("base64")).collect()
}

/// A policy that tells how long its last prediction took.
struct Timed {
    policy: Policy,
    last: Arc<Mutex<Duration>>,
}

impl Predict for Timed {
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<Prediction, PolicyError> {
        let start = Instant::now();
        let prediction = Predict::predict(&mut self.policy, observation, options);
        *self.last.lock().expect("no panic") = start.elapsed();
        prediction
    }
}

/// Milliseconds of each thing that is measured.
#[derive(Default)]
struct Taken {
    predict: Vec<f64>,
    /// Without the prediction.
    http: Vec<f64>,
    /// Without the prediction.
    zmq: Vec<f64>,
    decode: Vec<f64>,
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn measure(version: Version) -> Taken {
    let folder = tempfile::tempdir().expect("a folder");
    let snapshot = folder.path().join("tiny");
    synth::write(version, Size::Tiny, &snapshot, &|_, _| {}).expect("a tiny checkpoint");
    let options = options(version, &snapshot);
    let last = Arc::new(Mutex::new(Duration::ZERO));
    let timer = last.clone();
    let load =
        move || Model::load(&options).map(|(policy, model)| (Timed { policy, last: timer }, model));
    let (engine, _) = Engine::start(engine::Limits::default(), load).expect("a thread");

    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(engine.started());
    let model = engine.model().expect("a policy");
    let (_stop, stopped) = watch::channel(false);
    let any = ([127, 0, 0, 1], 0).into();
    let lock = Lock::find(None).expect("the lock file");
    let identity = Identity::new(version, lock.release(version).expect("a release"), None, "cpu");
    let app = App::new(engine.clone(), identity, http::Limits::default(), None);
    let server = runtime.block_on(http::Server::bind(any, app)).expect("a port");
    let http = HttpClient::new(&format!("http://{}", server.address().expect("a port")), None);
    runtime.spawn(server.run(stopped.clone()));
    let handler = zmq::Handler::new(engine, zmq::Settings::default());
    let server = zmq::Server::bind(any, handler, zmq::Limits::default());
    let server = runtime.block_on(server).expect("a port");
    let address = server.address().expect("a port");
    runtime.spawn(server.run(stopped));

    let demo = http.get("/demo").expect("a demonstration");
    let body = demo["request"].to_string();
    let pictures = pictures(&demo["request"]);
    let mut client = Client::connect(address);
    let data = in_envelope(nested(&model.demo.observation, &model.embodiment.language_key));
    let request = get_action(data, Dialect::DEFAULT);
    let predict = || last.lock().expect("no panic").as_secs_f64() * 1e3;

    let mut taken = Taken::default();
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            taken = Taken::default();
        }
        let wall = milliseconds(|| drop(http.predict(body.as_bytes()).expect("an answer")));
        taken.predict.push(predict());
        taken.http.push(wall - predict());
        let wall = milliseconds(|| drop(client.ask(&request)));
        taken.zmq.push(wall - predict());
        taken.decode.push(milliseconds(|| {
            for data in &pictures {
                picture::decode(data).expect("a picture");
            }
        }));
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    taken
}

fn main() {
    println!(
        "Medians and, in brackets, minimum and 90th percentile of {ROUNDS} rounds, in milliseconds."
    );
    let mut is_reached = true;
    for version in Version::ALL {
        let taken = measure(version);
        let times = |values: &[f64]| Times::of(values).expect("values");
        let [predict, http, zmq, decode] =
            [&taken.predict, &taken.http, &taken.zmq, &taken.decode].map(|values| times(values));
        let shown =
            |times: Times| format!("{:.3} ({:.3} .. {:.3})", times.median, times.min, times.p90);
        let over_http = http.median - decode.median;
        println!(
            "{version}: predict {}; HTTP adds {}, of which PNG frames take {}: {over_http:.3} without; ZeroMQ adds {}",
            shown(predict),
            shown(http),
            shown(decode),
            shown(zmq)
        );
        is_reached &= over_http < GOAL_MS && zmq.median < GOAL_MS;
    }
    if !is_reached {
        eprintln!("a server adds {GOAL_MS} ms or more");
        std::process::exit(1);
    }
}
