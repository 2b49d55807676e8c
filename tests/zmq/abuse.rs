//! Clients that are slow, broken or hostile do not hurt the others.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use gr00t_blackhole::serve::zmq::Limits;

use crate::client::{Client, PATIENCE, greeting, message};
use crate::messages::{error_of, plain};
use crate::rig::Setup;
use crate::server::{Gate, gated, given_up, is_served, serving};
use crate::stored;

/// Longer than a client that is not slow takes on a busy machine.
const SHORT: Duration = Duration::from_millis(800);

fn short() -> Limits {
    Limits { message: SHORT, idle: SHORT, write: SHORT, ..Limits::default() }
}

fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Waits until the server closes the connection.
fn closed(stream: &mut TcpStream) {
    let start = Instant::now();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut vec![]);
    assert!(start.elapsed() < PATIENCE / 2, "the connection stays open");
}

#[test]
fn garbage_costs_its_connection_only() {
    let serving = serving(Limits::default());
    let whole = [greeting("REQ"), message(&[b"", b"x"])].concat();
    let long = |flags: u8, length: u64| [&[flags][..], &length.to_be_bytes()].concat();
    let mut garbage = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xFF; 1000],
        [greeting("REQ"), long(2, u64::MAX)].concat(),
        [greeting("REQ"), long(3, 1 << 40)].concat(),
        [greeting("REQ"), long(6, 1 << 40)].concat(),
        [greeting("REQ"), [1, 0].repeat(1000)].concat(),
        [greeting("REQ"), vec![0xF8; 100]].concat(),
        greeting("PUB"),
    ];
    garbage.extend((0..whole.len()).step_by(7).map(|end| whole[..end].to_vec()));
    for bytes in garbage {
        let mut stream = connect(serving.address);
        // It may have been closed before everything is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        closed(&mut stream);
    }
    is_served(&serving);
}

#[test]
fn half_open_connections_do_not_keep_others_waiting() {
    let serving = serving(Limits::default());
    let ping = plain("ping", None);
    let bytes = message(&[b"", &ping]);
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    let mut silent = connect(serving.address);
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
fn silent_slow_and_idle_clients_are_disconnected() {
    let serving = serving(short());
    let mut silent = connect(serving.address);
    let mut slow = Client::connect(serving.address).stream;
    slow.write_all(b"\0").unwrap();
    let mut idle = Client::connect(serving.address);
    idle.ask(&plain("ping", None));
    is_served(&serving);
    for stream in [&mut silent, &mut slow, &mut idle.stream] {
        closed(stream);
    }
}

#[test]
fn a_client_that_vanishes_ends_its_prediction() {
    let Gate { serving, begun, go_on } = gated(Setup::default());
    let request = stored::request("n15/class");
    let mut gone = Client::connect(serving.address);
    gone.send(&[b"", &request]);
    let prediction = begun.recv_timeout(PATIENCE).unwrap();
    drop(gone);
    given_up(&prediction);
    let mut next = Client::connect(serving.address);
    next.send(&[b"", &request]);
    begun.recv_timeout(PATIENCE).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(error_of(&next.receive().unwrap()[1]), None);
}

#[test]
fn a_client_that_does_not_read_is_left() {
    let mut serving = serving(short());
    let mut deaf = Client::connect(serving.address);
    deaf.stream.set_write_timeout(Some(SHORT)).unwrap();
    // Answers pile up until neither side takes more.
    let asks = message(&[b"", &plain("get_modality_config", None)]).repeat(50_000);
    let _ = deaf.stream.write_all(&asks);
    is_served(&serving);
    let start = Instant::now();
    serving.stop();
    serving.ended();
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
}

#[test]
fn a_request_that_is_too_large_is_told_so_and_the_next_one_is_served() {
    let serving = serving(Limits { message_bytes: 1 << 20, ..Limits::default() });
    let mut client = Client::connect(serving.address);
    let error = error_of(&client.ask(&vec![0; (1 << 20) + 1])).unwrap();
    assert_eq!(error, "the request has 1048577 bytes; at most 1048576 are accepted");
    assert_eq!(error_of(&client.ask(&plain("ping", None))), None);
}

#[test]
fn requests_together_take_no_more_room_than_there_is() {
    let room = 4 << 20;
    let serving = serving(Limits { message_bytes: room, held_bytes: room, ..Limits::default() });
    let bytes = message(&[b"", &vec![0; room]]);
    let mut other = Client::connect(serving.address);
    let start = Instant::now();
    // Where the other one is read before the holder's bytes have come, there is another try.
    let mut holder = loop {
        let mut holder = Client::connect(serving.address);
        holder.stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
        thread::sleep(SHORT / 8);
        let told = error_of(&other.ask(&vec![0; 1 << 20])).unwrap();
        if told == "the server holds too many requests; try again later" {
            break holder;
        }
        assert!(start.elapsed() < PATIENCE, "{told}");
    };
    holder.stream.write_all(&bytes[bytes.len() - 1..]).unwrap();
    assert!(holder.receive().is_ok());
    is_served(&serving);
}

#[test]
fn silent_connections_beyond_the_limit_give_way() {
    let serving = serving(Limits { connections: 3, ..Limits::default() });
    let mut client = Client::connect(serving.address);
    let silent: Vec<TcpStream> = (0..20).map(|_| connect(serving.address)).collect();
    is_served(&serving);
    // The oldest of them are gone, and so is the client that said nothing for longer.
    for mut gone in silent.into_iter().take(17) {
        closed(&mut gone);
    }
    closed(&mut client.stream);
}

#[test]
fn half_messages_beyond_the_limit_give_way() {
    let serving = serving(Limits { connections: 3, ..Limits::default() });
    let half = &message(&[b"", &[0; 1000]])[..500];
    let mut clients: Vec<Client> = (0..6)
        .map(|_| {
            let mut client = Client::connect(serving.address);
            client.stream.write_all(half).unwrap();
            client
        })
        .collect();
    is_served(&serving);
    for gone in &mut clients[..3] {
        closed(&mut gone.stream);
    }
}

#[test]
fn connections_beyond_the_limit_wait_while_all_others_are_busy() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let Gate { serving, begun, go_on } = gated(Setup { limits, ..Setup::default() });
    let mut busy = Client::connect(serving.address);
    busy.send(&[b"", &stored::request("n15/class")]);
    begun.recv_timeout(PATIENCE).unwrap();
    let (greeted, second) = channel();
    let address = serving.address;
    let waiting = thread::spawn(move || {
        let mut client = Client::connect(address);
        greeted.send(()).unwrap();
        error_of(&client.ask(&plain("ping", None)))
    });
    second.recv_timeout(SHORT).expect_err("it waits");
    go_on.send(()).unwrap();
    assert_eq!(error_of(&busy.receive().unwrap()[1]), None);
    assert_eq!(waiting.join().unwrap(), None);
}
