//! Tenstorrent cards: device files, huge pages and driver, and what stands in for a card.

use std::os::unix::fs::MetadataExt;

use super::finding::Finding;
use super::system::{System, User};
use super::{device_python, simulator};
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions};

const DEVICES: &str = "/dev/tenstorrent";
const DRIVER_VERSION: &str = "/sys/module/tenstorrent/version";
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
const HUGE_PAGE_MOUNT: &str = "/dev/hugepages-1G";
/// Read and write.
const READ_WRITE: u32 = 0o6;

/// `wanted` is the device of the node's parameters; `None` where the CPU computes.
pub fn checks(system: &System, wanted: Option<&DeviceOptions>) -> Vec<Finding> {
    let number = wanted.filter(|device| device.kind == DeviceKind::Card);
    let mut findings = cards(system, number.map(|device| device.device_id));
    findings.extend(simulator::check(system, wanted));
    findings.extend(device_python::check(system, wanted));
    findings
}

/// `wanted` is the number of the card that the node is to open.
fn cards(system: &System, wanted: Option<u32>) -> Vec<Finding> {
    const SUBJECT: &str = "Tenstorrent";
    let missing = wanted.map(|number| format!("{DEVICES}/{number}"));
    let missing = missing.filter(|path| !system.exists(path)).map(|path| {
        let found = format!("{path} is not there: the node cannot open that card");
        let fix = "install tt-kmd, see lspci -d 1e52: and ls /dev/tenstorrent, and set device_id, or choose the backend cpu; docker: --device /dev/tenstorrent";
        Finding::fail(SUBJECT, found, fix)
    });
    if !system.exists(DEVICES) {
        let none = || Finding::ok(SUBJECT, format!("no card: there is no {DEVICES}"));
        return vec![missing.unwrap_or_else(none)];
    }
    let mut findings: Vec<Finding> = missing.into_iter().collect();
    findings.push(driver(system.read(DRIVER_VERSION)));
    findings.extend(devices(system));
    findings.push(huge_pages(system));
    findings
}

fn driver(version: Option<String>) -> Finding {
    const SUBJECT: &str = "Tenstorrent driver";
    match version {
        Some(version) => Finding::ok(SUBJECT, format!("version {version}")),
        None => {
            let found = format!("{DRIVER_VERSION} cannot be read: the driver is not loaded");
            Finding::warn(SUBJECT, found, "install tt-kmd, then sudo modprobe tenstorrent")
        }
    }
}

fn devices(system: &System) -> Vec<Finding> {
    const SUBJECT: &str = "Tenstorrent device";
    let names = system.names(DEVICES);
    let numbered: Vec<&String> =
        names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect();
    if numbered.is_empty() {
        let found =
            format!("{DEVICES} holds no device: no card, or one that the driver does not know");
        return vec![Finding::warn(
            SUBJECT,
            found,
            "see dmesg | grep tenstorrent and lspci -d 1e52:",
        )];
    }
    let user = system.user();
    let check = |name: &String| {
        let path = format!("{DEVICES}/{name}");
        let usable = std::fs::metadata(system.path(&path)).is_ok_and(|file| {
            user.as_ref().is_none_or(|user| may_use(file.mode(), file.uid(), file.gid(), user))
        });
        if usable {
            return Finding::ok(SUBJECT, format!("{path} may be read and written"));
        }
        let found = format!("{path} may not be read and written by this user");
        let fix = "install the udev rules of tt-kmd, or join the group of the file; docker: --device /dev/tenstorrent";
        Finding::warn(SUBJECT, found, fix)
    };
    numbered.into_iter().map(check).collect()
}

/// Whether the mode bits let the user read and write.
fn may_use(mode: u32, owner: u32, group: u32, user: &User) -> bool {
    let bits = if user.uid == owner {
        mode >> 6
    } else if user.groups.contains(&group) {
        mode >> 3
    } else {
        mode
    };
    user.uid == 0 || bits & READ_WRITE == READ_WRITE
}

