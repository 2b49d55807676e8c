//! Processor, memory and disk.

use super::finding::Finding;
use super::system::{Space, System, bytes};

/// A prediction keeps about this part of the checkpoint's file in memory at least: 0.8 was measured for N1.6.
const RESIDENT_PART: f64 = 0.75;
/// Less room than this for logs is little [bytes].
const LOG_ROOM: u64 = 1_000_000_000;

/// Cores and vector instructions.
pub fn processor(system: &System) -> Vec<Finding> {
    let Some(info) = system.read("/proc/cpuinfo") else {
        let fix = "mount /proc to have it checked";
        return vec![Finding::warn("processor", "/proc/cpuinfo cannot be read", fix)];
    };
    vec![cores(&info, quota(system)), vectors(&info)]
}

fn cores(info: &str, quota: Option<f64>) -> Finding {
    let count = info.lines().filter(|line| line.starts_with("processor")).count();
    let usable = quota.map_or(count as f64, |quota| quota.min(count as f64));
    let found = match quota.filter(|quota| *quota < count as f64) {
        Some(quota) => format!("{count} cores, of which the container may use {quota:.1}"),
        None => format!("{count} cores"),
    };
    if usable < 2.0 {
        let fix = "give it 2 cores or more, one for messages and the others for the policy (docker: --cpus)";
        return Finding::warn("cores", found, fix);
    }
    Finding::ok("cores", found)
}

/// Cores that the control group grants.
fn quota(system: &System) -> Option<f64> {
    let text = system.read("/sys/fs/cgroup/cpu.max")?;
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

/// The widest vector instructions that the kernels have code for.
fn vectors(info: &str) -> Finding {
    const SUBJECT: &str = "vector instructions";
    let flags = info.lines().find_map(|line| {
        let (name, flags) = line.split_once(':')?;
        ["flags", "Features"].contains(&name.trim()).then_some(flags)
    });
    let has = |flag: &str| flags.is_some_and(|flags| flags.split_whitespace().any(|f| f == flag));
    if has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") {
        Finding::ok(SUBJECT, "AVX-512")
    } else if has("avx2") && has("fma") {
        Finding::ok(SUBJECT, "AVX2")
    } else if has("asimd") {
        Finding::ok(SUBJECT, "NEON")
    } else {
        let found = "neither AVX2 nor NEON: predictions are many times slower";
        Finding::warn(SUBJECT, found, "use a processor that has them, or lower rate_hz")
    }
}

/// Memory against the size of the checkpoint, bytes.
pub fn memory(system: &System, checkpoint: Option<u64>) -> Finding {
    const SUBJECT: &str = "memory";
    let info = system.read("/proc/meminfo").unwrap_or_default();
    let (Some(total), Some(available)) = (field(&info, "MemTotal:"), field(&info, "MemAvailable:"))
    else {
        let fix = "mount /proc to have it checked";
        return Finding::warn(SUBJECT, "/proc/meminfo cannot be read", fix);
    };
    let limit = system.number("/sys/fs/cgroup/memory.max").unwrap_or(u64::MAX);
    let used = system.number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    let (total, available) = (total.min(limit), available.min(limit.saturating_sub(used)));
    let have = format!("{} of {} available", bytes(available), bytes(total));
    let Some(checkpoint) = checkpoint else { return Finding::ok(SUBJECT, have) };
    let found = format!("{have}, the checkpoint's weights are {}", bytes(checkpoint));
    if (total as f64) < checkpoint as f64 * RESIDENT_PART {
        let found = format!("{found}: every prediction would read them from the disk");
        let fix = "use a machine, or a container limit, with more memory than the weights";
        Finding::fail(SUBJECT, found, fix)
    } else if available < checkpoint {
        let fix = "end other programs, or give the container more memory";
        Finding::warn(SUBJECT, found, fix)
    } else {
        Finding::ok(SUBJECT, found)
    }
}

