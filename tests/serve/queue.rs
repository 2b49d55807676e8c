//! The queue in front of the policy, and a server that is starting or has failed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gr00t_blackhole::backend::BackendError;
use gr00t_blackhole::contract::{Observation, PredictOptions, Version};
use gr00t_blackhole::policy::{Policy, PolicyError};
use gr00t_blackhole::program::StageKind;
use gr00t_blackhole::serve::Model;
use gr00t_blackhole::serve::engine::{self, Predict, Prediction};

use super::rig::{Rig, Setup, connect, wait_for};

/// A policy that waits for a word before each prediction, and gives up if it is told to.
struct Gated {
    policy: Policy,
    go: Receiver<()>,
    begun: Sender<()>,
    cancelled: Arc<AtomicBool>,
}

impl Predict for Gated {
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<Prediction, PolicyError> {
        self.begun.send(()).expect("the test listens");
        loop {
            if options.cancel.is_cancelled() {
                self.cancelled.store(true, Ordering::Release);
                return Err(BackendError::Cancelled { stage: StageKind::Vision }.into());
            }
            if self.go.recv_timeout(Duration::from_millis(5)).is_ok() {
                return Predict::predict(&mut self.policy, observation, options);
            }
        }
    }
}

/// A server with a gated policy, and the gate.
struct Queue {
    rig: Rig,
    go: Sender<()>,
    begun: Mutex<Receiver<()>>,
    cancelled: Arc<AtomicBool>,
}

impl Queue {
    fn new(limits: engine::Limits) -> Self {
        let (go, gate) = channel();
        let (begins, begun) = channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let seen = cancelled.clone();
        let setup = Setup { engine: limits, ..Setup::default() };
        let rig = Rig::with_policy(Version::N16, setup, |policy| Gated {
            policy,
            go: gate,
            begun: begins,
            cancelled: seen,
        });
        rig.ready();
        Self { rig, go, begun: Mutex::new(begun), cancelled }
    }

    fn wait_until_begun(&self) {
        let begun = self.begun.lock().expect("no panic");
        begun.recv_timeout(super::rig::PATIENCE).expect("a prediction begins");
    }
}

fn limits(queue: usize, deadline: Duration) -> engine::Limits {
    engine::Limits { queue, deadline }
}

#[test]
fn a_full_queue_is_told_at_once_and_the_others_are_served() {
    let queue = Queue::new(limits(1, super::rig::PATIENCE));
    let request = queue.rig.demo();
    thread::scope(|scope| {
        let running = scope.spawn(|| queue.rig.predict(&request).status);
        queue.wait_until_begun();
        let waiting = scope.spawn(|| queue.rig.predict(&request).status);
        wait_for("a request in the queue", || queue.rig.engine.waiting() == 1);
        let refused = queue.rig.predict(&request);
        assert_eq!(refused.status, 503);
        assert!(refused.text().contains("1 requests wait already"), "{}", refused.text());
        assert!(refused.head.to_lowercase().contains("retry-after: 1"), "{}", refused.head);
        // Whoever does not predict need not wait.
        assert_eq!(queue.rig.get("/health").json()["status"], "ok");
        queue.go.send(()).expect("a policy");
        queue.go.send(()).expect("a policy");
        assert_eq!(running.join().expect("no panic"), 200);
        assert_eq!(waiting.join().expect("no panic"), 200);
    });
}

#[test]
fn a_deadline_ends_the_prediction() {
    let queue = Queue::new(limits(4, Duration::from_millis(200)));
    let late = queue.rig.predict(&queue.rig.demo());
    assert_eq!(late.status, 503);
    assert!(late.text().contains("no answer within 0.2 s"), "{}", late.text());
    wait_for("the end of the prediction", || queue.cancelled.load(Ordering::Acquire));
}

#[test]
fn a_client_that_leaves_ends_its_prediction() {
    use std::io::Write;

    let queue = Queue::new(limits(4, super::rig::PATIENCE));
    let request = queue.rig.demo();
    let body = request.to_string();
    let mut leaving = connect(queue.rig.address);
    let head =
        format!("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    leaving.write_all((head + &body).as_bytes()).expect("sent");
    queue.wait_until_begun();
    drop(leaving);
    wait_for("the end of the prediction", || queue.cancelled.load(Ordering::Acquire));
    queue.go.send(()).expect("a policy");
    queue.rig.predict(&request).chunk();
}

#[test]
fn the_socket_answers_before_the_policy_is_loaded() {
    let (go, gate) = channel::<()>();
    let rig = Rig::loading(Version::N16, Setup::default(), move |options| {
        let _ = gate.recv();
        Model::load(options)
    });
    assert_eq!(rig.get("/health").json()["status"], "starting");
    for answer in [rig.get("/info"), rig.get("/demo"), rig.post(b"{}")] {
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains("the policy is starting"), "{}", answer.text());
    }
    assert!(rig.get("/metrics").text().contains("gr00t_ready 0"));
    assert_eq!(rig.get("/openapi.json").status, 200);
    go.send(()).expect("it waits");
    rig.ready();
    assert_eq!(rig.get("/health").json()["status"], "ok");
    rig.predict(&rig.demo()).chunk();
}

/// A policy whose backend fails, or whose thread does.
struct Failing {
    panics: bool,
}

impl Predict for Failing {
    fn predict(&mut self, _: &Observation, _: &PredictOptions) -> Result<Prediction, PolicyError> {
        assert!(!self.panics, "this policy panics");
        Err(BackendError::Threads { reason: "none left".to_owned() }.into())
    }
}

fn failing(panics: bool) -> Rig {
    let rig = Rig::with_policy(Version::N16, Setup::default(), move |_| Failing { panics });
    rig.ready();
    rig
}

#[test]
fn a_backend_that_fails_is_told_with_type_and_text() {
    let rig = failing(false);
    let answer = rig.predict(&rig.demo());
    assert_eq!(answer.status, 500);
    let detail = answer.json()["detail"].as_str().expect("text").to_owned();
    assert!(detail.starts_with("BackendError: ") && detail.contains("none left"), "{detail}");
}

#[test]
fn a_policy_that_panics_is_never_asked_again() {
    let rig = failing(true);
    let request = rig.demo();
    for _ in 0..2 {
        let answer = rig.predict(&request);
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains("the policy has stopped"), "{}", answer.text());
    }
    // Clients are told while the policy's thread is still unwinding.
    wait_for("the end of the policy", || rig.get("/health").json()["status"] == "stopped");
}

#[test]
fn a_place_that_outlives_the_policy_is_told_at_once() {
    let rig = failing(true);
    let demo = rig.ready().demo.clone();
    let place = rig.engine.reserve().expect("a place");
    rig.predict(&rig.demo());
    wait_for("the end of the policy", || rig.get("/health").json()["status"] == "stopped");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let answer = runtime.block_on(place.predict(demo.observation, demo.noise));
    assert!(matches!(answer, Err(engine::EngineError::Stopped)), "{answer:?}");
}
