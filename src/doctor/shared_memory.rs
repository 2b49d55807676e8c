//! `/dev/shm`: room for the segments of Fast DDS, and whose segments are there.

use std::os::unix::fs::MetadataExt;

use super::finding::Finding;
use super::profile::{Profile, shipped_segment};
use super::system::{Space, System, bytes};

const FOLDER: &str = "/dev/shm";
/// How the files of Fast DDS 2 and 3 begin.
const PREFIXES: [&str; 2] = ["fastrtps_", "fastdds_"];

/// Room for the segments of so many drivers of raw cameras, and other users' segments.
pub fn checks(system: &System, profile: Profile, raw_cameras: Option<usize>) -> Vec<Finding> {
    let mut findings = vec![room(system.space(FOLDER), profile, raw_cameras)];
    findings.extend(users(system));
    findings
}

fn room(space: Option<Space>, profile: Profile, raw_cameras: Option<usize>) -> Finding {
    const SUBJECT: &str = "shared memory";
    const ENLARGE: &str =
        "sudo mount -o remount,size=512M /dev/shm; docker: --shm-size 512m, or --ipc host";
    let Some(Space { total, free }) = space else {
        let found = "/dev/shm is missing: images go over UDP, where large ones are lost";
        return Finding::warn(SUBJECT, found, "mount a tmpfs at /dev/shm");
    };
    let have = format!("{} of {} free in /dev/shm", bytes(free), bytes(total));
    let segment = profile.segment.unwrap_or_else(shipped_segment);
    let needed = segment.saturating_mul(raw_cameras.unwrap_or(1) as u64);
    if profile.set && profile.segment.is_some_and(|segment| free < segment) {
        let found = format!("{have}, the segment of the Fast DDS profile needs {}", bytes(segment));
        Finding::fail(SUBJECT, found, ENLARGE)
    } else if free < needed {
        let found = format!("{have}, the drivers of raw cameras need {}", bytes(needed));
        Finding::warn(SUBJECT, found, ENLARGE)
    } else {
        Finding::ok(SUBJECT, have)
    }
}

/// Peers that run as somebody else, or on the other side of a container's wall: topics are seen, and no data comes.
fn users(system: &System) -> Option<Finding> {
    const SUBJECT: &str = "user";
    let own = system.user()?.uid;
    let segments = system.names(FOLDER).into_iter().filter(|name| {
        PREFIXES.iter().any(|prefix| name.trim_start_matches("sem.").starts_with(prefix))
    });
    let owners = segments.filter_map(|name| {
        let path = system.path(FOLDER).join(name);
        Some(std::fs::metadata(path).ok()?.uid())
    });
    let mut others: Vec<u32> = owners.filter(|owner| *owner != own).collect();
    others.sort_unstable();
    others.dedup();
    let container = system.in_container();
    if let Some(other) = others.first() {
        let found = format!(
            "this is user {own}, and user {other} has Fast DDS segments in /dev/shm: between the two, topics are seen \
             and no data comes"
        );
        let fix = format!("run both as the same user (docker: --user {other} --ipc host)");
        return Some(Finding::warn(SUBJECT, found, fix));
    }
    if container && own == 0 {
        let found = "root in a container: from drivers outside, topics are seen and no data comes";
        let fix = "docker: --ipc host --network host --user with the uid of the drivers; or run them in here too";
        return Some(Finding::warn(SUBJECT, found, fix));
    }
    Some(Finding::ok(SUBJECT, format!("user {own}, and no other user's Fast DDS segments")))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    const MB: u64 = 1 << 20;

    fn level(free: u64, profile: Profile, raw_cameras: Option<usize>) -> Level {
        room(Some(Space { total: 64 * MB, free }), profile, raw_cameras).level
    }

    #[test]
    fn room_for_the_segments() {
        let none = Profile::default();
        let set = Profile { set: true, segment: Some(48 * MB) };
        for (free, profile, cameras, expected) in [
            (64 * MB, none, Some(2), Level::Ok),
            (63 * MB, none, Some(2), Level::Warn),
            (1, none, Some(0), Level::Ok),
            (31 * MB, none, None, Level::Warn),
            (48 * MB, set, Some(1), Level::Ok),
            (47 * MB, set, Some(0), Level::Fail),
            (1, Profile { set: true, segment: None }, Some(0), Level::Ok),
        ] {
            assert_eq!(level(free, profile, cameras), expected, "{free} {profile:?} {cameras:?}");
        }
        assert_eq!(room(None, none, Some(0)).level, Level::Warn);
    }

    /// A machine where this process is `uid`; its files really are of whoever runs the test.
    fn machine(uid: u32, files: &[&str]) -> Fake {
        let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        let mut all = vec![("/proc/self/status", status.as_str())];
        all.extend(files.iter().map(|&file| (file, "")));
        Fake::new(&all, &[])
    }

    fn me() -> u32 {
        System::here().user().expect("/proc/self/status").uid
    }

    #[test]
    fn case_63_segments_of_another_user() {
        for file in ["/dev/shm/fastrtps_0123", "/dev/shm/sem.fastdds_port7400_mutex"] {
            let finding = users(&machine(me() + 1, &[file]).system).expect("a finding");
            assert_eq!(finding.level, Level::Warn);
            assert!(
                finding.found.contains(&format!("user {} has Fast DDS segments", me())),
                "{finding}"
            );
            assert_eq!(users(&machine(me(), &[file]).system).expect("a finding").level, Level::Ok);
        }
        let finding = users(&machine(me() + 1, &["/dev/shm/pulse"]).system).expect("a finding");
        assert_eq!(finding.level, Level::Ok);
    }

    #[test]
    fn case_63_root_in_a_container() {
        let finding = users(&machine(0, &["/.dockerenv"]).system).expect("a finding");
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.fix.expect("fix").contains("--ipc host"));
        assert_eq!(
            users(&machine(5, &["/.dockerenv"]).system).expect("a finding").level,
            Level::Ok
        );
        assert_eq!(users(&Fake::new(&[], &[]).system), None);
    }
}
