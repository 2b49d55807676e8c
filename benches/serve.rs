//! What the servers add to a prediction, with tiny policies of all versions, in one run: `cargo bench --bench serve`.
//!
//! One observation, in turn over HTTP (PNG frames) and over ZeroMQ (raw frames) on loopback. From the time that the client
//! measures, that of `Policy::predict` for the same request is taken off, so that no drift of the machine is in the difference.
//! Two things are no server's doing and are measured beside it, in the same rounds: decoding the PNG frames, and a bare
//! exchange of as many bytes between two plain sockets. The exit status is 1 where the median of what a server adds to
//! prediction and decoding is not below the goal, for frames as NVIDIA's clients send them.

#[path = "../tests/zmq/asks.rs"]
#[allow(dead_code)] // The tests use all of it.
mod asks;
#[path = "../tests/zmq/client.rs"]
#[allow(dead_code)] // The tests use all of it.
mod client;
#[path = "../tests/common/pattern.rs"]
mod pattern;

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{Frame, Observation, PredictOptions, Version};
use gr00t_blackhole::golden::DEFAULT_FLOOR;
use gr00t_blackhole::picture;
use gr00t_blackhole::policy::{Policy, PolicyError, PolicyOptions};
use gr00t_blackhole::serve::arrays::Dialect;
use gr00t_blackhole::serve::bench::Times;
use gr00t_blackhole::serve::engine::{self, Engine, Predict, Prediction};
use gr00t_blackhole::serve::http::{self, App, Identity};
use gr00t_blackhole::serve::{Model, ModelOptions, zmq};
use gr00t_blackhole::weights::lock::Lock;
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use rayon::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use asks::{get_action, in_envelope, nested};
use client::Client;

/// What a server may add to a prediction, milliseconds.
const GOAL_MS: f64 = 1.0;
const WARM_UP: usize = 20;
const ROUNDS: usize = 200;

/// Width and height of the frames that NVIDIA's clients send to each version.
const CASES: [(Version, [u32; 2]); 3] =
    [(Version::N15, [256, 256]), (Version::N16, [256, 256]), (Version::N17, [320, 180])];
/// Four frames that are 2.8 MB raw. They are shown only: a bare exchange of them takes longer than the goal.
const LARGE: (Version, [u32; 2]) = (Version::N17, [640, 360]);

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

/// The observation with other frames, none like another.
fn with_frames(observation: &Observation, [width, height]: [u32; 2]) -> Observation {
    let mut observation = observation.clone();
    let frames = observation.frames.values_mut().flatten();
    for (seed, frame) in (0..).zip(frames) {
        *frame = Arc::new(pattern::pattern(seed, width, height));
    }
    observation
}

fn png(frame: &Frame) -> Vec<u8> {
    let mut data = Cursor::new(Vec::new());
    PngEncoder::new(&mut data)
        .write_image(frame.rgb(), frame.width(), frame.height(), ExtendedColorType::Rgb8)
        .expect("memory takes it");
    data.into_inner()
}

/// The body of a request for HTTP, and the PNG files in it.
fn body(observation: &Observation) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut files = vec![];
    let mut images = serde_json::Map::new();
    for (camera, frames) in &observation.frames {
        let pictures: Vec<Vec<u8>> = frames.iter().map(|frame| png(frame)).collect();
        let texts: Vec<String> = pictures.iter().map(|data| STANDARD.encode(data)).collect();
        images.insert(camera.clone(), json!(texts));
        files.extend(pictures);
    }
    let request = json!({
        "images": Value::Object(images),
        "state": observation.state,
        "instruction": observation.instruction,
    });
    (request.to_string().into_bytes(), files)
}