fn huge_pages(system: &System) -> Finding {
    const SUBJECT: &str = "Tenstorrent huge pages";
    let count = system.number(HUGE_PAGES).unwrap_or(0);
    let mounts = system.read("/proc/mounts").unwrap_or_default();
    let mounted = mounts.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        (fields.next(), fields.next()) == (Some(HUGE_PAGE_MOUNT), Some("hugetlbfs"))
    });
    match (count, mounted) {
        (0, _) => {
            let fix = "install tt-system-tools and reboot, or add hugepagesz=1G hugepages=1 per card to the kernel's command line";
            Finding::warn(SUBJECT, "no huge pages of 1 GiB are reserved", fix)
        }
        (_, false) => {
            let found = format!("{count} of 1 GiB, but no hugetlbfs at {HUGE_PAGE_MOUNT}");
            let fix = format!(
                "sudo mount -t hugetlbfs -o pagesize=1G none {HUGE_PAGE_MOUNT}; docker: -v {HUGE_PAGE_MOUNT}:{HUGE_PAGE_MOUNT}"
            );
            Finding::warn(SUBJECT, found, fix)
        }
        (_, true) => Finding::ok(SUBJECT, format!("{count} of 1 GiB at {HUGE_PAGE_MOUNT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    const MOUNTS: (&str, &str) = (
        "/proc/mounts",
        "proc /proc proc rw 0 0\nnone /dev/hugepages-1G hugetlbfs rw,pagesize=1024M 0 0\n",
    );

    fn levels(files: &[(&str, &str)]) -> Vec<Level> {
        checks(&Fake::new(files, &[]).system, None).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn without_a_card_one_line() {
        let findings = checks(&Fake::new(&[], &[]).system, None);
        assert_eq!(findings, [Finding::ok("Tenstorrent", "no card: there is no /dev/tenstorrent")]);
    }

    #[test]
    fn case_86_a_card_that_the_node_is_to_open_has_to_be_there() {
        let device = ("/dev/tenstorrent/0", "");
        let files = [device, (DRIVER_VERSION, "2.3.0\n"), (HUGE_PAGES, "1\n"), MOUNTS];
        let there = Fake::new(&files, &[]);
        assert!(cards(&there.system, Some(0)).iter().all(|found| found.level == Level::Ok));
        for (system, number) in [(&there.system, 1), (&Fake::new(&[], &[]).system, 0)] {
            let first = cards(system, Some(number)).remove(0);
            assert_eq!(first.level, Level::Fail);
            assert!(first.found.contains(&format!("/dev/tenstorrent/{number} is not")), "{first}");
        }
    }

    #[test]
    fn case_86_each_part_has_its_line() {
        let device = ("/dev/tenstorrent/0", "");
        let version = (DRIVER_VERSION, "2.3.0\n");
        let pages = (HUGE_PAGES, "2\n");
        let (ok, warn) = (Level::Ok, Level::Warn);
        assert_eq!(levels(&[device, version, pages, MOUNTS]), [ok, ok, ok]);
        assert_eq!(levels(&[device, pages, MOUNTS]), [warn, ok, ok]);
        assert_eq!(levels(&[device, version, MOUNTS]), [ok, ok, warn]);
        assert_eq!(levels(&[device, version, pages]), [ok, ok, warn]);
        assert_eq!(
            levels(&[("/dev/tenstorrent/by-id/x", ""), version, pages, MOUNTS]),
            [ok, warn, ok]
        );
    }

    #[test]
    fn case_86_rights_of_the_device() {
        let user = |uid, groups: &[u32]| User { uid, groups: groups.to_vec() };
        for (mode, user, expected) in [
            (0o100_666, user(7, &[]), true),
            (0o100_660, user(7, &[44]), true),
            (0o100_660, user(7, &[45]), false),
            (0o100_640, user(7, &[44]), false),
            (0o100_600, user(1, &[]), true),
            (0o100_600, user(0, &[]), true),
            (0o100_066, user(1, &[]), false),
        ] {
            assert_eq!(may_use(mode, 1, 44, &user), expected, "{mode:o} {user:?}");
        }
    }
}
