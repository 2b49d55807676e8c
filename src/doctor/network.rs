//! Kernel limits for images that travel as UDP fragments.

use super::finding::Finding;
use super::system::{System, bytes};

const RMEM_MAX: &str = "/proc/sys/net/core/rmem_max";
const IPFRAG_THRESHOLD: &str = "/proc/sys/net/ipv4/ipfrag_high_thresh";
const IPFRAG_TIME: &str = "/proc/sys/net/ipv4/ipfrag_time";

/// Receive buffer that holds three frames of 1280x720 rgb8 [bytes].
const ENOUGH_BUFFER: u64 = 8 << 20;
/// Memory for fragments that wait for the rest of their frame [bytes]: as ROS 2's guide to DDS tuning has it.
const ENOUGH_FRAGMENTS: u64 = 128 << 20;
/// Time after which the fragments of an incomplete frame are dropped [s]: from the same guide.
const FRAGMENT_TIME: u64 = 3;

/// Socket buffers and fragments. They matter for raw images from another machine, or without shared memory:
/// `raw_cameras` is how many cameras send such, `None` where that is not known.
pub fn checks(system: &System, raw_cameras: Option<usize>) -> Vec<Finding> {
    vec![
        at_least(
            ("UDP receive buffer", "net.core.rmem_max"),
            system.number(RMEM_MAX),
            ENOUGH_BUFFER,
            raw_cameras,
        ),
        at_least(
            ("UDP fragment memory", "net.ipv4.ipfrag_high_thresh"),
            system.number(IPFRAG_THRESHOLD),
            ENOUGH_FRAGMENTS,
            raw_cameras,
        ),
        fragment_time(system.number(IPFRAG_TIME), raw_cameras),
    ]
}

fn at_least(
    (subject, name): (&str, &str),
    value: Option<u64>,
    enough: u64,
    raw_cameras: Option<usize>,
) -> Finding {
    match value {
        None => unreadable(subject, name),
        Some(value) if value >= enough => Finding::ok(subject, format!("{name} is {value}")),
        Some(value) => small(
            subject,
            format!("{name} is {value} ({}), raw images over UDP want {enough}", bytes(value)),
            format!("sudo sysctl -w {name}={enough}"),
            raw_cameras,
        ),
    }
}

fn fragment_time(value: Option<u64>, raw_cameras: Option<usize>) -> Finding {
    const SUBJECT: &str = "UDP fragment time";
    const NAME: &str = "net.ipv4.ipfrag_time";
    match value {
        None => unreadable(SUBJECT, NAME),
        Some(value) if value <= FRAGMENT_TIME => {
            Finding::ok(SUBJECT, format!("{NAME} is {value} s"))
        }
        Some(value) => small(
            SUBJECT,
            format!("{NAME} is {value} s: fragments of lost frames fill the memory for so long"),
            format!("sudo sysctl -w {NAME}={FRAGMENT_TIME}"),
            raw_cameras,
        ),
    }
}

/// A limit that only raw images suffer from.
fn small(subject: &str, found: String, fix: String, raw_cameras: Option<usize>) -> Finding {
    if raw_cameras == Some(0) {
        return Finding::ok(subject, format!("{found}; no camera here sends any"));
    }
    Finding::warn(subject, found, fix)
}

fn unreadable(subject: &str, name: &str) -> Finding {
    let fix = "mount /proc to have it checked; in a container, the limit may be the host's";
    Finding::warn(subject, format!("{name} cannot be read"), fix)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    fn machine(buffer: &str, fragments: &str, time: &str) -> Fake {
        let files = [(RMEM_MAX, buffer), (IPFRAG_THRESHOLD, fragments), (IPFRAG_TIME, time)];
        Fake::new(&files, &[])
    }

    fn levels(fake: &Fake, raw_cameras: Option<usize>) -> Vec<Level> {
        checks(&fake.system, raw_cameras).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn case_62_small_buffers_are_told_with_the_command_that_mends_them() {
        let fake = machine("212992", "4194304", "30");
        assert_eq!(levels(&fake, Some(2)), [Level::Warn; 3]);
        assert_eq!(levels(&fake, None), [Level::Warn; 3]);
        let findings = checks(&fake.system, Some(1));
        let fixes: Vec<&str> = findings.iter().filter_map(|f| f.fix.as_deref()).collect();
        assert_eq!(
            fixes,
            [
                "sudo sysctl -w net.core.rmem_max=8388608",
                "sudo sysctl -w net.ipv4.ipfrag_high_thresh=134217728",
                "sudo sysctl -w net.ipv4.ipfrag_time=3"
            ]
        );
    }

    #[test]
    fn they_do_not_matter_without_raw_images() {
        assert_eq!(levels(&machine("212992", "4194304", "30"), Some(0)), [Level::Ok; 3]);
    }

    #[test]
    fn enough_is_enough() {
        assert_eq!(levels(&machine("8388608", "134217728", "3"), Some(2)), [Level::Ok; 3]);
        assert_eq!(levels(&machine("8388607", "134217727", "4"), Some(2)), [Level::Warn; 3]);
        assert_eq!(levels(&Fake::new(&[], &[]), Some(0)), [Level::Warn; 3]);
    }
}
