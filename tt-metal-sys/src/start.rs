//! From a command to a worker that has said who it is.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::command::WorkerCommand;
use crate::connection::Connection;
use crate::error::Error;
use crate::link::Link;
use crate::process::{Process, wait_readable};
use crate::protocol::{Hello, VERSION};

/// Starts a worker and checks its versions.
pub fn start(
    command: &WorkerCommand,
    wait: Duration,
    mut started: impl FnMut(u32) -> Result<(), Error>,
) -> Result<Link, Error> {
    let begin = Instant::now();
    let failed = "the socket of the device worker cannot be made";
    // The directory has mode 0700 and lives until the worker has connected.
    let dir = tempfile::Builder::new().prefix("gr00t-device-").tempdir();
    let dir = dir.map_err(Error::system(failed))?;
    let path = dir.path().join("socket");
    let listener = listen(&path).map_err(Error::system(failed))?;
    let process = Process::start(command, &path)?;
    started(process.id())?;
    let mut link = accept(&listener, process, begin, wait)?;
    let hello: Hello = link.hello(begin, wait)?;
    compare(command, &hello)?;
    Ok(link)
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept(
    listener: &UnixListener,
    mut process: Process,
    begin: Instant,
    wait: Duration,
) -> Result<Link, Error> {
    const REQUEST: &str = "hello";
    loop {
        let left = wait.saturating_sub(begin.elapsed());
        match wait_readable(&[listener.as_fd(), process.as_fd()], left) {
            Ok([true, _]) => {
                let socket = listener.accept();
                let connection = socket.and_then(|(socket, _)| Connection::new(socket));
                let failed = "the device worker's connection cannot be taken";
                return Ok(Link::new(connection.map_err(Error::system(failed))?, process));
            }
            Ok([false, true]) => {
                let exit = process.end();
                let stderr = process.last_words();
                return Err(Error::WorkerGone { exit, request: REQUEST, stderr });
            }
            Ok([false, false]) if left == Duration::ZERO => {
                process.end();
                let (waited, stderr) = (begin.elapsed(), process.last_words());
                return Err(Error::Timeout { request: REQUEST, waited, stderr });
            }
            Ok([false, false]) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::System {
                    what: "the device worker cannot be waited for",
                    source: errno.into(),
                });
            }
        }
    }
}

fn compare(command: &WorkerCommand, hello: &Hello) -> Result<(), Error> {
    let fields = [
        ("protocol", VERSION.to_string(), hello.protocol.to_string()),
        ("kind", command.expected.worker.clone(), hello.worker.clone()),
        ("tt-metal version", command.expected.tt_metal.clone(), hello.tt_metal.clone()),
    ];
    match fields.into_iter().find(|(_, expected, found)| expected != found) {
        Some((field, expected, found)) => Err(Error::Handshake { field, expected, found }),
        None => Ok(()),
    }
}