/// As the server decodes them.
fn decode_all(files: &[Vec<u8>]) {
    let decode = |data: &Vec<u8>| drop(picture::decode(data).expect("a picture"));
    match files {
        [only] => decode(only),
        several => several.par_iter().for_each(decode),
    }
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

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// A client of HTTP, as plain as it gets.
struct HttpClient(TcpStream);

impl HttpClient {
    /// Posts JSON to /predict, until the last byte of the answer is there.
    fn predict(&mut self, body: &[u8]) {
        let head = format!(
            "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(head.as_bytes()).expect("a server");
        self.0.write_all(body).expect("a server");
        let mut answer = BufReader::new(&mut self.0);
        let (mut line, mut length) = (String::new(), 0);
        answer.read_line(&mut line).expect("a status");
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        while line != "\r\n" {
            line.clear();
            answer.read_line(&mut line).expect("a header");
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().expect("a number");
            }
        }
        answer.read_exact(&mut vec![0; length]).expect("an answer");
    }
}

/// Two plain sockets: what goes into one is read into memory at the other, and answered with one byte.
struct Exchange {
    stream: TcpStream,
    data: Vec<u8>,
}

impl Exchange {
    /// For requests of so many bytes.
    fn of(bytes: usize) -> Self {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let listener = TcpListener::bind(any).expect("a port");
        let address = listener.local_addr().expect("a port");
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a client");
            let mut read = vec![0; bytes];
            // Its client leaves in the end.
            while peer.read_exact(&mut read).is_ok() {
                peer.write_all(&[0]).expect("a client");
            }
        });
        Self { stream: connect(address), data: vec![7; bytes] }
    }

    fn once(&mut self) {
        self.stream.write_all(&self.data).expect("a peer");
        self.stream.read_exact(&mut [0]).expect("an answer");
    }
}

/// Milliseconds of each thing that is measured.
#[derive(Default)]
struct Taken {
    predict: Vec<f64>,
    /// Without the prediction.
    http: Vec<f64>,
    decode: Vec<f64>,
    http_exchange: Vec<f64>,
    /// Without the prediction.
    zmq: Vec<f64>,
    zmq_exchange: Vec<f64>,
    /// Of a request.
    http_bytes: usize,
    zmq_bytes: usize,
}

fn in_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    in_milliseconds(start.elapsed())
}

fn measure(version: Version, size: [u32; 2]) -> Taken {
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
    let mut http = HttpClient(connect(server.address().expect("a port")));
    runtime.spawn(server.run(stopped.clone()));
    let handler = zmq::Handler::new(engine, zmq::Settings::default());
    let server = zmq::Server::bind(any, handler, zmq::Limits::default());
    let server = runtime.block_on(server).expect("a port");
    let address = server.address().expect("a port");
    runtime.spawn(server.run(stopped));

    let observation = with_frames(&model.demo.observation, size);
    let (body, files) = body(&observation);
    let mut client = Client::connect(address);
    let data = in_envelope(nested(&observation, &model.embodiment.language_key));
    let request = get_action(data, Dialect::DEFAULT);
    let [mut http_exchange, mut zmq_exchange] = [body.len(), request.len()].map(Exchange::of);
    let predict = || in_milliseconds(*last.lock().expect("no panic"));

    let mut taken = Taken::default();
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            let (http_bytes, zmq_bytes) = (body.len(), request.len());
            taken = Taken { http_bytes, zmq_bytes, ..Taken::default() };
        }
        let wall = milliseconds(|| http.predict(&body));
        taken.predict.push(predict());
        taken.http.push(wall - predict());
        taken.http_exchange.push(milliseconds(|| http_exchange.once()));
        let wall = milliseconds(|| drop(client.ask(&request)));
        taken.zmq.push(wall - predict());
        taken.zmq_exchange.push(milliseconds(|| zmq_exchange.once()));
        taken.decode.push(milliseconds(|| decode_all(&files)));
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    taken
}

fn main() {
    println!(
        "Medians and, in brackets, minimum and 90th percentile of {ROUNDS} rounds, in milliseconds."
    );
    let mut is_reached = true;
    for (version, size) in CASES.into_iter().chain([LARGE]) {
        let taken = measure(version, size);
        let times = |values: &[f64]| Times::of(values).expect("values");
        let shown = |values: &[f64]| {
            let Times { min, median, p90, .. } = times(values);
            format!("{median:.3} ({min:.3} .. {p90:.3})")
        };
        let over_http = times(&taken.http).median - times(&taken.decode).median;
        let over_zmq = times(&taken.zmq).median;
        println!("{version}, {}x{}: predict {}", size[0], size[1], shown(&taken.predict));
        println!(
            "  HTTP adds {}, of which decoding takes {}: {over_http:.3} without; a bare exchange of {} KB takes {}",
            shown(&taken.http),
            shown(&taken.decode),
            taken.http_bytes / 1000,
            shown(&taken.http_exchange)
        );
        println!(
            "  ZeroMQ adds {}; a bare exchange of {} KB takes {}",
            shown(&taken.zmq),
            taken.zmq_bytes / 1000,
            shown(&taken.zmq_exchange)
        );
        let is_below = over_http < GOAL_MS && over_zmq < GOAL_MS;
        is_reached &= is_below || (version, size) == LARGE;
    }
    if !is_reached {
        eprintln!("a server adds {GOAL_MS} ms or more");
        std::process::exit(1);
    }
}
