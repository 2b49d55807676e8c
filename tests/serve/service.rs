//! What a service manager hears of `serve`.

use std::os::unix::net::UnixDatagram;

use gr00t_blackhole::contract::Version;

use super::commands::Running;
use super::rig::{PATIENCE, checkpoint};

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    path: String,
    _folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
        Self { socket, path: path.to_str().expect("text").to_owned(), _folder: folder }
    }

    fn heard(&self) -> String {
        let mut bytes = [0; 256];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).expect("text").trim_end().to_owned()
    }

    /// Reads signs of life until something else is heard; what it is, and how many there were.
    fn after_signs_of_life(&self) -> (String, usize) {
        let mut signs = 0;
        loop {
            match self.heard().as_str() {
                "WATCHDOG=1" => signs += 1,
                other => return (other.to_owned(), signs),
            }
        }
    }
}

#[test]
fn the_service_manager_hears_of_readiness_of_life_and_of_the_end() {
    let manager = Manager::new();
    let variables = [("NOTIFY_SOCKET", manager.path.as_str()), ("WATCHDOG_USEC", "20000")];
    let server = Running::start(Version::N16, checkpoint(Version::N16), &variables);
    assert_eq!(manager.after_signs_of_life().0, "READY=1");
    for _ in 0..3 {
        assert_eq!(manager.heard(), "WATCHDOG=1");
    }
    server.end();
    assert_eq!(manager.after_signs_of_life().0, "STOPPING=1");
}

#[test]
fn no_watchdog_no_signs_of_life() {
    let manager = Manager::new();
    let variables = [("NOTIFY_SOCKET", manager.path.as_str())];
    let server = Running::start(Version::N16, checkpoint(Version::N16), &variables);
    assert_eq!(manager.after_signs_of_life(), ("READY=1".to_owned(), 0));
    server.end();
    assert_eq!(manager.after_signs_of_life(), ("STOPPING=1".to_owned(), 0));
}
