//! Clients side by side, the queue, and how the server ends.

use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gr00t_blackhole::contract::{CancelToken, PredictOptions};
use gr00t_blackhole::serve::engine;
use gr00t_blackhole::serve::zmq::{End, Limits, Settings};

use crate::client::{Client, PATIENCE};
use crate::messages::{error_of, plain};
use crate::rig::{Serving, Setup};
use crate::stored;
use crate::stub::Stub;

pub fn serving(limits: Limits) -> Serving {
    Serving::stub(Stub::default(), Setup { limits, ..Setup::default() })
}

pub fn is_served(serving: &Serving) {
    let exchange = stored::exchanges().into_iter().find(|e| e.name == "nested/class").unwrap();
    assert_eq!(Client::connect(serving.address).ask(&exchange.request), exchange.answer);
}

/// A policy that tells when it predicts, and predicts on when it is told to, or when nobody waits for it any more.
pub struct Gate {
    pub serving: Serving,
    /// Tells of each prediction whether it has been given up.
    pub begun: Receiver<CancelToken>,
    pub go_on: Sender<()>,
}

pub fn gated(setup: Setup) -> Gate {
    let (begin, begun) = channel();
    let (go_on, told) = channel();
    let before = Box::new(move |options: &PredictOptions| {
        begin.send(options.cancel.clone()).unwrap();
        while !options.cancel.is_cancelled() && told.recv_timeout(LOOK).is_err() {}
    });
    let serving = Serving::stub(Stub { before, ..Stub::default() }, setup);
    Gate { serving, begun, go_on }
}

const LOOK: Duration = Duration::from_millis(5);

/// Waits until a prediction has been given up.
pub fn given_up(prediction: &CancelToken) {
    let start = std::time::Instant::now();
    while !prediction.is_cancelled() {
        assert!(start.elapsed() < PATIENCE, "the prediction goes on");
        thread::sleep(LOOK);
    }
}

#[test]
fn clients_are_served_side_by_side_and_get_the_same_answers() {
    let serving = serving(Limits::default());
    let exchanges = Arc::new(stored::exchanges());
    let clients: Vec<_> = (0..4)
        .map(|first| {
            let (exchanges, address) = (exchanges.clone(), serving.address);
            thread::spawn(move || {
                let mut client = Client::connect(address);
                for exchange in exchanges.iter().cycle().skip(first).take(20) {
                    assert_eq!(client.ask(&exchange.request), exchange.answer, "{}", exchange.name);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn requests_in_parts_and_through_routers_are_answered_where_they_came_from() {
    let serving = serving(Limits::default());
    let ping = plain("ping", None);
    let mut client = Client::try_connect(serving.address, "DEALER").unwrap();
    let ok = Client::connect(serving.address).ask(&ping);
    client.send(&[b"router", b"client", b"", &ping]);
    assert_eq!(client.receive().unwrap(), [&b"router"[..], b"client", b"", &ok]);
    client.send(&[b"", &ping, b"more", b""]);
    assert_eq!(client.receive().unwrap(), [&b""[..], &ok]);
    // Without the empty part there is no request; a request of nothing is one.
    client.send(&[b"a", b"b"]);
    client.send(&[b""]);
    let parts = client.receive().unwrap();
    assert!(error_of(&parts[1]).unwrap().contains("cut off at byte 0"));
    // Several at once are answered one after the other.
    for _ in 0..10 {
        client.send(&[b"", &ping]);
    }
    for _ in 0..10 {
        assert_eq!(client.receive().unwrap()[1], ok);
    }
}

#[test]
fn signs_of_life_are_given_also_during_a_prediction() {
    let Gate { serving, begun, go_on } = gated(Setup::default());
    let mut client = Client::connect(serving.address);
    client.ping_and_pong(b"ab");
    client.send(&[b"", &stored::request("n15/class")]);
    begun.recv_timeout(PATIENCE).unwrap();
    client.ping_and_pong(b"cd");
    go_on.send(()).unwrap();
    assert_eq!(error_of(&client.receive().unwrap()[1]), None);
}

#[test]
fn a_full_queue_is_said_to_be_full() {
    const QUEUE: usize = 3;
    let limits = engine::Limits { queue: QUEUE, ..engine::Limits::default() };
    let Gate { serving, begun, go_on } = gated(Setup { engine: limits, ..Setup::default() });
    let request = stored::request("n15/class");
    let ask = |mut client: Client| {
        client.send(&[b"", &request]);
        client
    };
    let mut first = ask(Client::connect(serving.address));
    begun.recv_timeout(PATIENCE).unwrap();
    // One more than can wait: which of them is refused is up to the threads.
    let waiting: Vec<_> = (0..=QUEUE).map(|_| ask(Client::connect(serving.address))).collect();
    let (answers, answered) = channel();
    let answers = Arc::new(Mutex::new(answers));
    let readers: Vec<_> = waiting
        .into_iter()
        .map(|mut client| {
            let answers = answers.clone();
            thread::spawn(move || {
                let answer = client.receive().unwrap().remove(1);
                answers.lock().unwrap().send(error_of(&answer)).unwrap();
            })
        })
        .collect();
    let refused = answered.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(refused.starts_with("3 requests wait already"), "{refused}");
    // Whoever does not predict need not wait.
    assert_eq!(error_of(&Client::connect(serving.address).ask(&plain("ping", None))), None);
    (0..=QUEUE).for_each(|_| go_on.send(()).unwrap());
    assert_eq!(error_of(&first.receive().unwrap()[1]), None);
    for _ in 0..QUEUE {
        assert_eq!(answered.recv_timeout(PATIENCE).unwrap(), None);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn a_deadline_ends_the_prediction() {
    let limits =
        engine::Limits { deadline: Duration::from_millis(200), ..engine::Limits::default() };
    let Gate { serving, begun, .. } = gated(Setup { engine: limits, ..Setup::default() });
    let late = Client::connect(serving.address).ask(&stored::request("n15/class"));
    assert!(error_of(&late).unwrap().contains("no answer within 0.2 s"));
    given_up(&begun.recv_timeout(PATIENCE).unwrap());
}

#[test]
fn a_client_that_may_ends_the_server() {
    let settings = Settings { allow_kill: true, ..Settings::default() };
    let mut serving = Serving::stub(Stub::default(), Setup { settings, ..Setup::default() });
    let mut other = Client::connect(serving.address);
    assert_eq!(error_of(&Client::connect(serving.address).ask(&plain("kill", None))), None);
    assert_eq!(serving.ended(), End::Killed);
    assert!(other.is_closed());
    TcpStream::connect(serving.address).expect_err("nobody listens");
}

#[test]
fn a_request_that_has_arrived_is_answered_before_the_end() {
    let Gate { mut serving, begun, go_on } = gated(Setup::default());
    let mut client = Client::connect(serving.address);
    client.send(&[b"", &stored::request("n15/class")]);
    begun.recv_timeout(PATIENCE).unwrap();
    serving.stop();
    go_on.send(()).unwrap();
    assert_eq!(error_of(&client.receive().unwrap()[1]), None);
    assert_eq!(serving.ended(), End::Stopped);
}
