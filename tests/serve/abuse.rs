//! Clients that are slow, broken or hostile do not hurt the others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::serve::http::Limits;

use super::rig::{PATIENCE, Rig, Setup, answer, connect};

/// Longer than a client that is not slow takes on a busy machine.
const SHORT: Duration = Duration::from_millis(800);

fn rig(http: Limits) -> Rig {
    let rig = Rig::with_policy(Version::N16, Setup { http, ..Setup::default() }, |policy| policy);
    rig.ready();
    rig
}

fn short() -> Limits {
    Limits { head: SHORT, body: SHORT, write: SHORT, drain: PATIENCE, ..Limits::default() }
}

/// Waits until the server closes the connection.
fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn garbage_is_refused_and_forgotten() {
    let rig = Rig::of(Version::N16);
    let garbage: [&[u8]; 5] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"pear\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    for bytes in garbage {
        let mut stream = connect(rig.address);
        stream.write_all(bytes).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("closed");
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 4"), "{reply:?}");
    }
    let mut long = connect(rig.address);
    let _ = long.write_all(b"GET / HTTP/1.1\r\n");
    let _ = long.write_all(format!("x: {}\r\n", "y".repeat(1 << 20)).as_bytes());
    closed(&mut long);
    assert_eq!(rig.get("/health").status, 200);
}

#[test]
fn slow_heads_and_idle_connections_are_closed_while_others_are_served() {
    let rig = rig(short());
    let request = rig.demo();
    let start = Instant::now();
    let mut silent = connect(rig.address);
    let mut slow = connect(rig.address);
    slow.write_all(b"GET /health HTTP/1.1\r\nHo").expect("sent");
    let mut idle = connect(rig.address);
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    rig.predict(&request).chunk();
    for stream in [&mut silent, &mut slow, &mut idle] {
        closed(stream);
    }
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
}

#[test]
fn silent_connections_beyond_the_limit_give_way() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let rig = rig(limits);
    let start = Instant::now();
    let mut idle = connect(rig.address);
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut silent: Vec<TcpStream> = (0..10).map(|_| connect(rig.address)).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        // It may be gone already.
        let _ = stream.write_all(match number % 2 {
            0 => b"GET /health HT",
            _ => b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        });
    }
    assert_eq!(rig.get("/health").status, 200);
    for gone in std::iter::once(&mut idle).chain(&mut silent[..9]) {
        closed(gone);
    }
    assert!(start.elapsed() < limits.head / 2, "{:?}", start.elapsed());
}

#[test]
fn slow_bodies_are_told_so() {
    let rig = rig(short());
    let mut slow = connect(rig.address);
    slow.write_all(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        .expect("sent");
    let answer = answer(&mut slow);
    assert_eq!(answer.status, 408, "{}", answer.text());
}

#[test]
fn large_bodies_are_refused_before_they_are_read() {
    let rig = rig(Limits { body_bytes: 1 << 20, ..Limits::default() });
    let mut announced = connect(rig.address);
    let head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n";
    announced.write_all(head).expect("sent");
    assert_eq!(answer(&mut announced).status, 413);

    let mut chunked = connect(rig.address);
    let head = b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    chunked.write_all(head).expect("sent");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..64 {
        // The server closes in between.
        if chunked.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut reply = [0; 12];
    // What was sent after the answer may have reset the connection.
    if chunked.read_exact(&mut reply).is_ok() {
        assert_eq!(&reply, b"HTTP/1.1 413");
    }
    rig.predict(&rig.demo()).chunk();
}

#[test]
fn bodies_together_take_no_more_room_than_there_is() {
    let room = 4 << 20;
    let rig = rig(Limits { body_bytes: room, held_bytes: room, ..Limits::default() });
    let request = rig.demo();
    let mut holder = connect(rig.address);
    let head = format!("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: {room}\r\n\r\n");
    holder.write_all(head.as_bytes()).expect("sent");
    holder.write_all(&vec![b' '; room - 1]).expect("sent");
    let held = |bytes: usize| {
        let line = format!("gr00t_bodies_held_bytes {bytes}");
        rig.get("/metrics").text().lines().any(|found| found == line)
    };
    super::rig::wait_for("a room that is almost full", || held(room - 1));
    let refused = rig.predict(&request);
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("holds too many requests"), "{}", refused.text());
    drop(holder);
    super::rig::wait_for("an empty room", || held(0));
    rig.predict(&request).chunk();
}

#[test]
fn clients_that_do_not_read_are_left() {
    let mut rig = rig(short());
    let request = rig.demo();
    let mut deaf = connect(rig.address);
    deaf.set_write_timeout(Some(SHORT)).expect("a limit");
    // Answers pile up until neither side takes more.
    let asks = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20_000);
    let _ = deaf.write_all(&asks);
    rig.predict(&request).chunk();
    let start = Instant::now();
    rig.ended();
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
}

#[test]
fn a_client_that_sends_all_of_a_refused_body_gets_its_answer() {
    let body_bytes = 4 << 20;
    let rig = rig(Limits { body_bytes, ..Limits::default() });
    let (small, large) = (body_bytes, 3 * body_bytes);
    for (path, kind, length, status) in [
        ("/other", "x/y", small, 404),
        ("/info", "x/y", small, 405),
        ("/predict", "x/y", small, 415),
        ("/predict", "application/json", large, 413),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut stream = connect(rig.address);
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(&vec![b' '; length]).expect("all of it is taken");
        assert_eq!(answer(&mut stream).status, status, "{path}");
    }
}

#[test]
fn a_stop_does_not_wait_for_half_a_request() {
    let mut rig = rig(Limits::default());
    let mut half_head = connect(rig.address);
    half_head.write_all(b"GET /he").expect("sent");
    let mut half_body = connect(rig.address);
    half_body
        .write_all(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        .expect("sent");
    // The server has seen them.
    assert_eq!(rig.get("/health").status, 200);
    let start = Instant::now();
    rig.ended();
    closed(&mut half_head);
    closed(&mut half_body);
    assert!(start.elapsed() < Limits::default().head / 2, "{:?}", start.elapsed());
}

#[test]
fn a_stop_ends_requests_under_way_and_takes_no_more() {
    let mut rig = rig(Limits::default());
    let request = rig.demo();
    let mut kept = connect(rig.address);
    kept.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let (address, body) = (rig.address, request.to_string());
    let client = thread::spawn(move || {
        let head = "POST /predict HTTP/1.1\r\nContent-Type: application/json\r\n";
        super::rig::exchange(address, head, body.as_bytes()).status
    });
    assert_eq!(client.join().expect("no panic"), 200);
    rig.ended();
    closed(&mut kept);
    TcpStream::connect(rig.address).expect_err("nobody listens");
}
