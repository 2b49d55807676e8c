//! Tenstorrent cards: device files, huge pages and driver. This build computes on the CPU alone.

use std::os::unix::fs::MetadataExt;

use super::finding::Finding;
use super::system::{System, User};

const DEVICES: &str = "/dev/tenstorrent";
const DRIVER_VERSION: &str = "/sys/module/tenstorrent/version";
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
const HUGE_PAGE_MOUNT: &str = "/dev/hugepages-1G";
/// Read and write.
const READ_WRITE: u32 = 0o6;

pub fn checks(system: &System) -> Vec<Finding> {
    if !system.exists(DEVICES) {
        return vec![Finding::ok("Tenstorrent", "no card support in this build")];
    }
    let mut findings = vec![Finding::ok(
        "Tenstorrent",
        format!("{DEVICES} is there, but no card support in this build: the CPU computes"),
    )];
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
        checks(&Fake::new(files, &[]).system).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn without_a_card_one_line() {
        let findings = checks(&Fake::new(&[], &[]).system);
        assert_eq!(findings, [Finding::ok("Tenstorrent", "no card support in this build")]);
    }

    #[test]
    fn case_86_each_part_has_its_line() {
        let device = ("/dev/tenstorrent/0", "");
        let version = (DRIVER_VERSION, "2.3.0\n");
        let pages = (HUGE_PAGES, "2\n");
        let (ok, warn) = (Level::Ok, Level::Warn);
        assert_eq!(levels(&[device, version, pages, MOUNTS]), [ok, ok, ok, ok]);
        assert_eq!(levels(&[device, pages, MOUNTS]), [ok, warn, ok, ok]);
        assert_eq!(levels(&[device, version, MOUNTS]), [ok, ok, ok, warn]);
        assert_eq!(levels(&[device, version, pages]), [ok, ok, ok, warn]);
        assert_eq!(
            levels(&[("/dev/tenstorrent/by-id/x", ""), version, pages, MOUNTS]),
            [ok, ok, warn, ok]
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
