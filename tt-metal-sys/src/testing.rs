//! What tests of descriptors need.

use std::time::{Duration, Instant};

/// Whether something becomes true within ten seconds. Tests run as threads of one process: a program that one of them is
/// just starting has the descriptors of all others, until it has become itself.
pub fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
