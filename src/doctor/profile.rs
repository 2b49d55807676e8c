//! The Fast DDS profile: is there one, is it read, and how large is its shared-memory segment.

use std::path::Path;

use super::distributions;
use super::finding::Finding;
use super::system::System;

/// The profile that the package brings for camera drivers.
const SHIPPED: &str = include_str!("../../config/fastdds_large_images.xml");
/// What Fast DDS 2 reads.
const VARIABLE_2: &str = "FASTRTPS_DEFAULT_PROFILES_FILE";
/// What Fast DDS 3 reads.
const VARIABLE_3: &str = "FASTDDS_DEFAULT_PROFILES_FILE";
const SUBJECT: &str = "Fast DDS profile";

/// The profile that is in force here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Whether an environment variable names one that can be read.
    pub set: bool,
    /// Its shared-memory segment, bytes; `None` if it has no such transport.
    pub segment: Option<u64>,
}

/// Segment of the profile in `config/`, bytes.
pub fn shipped_segment() -> u64 {
    segment(SHIPPED).ok().flatten().unwrap_or(0)
}

/// The profile that the environment names.
pub fn check(system: &System) -> (Finding, Profile) {
    let none = Profile::default();
    let (name, path) = match (system.variable(VARIABLE_2), system.variable(VARIABLE_3)) {
        (Some(path), _) => (VARIABLE_2, path),
        (None, Some(path)) if reads_the_old_variable(system) => {
            let found =
                format!("{VARIABLE_3} is {path}, but the Fast DDS of this ROS 2 does not read it");
            return (Finding::warn(SUBJECT, found, format!("set {VARIABLE_2} instead")), none);
        }
        (None, Some(path)) => (VARIABLE_3, path),
        (None, None) => {
            let found = "none set, as is right for the node; drivers of raw cameras want config/fastdds_large_images.xml";
            return (Finding::ok(SUBJECT, found), none);
        }
    };
    let path = Path::new(path);
    let text = match std::fs::read_to_string(system.path(path)) {
        Ok(text) => text,
        Err(error) => {
            let found = format!("{name} is {}: {error}", path.display());
            let fix = format!("give the absolute path of a file that can be read, or unset {name}");
            return (Finding::fail(SUBJECT, found, fix), none);
        }
    };
    match segment(&text) {
        Err(error) => {
            let found = format!("{} is no XML that Fast DDS can read: {error}", path.display());
            let fix =
                format!("mend it, or set {name} to a copy of config/fastdds_large_images.xml");
            (Finding::fail(SUBJECT, found, fix), none)
        }
        Ok(segment) => {
            let found = match segment {
                Some(size) => format!("{}, shared-memory segment of {size} bytes", path.display()),
                None => format!("{}, no shared-memory segment in it", path.display()),
            };
            (Finding::ok(SUBJECT, found), Profile { set: true, segment })
        }
    }
}

fn reads_the_old_variable(system: &System) -> bool {
    system.variable("ROS_DISTRO").and_then(distributions::fast_dds) == Some(2)
}

/// Size of the largest shared-memory segment in a profile, bytes.
fn segment(text: &str) -> Result<Option<u64>, String> {
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if !["dds", "profiles"].contains(&root.tag_name().name()) {
        return Err(format!("its root is <{}>, not <dds> or <profiles>", root.tag_name().name()));
    }
    let mut largest = None;
    // By the name alone: profiles are written with and without a namespace.
    for node in root.descendants().filter(|node| node.tag_name().name() == "segment_size") {
        let size = node.text().unwrap_or_default().trim();
        let size =
            size.parse::<u64>().map_err(|_| format!("segment_size '{size}' is no number"))?;
        largest = largest.max(Some(size));
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;

    fn with(text: &str, variables: &[(&str, &str)]) -> (Finding, Profile) {
        check(&Fake::new(&[("/etc/profile.xml", text)], variables).system)
    }

    #[test]
    fn the_shipped_profile_can_be_read() {
        assert_eq!(shipped_segment(), 32 << 20);
        let (finding, profile) = with(SHIPPED, &[(VARIABLE_2, "/etc/profile.xml")]);
        assert_eq!(finding.level, Level::Ok, "{finding}");
        assert_eq!(profile, Profile { set: true, segment: Some(32 << 20) });
    }

    #[test]
    fn none_is_needed() {
        let (finding, profile) = with("", &[]);
        assert_eq!((finding.level, profile), (Level::Ok, Profile::default()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, path, sentence) in [
            ("", "/no/such.xml", "No such file"),
            ("<dds><profiles></dds>", "/etc/profile.xml", "no XML that Fast DDS can read"),
            ("<html/>", "/etc/profile.xml", "its root is <html>"),
            (
                "<dds><segment_size>32 MB</segment_size></dds>",
                "/etc/profile.xml",
                "'32 MB' is no number",
            ),
        ] {
            let (finding, profile) = with(text, &[(VARIABLE_2, path)]);
            assert_eq!((finding.level, profile.set), (Level::Fail, false), "{finding}");
            assert!(finding.to_string().contains(sentence), "{finding}");
        }
    }

    #[test]
    fn the_variable_has_to_be_that_of_the_distribution() {
        let set = (VARIABLE_3, "/etc/profile.xml");
        let (finding, profile) = with("<dds/>", &[set, ("ROS_DISTRO", "jazzy")]);
        assert_eq!((finding.level, profile.set), (Level::Warn, false));
        assert_eq!(finding.fix.as_deref(), Some("set FASTRTPS_DEFAULT_PROFILES_FILE instead"));
        let (finding, profile) = with("<dds/>", &[set, ("ROS_DISTRO", "kilted")]);
        assert_eq!((finding.level, profile), (Level::Ok, Profile { set: true, segment: None }));
    }
}
