//! What the socket has to bear.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use gr00t_blackhole::contract::CancelToken;
use gr00t_blackhole::serve::zmq::{
    MAX_CLIENTS, MAX_MESSAGE_BYTES, MAX_WAITING, ServeError, Server, Settings, run,
};

use crate::client::{Client, PATIENCE, Serving, greeting, message};
use crate::messages::{error_of, plain};
use crate::stored;
use crate::stub::Stub;

fn serving() -> Serving {
    Serving::start(Stub::default(), Settings::default())
}

fn is_served(serving: &Serving) {
    let exchange = stored::exchanges().into_iter().find(|e| e.name == "nested/class").unwrap();
    assert_eq!(Client::connect(serving.address).ask(&exchange.request), exchange.answer);
}

/// A policy that tells when it predicts, and predicts on when it is told to.
struct Gate {
    serving: Serving,
    begun: Receiver<()>,
    go_on: Sender<()>,
}

fn gated() -> Gate {
    let (begin, begun) = channel();
    let (go_on, told) = channel();
    let before = Box::new(move || {
        begin.send(()).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
    });
    let serving = Serving::start(Stub { before, ..Stub::default() }, Settings::default());
    Gate { serving, begun, go_on }
}

#[test]
fn clients_are_served_side_by_side_and_get_the_same_answers() {
    let serving = serving();
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
fn garbage_costs_its_connection_only() {
    let serving = serving();
    let whole = [greeting("REQ"), message(&[b"", b"x"])].concat();
    let long = |flags: u8, length: u64| [&[flags][..], &length.to_be_bytes()].concat();
    let mut garbage = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xFF; 1000],
        [greeting("REQ"), long(2, u64::MAX)].concat(),
        [greeting("REQ"), long(2, MAX_MESSAGE_BYTES as u64 + 1)].concat(),
        [greeting("REQ"), long(3, 1 << 40)].concat(),
        [greeting("REQ"), long(6, 1 << 40)].concat(),
        [greeting("REQ"), [1, 0].repeat(1000)].concat(),
        [greeting("REQ"), vec![0xF8; 100]].concat(),
        greeting("PUB"),
    ];
    garbage.extend((0..whole.len()).step_by(7).map(|end| whole[..end].to_vec()));
    for bytes in garbage {
        let mut stream = TcpStream::connect(serving.address).unwrap();
        // It may have been closed before everything is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
    }
    is_served(&serving);
}

#[test]
fn half_open_connections_do_not_keep_others_waiting() {
    let serving = serving();
    let ping = plain("ping", None);
    let bytes = message(&[b"", &ping]);
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    let mut silent = TcpStream::connect(serving.address).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut greeted = Client::connect(serving.address);
    greeted.stream.write_all(half).unwrap();
    is_served(&serving);
    // The slow ones are served once they go on.
    greeted.stream.write_all(rest).unwrap();
    assert_eq!(error_of(&greeted.receive().unwrap()[1]), None);
    silent.write_all(&greeting("REQ")).unwrap();
    silent.read_exact(&mut [0; 64 + 27]).unwrap();
    assert_eq!(error_of(&Client { stream: silent }.ask(&ping)), None);
}

#[test]
fn a_client_that_vanishes_in_a_prediction_does_not_end_the_server() {
    let Gate { serving, begun, go_on } = gated();
    let request = stored::request("n15/class");
    let mut gone = Client::connect(serving.address);
    gone.send(&[b"", &request]);
    begun.recv_timeout(PATIENCE).unwrap();
    drop(gone);
    go_on.send(()).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(error_of(&Client::connect(serving.address).ask(&request)), None);
}

#[test]
fn requests_in_parts_and_through_routers_are_answered_where_they_came_from() {
    let serving = serving();
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
    client.stream.write_all(b"\x04\x09\x04PING\0\x0aab").unwrap();
    client.send(&[b"", &ping]);
    let mut pong = [0; 9];
    client.stream.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"\x04\x07\x04PONGab");
    assert_eq!(client.receive().unwrap()[1], ok);
}

#[test]
fn a_full_queue_is_said_to_be_full() {
    let Gate { serving, begun, go_on } = gated();
    let request = stored::request("n15/class");
    let ask = |mut client: Client| {
        client.send(&[b"", &request]);
        client
    };
    let mut first = ask(Client::connect(serving.address));
    begun.recv_timeout(PATIENCE).unwrap();
    // One more than can wait: which of them is refused is up to the threads.
    let waiting: Vec<_> =
        (0..=MAX_WAITING).map(|_| ask(Client::connect(serving.address))).collect();
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
    assert_eq!(refused, format!("busy: {MAX_WAITING} requests wait already; ask again later"));
    (0..=MAX_WAITING).for_each(|_| go_on.send(()).unwrap());
    assert_eq!(error_of(&first.receive().unwrap()[1]), None);
    for _ in 0..MAX_WAITING {
        assert_eq!(answered.recv_timeout(PATIENCE).unwrap(), None);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn further_clients_are_disconnected_and_served_when_there_is_room() {
    let serving = serving();
    let mut clients: Vec<_> = (0..MAX_CLIENTS).map(|_| Client::connect(serving.address)).collect();
    assert!(Client::try_connect(serving.address, "REQ").is_err());
    assert_eq!(error_of(&clients[0].ask(&plain("ping", None))), None);
    clients.clear();
    let start = std::time::Instant::now();
    while Client::try_connect(serving.address, "REQ").is_err() {
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn a_client_that_may_ends_the_server() {
    let settings = Settings { allow_kill: true, ..Settings::default() };
    let mut serving = Serving::start(Stub::default(), settings);
    let mut other = Client::connect(serving.address);
    assert_eq!(error_of(&Client::connect(serving.address).ask(&plain("kill", None))), None);
    serving.ended();
    assert!(other.is_closed());
    assert!(TcpStream::connect(serving.address).is_err());
}

#[test]
fn a_request_that_has_arrived_is_answered_before_the_end() {
    let Gate { mut serving, begun, go_on } = gated();
    let mut client = Client::connect(serving.address);
    client.send(&[b"", &stored::request("n15/class")]);
    begun.recv_timeout(PATIENCE).unwrap();
    serving.stop();
    go_on.send(()).unwrap();
    assert_eq!(error_of(&client.receive().unwrap()[1]), None);
    serving.ended();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = Server::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = server.local_addr();
    let error = run(Stub::default(), address, Settings::default(), &CancelToken::default());
    let Err(error @ ServeError::Bind { .. }) = error else { panic!("{error:?}") };
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
