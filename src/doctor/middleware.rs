//! ROS 2's environment variables: which middleware, which domain, which peers.

use super::finding::Finding;
use super::system::System;

/// Highest domain whose ports exist.
const MAX_DOMAIN: u32 = 232;
/// Domains whose ports lie among those that Linux hands out to other programs.
const RISKY_DOMAINS: std::ops::RangeInclusive<u32> = 102..=214;

pub fn checks(system: &System) -> Vec<Finding> {
    vec![implementation(system), domain(system), discovery(system)]
}

/// Whether the middleware is Fast DDS, by its name or as the default.
pub fn is_fast_dds(system: &System) -> bool {
    system.variable("RMW_IMPLEMENTATION").is_none_or(|name| name.starts_with("rmw_fastrtps"))
}

fn implementation(system: &System) -> Finding {
    const SUBJECT: &str = "middleware";
    let Some(name) = system.variable("RMW_IMPLEMENTATION") else {
        return Finding::ok(SUBJECT, "RMW_IMPLEMENTATION is not set: the default of the ROS 2");
    };
    let libraries = system.variable("LD_LIBRARY_PATH").unwrap_or_default().split(':');
    let prefixes = system.variable("AMENT_PREFIX_PATH").unwrap_or_default().split(':');
    let folders =
        libraries.map(str::to_owned).chain(prefixes.map(|prefix| format!("{prefix}/lib")));
    let found = folders
        .filter(|folder| folder.starts_with('/'))
        .any(|folder| system.exists(format!("{folder}/lib{name}.so")));
    if !found {
        let text = format!(
            "RMW_IMPLEMENTATION is {name}, and no folder of LD_LIBRARY_PATH has lib{name}.so"
        );
        let fix = "source the ROS 2 setup file, install the package of that name, or unset RMW_IMPLEMENTATION";
        return Finding::warn(SUBJECT, text, fix);
    }
    if is_fast_dds(system) {
        return Finding::ok(SUBJECT, name);
    }
    let text = format!(
        "{name}; what is said here about Fast DDS profiles and segments does not hold for it"
    );
    Finding::ok(SUBJECT, text)
}

fn domain(system: &System) -> Finding {
    const SUBJECT: &str = "domain";
    let Some(text) = system.variable("ROS_DOMAIN_ID") else {
        return Finding::ok(SUBJECT, "ROS_DOMAIN_ID is not set: domain 0, which everybody has");
    };
    match text.parse::<u32>() {
        Ok(number) if RISKY_DOMAINS.contains(&number) => {
            let found =
                format!("ROS_DOMAIN_ID is {number}: its ports may be taken by other programs");
            Finding::warn(SUBJECT, found, "use 0 to 101 everywhere")
        }
        Ok(number) if number <= MAX_DOMAIN => {
            Finding::ok(SUBJECT, format!("ROS_DOMAIN_ID is {number}"))
        }
        _ => {
            let found = format!("ROS_DOMAIN_ID is '{text}', not a number from 0 to {MAX_DOMAIN}");
            Finding::fail(
                SUBJECT,
                found,
                "use 0 to 101, the same for all that are to hear each other",
            )
        }
    }
}

fn discovery(system: &System) -> Finding {
    const SUBJECT: &str = "discovery";
    const FIX: &str = "unset it, or set ROS_AUTOMATIC_DISCOVERY_RANGE to SUBNET, on all machines";
    let range = system.variable("ROS_AUTOMATIC_DISCOVERY_RANGE");
    if let Some(value) = system.variable("ROS_LOCALHOST_ONLY").filter(|value| *value == "1") {
        let found = format!("ROS_LOCALHOST_ONLY is {value}: other machines are not heard");
        let found = match range {
            Some(range) => {
                format!("{found}, and ROS_AUTOMATIC_DISCOVERY_RANGE ({range}) is ignored")
            }
            None => found,
        };
        return Finding::warn(SUBJECT, found, FIX);
    }
    match range {
        None | Some("SUBNET" | "SYSTEM_DEFAULT") => {
            Finding::ok(SUBJECT, format!("range {}", range.unwrap_or("SUBNET, the default")))
        }
        Some("LOCALHOST") => {
            Finding::ok(SUBJECT, "range LOCALHOST: peers on this machine, and ROS_STATIC_PEERS")
        }
        Some("OFF") => {
            let found = "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF: nobody is heard, on no machine";
            Finding::fail(SUBJECT, found, FIX)
        }
        Some(other) => {
            let found = format!(
                "ROS_AUTOMATIC_DISCOVERY_RANGE is '{other}', which ROS 2 does not know and takes for LOCALHOST"
            );
            Finding::warn(SUBJECT, found, "set it to SUBNET, LOCALHOST, OFF or SYSTEM_DEFAULT")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    fn level(check: fn(&System) -> Finding, variables: &[(&str, &str)]) -> Level {
        check(&Fake::new(&[("/opt/lib/librmw_cyclonedds_cpp.so", "")], variables).system).level
    }

    #[test]
    fn the_middleware_has_to_be_installed() {
        let cyclone = ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp");
        assert_eq!(level(implementation, &[]), Level::Ok);
        assert_eq!(
            level(implementation, &[cyclone, ("LD_LIBRARY_PATH", "/x:/opt/lib")]),
            Level::Ok
        );
        assert_eq!(level(implementation, &[cyclone, ("AMENT_PREFIX_PATH", "/opt")]), Level::Ok);
        assert_eq!(level(implementation, &[cyclone, ("LD_LIBRARY_PATH", "/x")]), Level::Warn);
        assert_eq!(level(implementation, &[("RMW_IMPLEMENTATION", "rmw_typo")]), Level::Warn);
        let fast = |variables: &[(&str, &str)]| is_fast_dds(&Fake::new(&[], variables).system);
        assert!(
            fast(&[]) && fast(&[("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")]) && !fast(&[cyclone])
        );
    }

    #[test]
    fn domains() {
        for (text, expected) in [
            ("", Level::Ok),
            ("0", Level::Ok),
            ("101", Level::Ok),
            ("102", Level::Warn),
            ("214", Level::Warn),
            ("232", Level::Ok),
            ("233", Level::Fail),
            ("-1", Level::Fail),
            ("seven", Level::Fail),
        ] {
            assert_eq!(level(domain, &[("ROS_DOMAIN_ID", text)]), expected, "{text}");
        }
    }

    #[test]
    fn peers_that_are_not_heard() {
        for (range, expected) in [
            ("", Level::Ok),
            ("SUBNET", Level::Ok),
            ("LOCALHOST", Level::Ok),
            ("OFF", Level::Fail),
            ("localhost", Level::Warn),
        ] {
            let variables = [("ROS_AUTOMATIC_DISCOVERY_RANGE", range)];
            assert_eq!(level(discovery, &variables), expected, "{range}");
        }
        assert_eq!(level(discovery, &[("ROS_LOCALHOST_ONLY", "0")]), Level::Ok);
        let both = [("ROS_LOCALHOST_ONLY", "1"), ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")];
        let finding = discovery(&Fake::new(&[], &both).system);
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.found.contains("(SUBNET) is ignored"), "{finding}");
    }
}