/// A field of `/proc/meminfo`, bytes.
fn field(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Room for the logs that ROS writes.
pub fn disk(system: &System) -> Finding {
    const SUBJECT: &str = "disk";
    let variable = |name: &str| system.variable(name);
    let folder = match (variable("ROS_LOG_DIR"), variable("ROS_HOME"), variable("HOME")) {
        (Some(folder), _, _) => folder.to_owned(),
        (None, Some(home), _) => format!("{home}/log"),
        (None, None, Some(home)) => format!("{home}/.ros/log"),
        (None, None, None) => {
            let fix = "set HOME, or ROS_LOG_DIR to a folder that can be written";
            return Finding::warn(SUBJECT, "no folder for ROS logs: HOME is not set", fix);
        }
    };
    // ROS makes the folder when it is missing.
    let existing = std::path::Path::new(&folder).ancestors().find(|path| system.exists(path));
    let space = existing.and_then(|path| system.space(path));
    log_room(&folder, space)
}

fn log_room(folder: &str, space: Option<Space>) -> Finding {
    const SUBJECT: &str = "disk";
    match space {
        None => {
            let fix = "set ROS_LOG_DIR to a folder that can be written";
            Finding::warn(SUBJECT, format!("the folder for logs, {folder}, cannot be read"), fix)
        }
        Some(Space { free, .. }) if free < LOG_ROOM => {
            let found = format!("{} free for logs in {folder}", bytes(free));
            Finding::warn(SUBJECT, found, "remove old logs, or set ROS_LOG_DIR to another disk")
        }
        Some(Space { free, .. }) => {
            Finding::ok(SUBJECT, format!("{} free for logs in {folder}", bytes(free)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    const TWO_CORES: &str =
        "processor\t: 0\nflags\t\t: fpu avx2 fma\nprocessor\t: 1\nflags\t\t: fpu avx2 fma\n";
    const EIGHT_GB: &str =
        "MemTotal:        8000000 kB\nMemFree: 1 kB\nMemAvailable:    6000000 kB\n";

    fn levels(findings: &[Finding]) -> Vec<Level> {
        findings.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn cores_and_vector_instructions() {
        let fake = Fake::new(&[("/proc/cpuinfo", TWO_CORES)], &[]);
        let findings = processor(&fake.system);
        assert_eq!(levels(&findings), [Level::Ok, Level::Ok]);
        assert_eq!(findings[1].found, "AVX2");

        let files = [("/proc/cpuinfo", TWO_CORES), ("/sys/fs/cgroup/cpu.max", "150000 100000")];
        let [cores, _] = &processor(&Fake::new(&files, &[]).system)[..] else { panic!("two") };
        assert_eq!(cores.level, Level::Warn);
        assert!(cores.found.contains("2 cores, of which the container may use 1.5"), "{cores}");

        let files = [("/proc/cpuinfo", TWO_CORES), ("/sys/fs/cgroup/cpu.max", "max 100000")];
        assert_eq!(levels(&processor(&Fake::new(&files, &[]).system)), [Level::Ok, Level::Ok]);

        let arm = "processor\t: 0\nFeatures\t: fp asimd\nprocessor\t: 1\n";
        assert_eq!(processor(&Fake::new(&[("/proc/cpuinfo", arm)], &[]).system)[1].found, "NEON");
        let old = "processor\t: 0\nflags\t: fpu sse2 avx2\n";
        let findings = processor(&Fake::new(&[("/proc/cpuinfo", old)], &[]).system);
        assert_eq!(levels(&findings), [Level::Warn, Level::Warn]);
        assert_eq!(levels(&processor(&Fake::new(&[], &[]).system)), [Level::Warn]);
    }

    #[test]
    fn memory_against_the_checkpoint() {
        let fake = Fake::new(&[("/proc/meminfo", EIGHT_GB)], &[]);
        for (checkpoint, level) in [
            (None, Level::Ok),
            (Some(6_000_000_000), Level::Ok),
            (Some(6_600_000_000), Level::Warn),
            (Some(20_000_000_000), Level::Fail),
        ] {
            let finding = memory(&fake.system, checkpoint);
            assert_eq!(finding.level, level, "{finding}");
        }
        assert_eq!(memory(&Fake::new(&[], &[]).system, Some(1)).level, Level::Warn);
    }

    #[test]
    fn a_container_may_have_less_memory_than_the_machine() {
        let files = [("/proc/meminfo", EIGHT_GB), ("/sys/fs/cgroup/memory.max", "4000000000")];
        let finding = memory(&Fake::new(&files, &[]).system, Some(6_600_000_000));
        assert_eq!(finding.level, Level::Fail);
        assert!(finding.found.starts_with("4.0 GB of 4.0 GB available"), "{finding}");
        let files = [("/proc/meminfo", EIGHT_GB), ("/sys/fs/cgroup/memory.max", "max")];
        assert_eq!(memory(&Fake::new(&files, &[]).system, Some(6_000_000_000)).level, Level::Ok);
    }

    #[test]
    fn room_for_logs() {
        assert_eq!(log_room("/log", Some(Space { total: 1, free: 0 })).level, Level::Warn);
        let much = Some(Space { total: 1 << 40, free: 1 << 39 });
        assert_eq!(log_room("/log", much).level, Level::Ok);
        assert_eq!(log_room("/log", None).level, Level::Warn);
        let fake = Fake::new(&[("/home/user/x", "")], &[("HOME", "/home/user")]);
        assert!(disk(&fake.system).found.ends_with("in /home/user/.ros/log"));
        assert!(disk(&Fake::new(&[], &[]).system).found.contains("HOME is not set"));
    }
}
