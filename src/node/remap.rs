//! The names that topics get from `--ros-args --remap FROM:=TO`.
//!
//! rcl applies these rules itself where a topic is created, but the graph is asked by the final name, and r2r has no way
//! to ask rcl for it. rcl has checked the rules before this node reads them.

/// The remapping rules of a process, and the node that they are seen from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remaps {
    /// Full names, in the order of the arguments.
    rules: Vec<(String, String)>,
    namespace: String,
    node: String,
}

impl Remaps {
    /// The rules in `arguments` for the node of this full name.
    pub fn new(arguments: &[String], namespace: &str, node: &str) -> Self {
        let mut remaps =
            Self { rules: Vec::new(), namespace: namespace.to_owned(), node: node.to_owned() };
        let own_name = node.rsplit('/').next().unwrap_or_default();
        let texts = ros_arguments(arguments).filter_map(|(option, value)| {
            ["-r", "--remap"].contains(&option).then_some(value).flatten()
        });
        for text in texts {
            let Some((from, to)) = topic_rule(text, own_name) else { continue };
            let rule = (remaps.resolved(from), remaps.resolved(to));
            remaps.rules.push(rule);
        }
        remaps
    }

    /// The full name of a topic before any remapping, by the rules of ROS 2 names.
    pub fn resolved(&self, topic: &str) -> String {
        let own_name = self.node.rsplit('/').next().unwrap_or_default();
        let mut topic = topic.replace("{node}", own_name);
        for placeholder in ["{ns}", "{namespace}"] {
            topic = topic.replace(placeholder, &self.namespace);
        }
        match (topic.strip_prefix('~'), topic.starts_with('/')) {
            (Some(rest), _) => format!("{}{rest}", self.node),
            (None, true) => topic,
            (None, false) => format!("{}/{topic}", self.namespace.trim_end_matches('/')),
        }
    }

    /// The name under which a topic is on the graph: the first rule that fits its full name decides.
    pub fn remapped(&self, topic: &str) -> String {
        let full = self.resolved(topic);
        let rule = self.rules.iter().find(|(from, _)| *from == full);
        rule.map_or(full, |(_, to)| to.clone())
    }
}

/// Options after `--ros-args`, each with the argument that follows it.
pub fn ros_arguments(arguments: &[String]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut of_ros = false;
    arguments.iter().enumerate().filter_map(move |(place, argument)| {
        match argument.as_str() {
            "--ros-args" => of_ros = true,
            "--" => of_ros = false,
            option if of_ros => {
                return Some((option, arguments.get(place + 1).map(String::as_str)));
            }
            _ => {}
        }
        None
    })
}

/// What is wrong with the parameter files that the arguments name, if one cannot be read; rcl does not say which.
pub fn unreadable_params_file(arguments: &[String]) -> Option<String> {
    let files = ros_arguments(arguments)
        .filter_map(|(option, value)| (option == "--params-file").then_some(value).flatten());
    let mut failures = files.filter_map(|file| Some((file, std::fs::read(file).err()?)));
    let (file, error) = failures.next()?;
    Some(format!("the parameter file '{file}' cannot be read: {error}"))
}

/// Both sides of `[NODE:][rostopic://]FROM:=TO`; `None` for a rule about something else or for another node.
fn topic_rule<'a>(text: &'a str, node: &str) -> Option<(&'a str, &'a str)> {
    let (mut from, to) = text.split_once(":=")?;
    if let Some((of, rest)) = from.split_once(':')
        && !rest.starts_with("//")
    {
        if of != node {
            return None;
        }
        from = rest;
    }
    from = from.strip_prefix("rostopic://").unwrap_or(from);
    let of_the_node = ["__node", "__name", "__ns"].contains(&from);
    (!of_the_node && !from.starts_with("rosservice://")).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let there = folder.path().join("robot.yaml").display().to_string();
        std::fs::write(&there, "").expect("write");
        let gone = folder.path().join("other.yaml").display().to_string();
        let problem = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            unreadable_params_file(&arguments)
        };
        assert_eq!(problem(&["node", "--params-file", &gone]), None, "no argument of ROS");
        assert_eq!(problem(&["--ros-args", "--params-file", &there]), None);
        let files = ["--ros-args", "--params-file", &there, "--params-file", &gone];
        let text = problem(&files).expect("the second");
        assert!(text.contains(&format!("'{gone}' cannot be read: No such file")), "{text}");
        let text = problem(&["--ros-args", "--params-file", "/"]).expect("a folder");
        assert!(text.contains("'/' cannot be read: Is a directory"), "{text}");
    }

    fn remaps(arguments: &[&str]) -> Remaps {
        let arguments: Vec<String> =
            arguments.iter().map(|&argument| argument.to_owned()).collect();
        Remaps::new(&arguments, "/left", "/left/policy")
    }

    #[test]
    fn names_are_resolved_before_they_are_compared() {
        let given = ["--ros-args", "-r", "image:=/front/image", "--remap", "~/chunk:=chunk"];
        let remaps = remaps(&given);
        assert_eq!(remaps.remapped("/left/image"), "/front/image");
        assert_eq!(remaps.remapped("image"), "/front/image");
        assert_eq!(remaps.remapped("/image"), "/image");
        assert_eq!(remaps.remapped("~/chunk"), "/left/chunk");
        assert_eq!(remaps.remapped("/left/policy/chunk"), "/left/chunk");
        assert_eq!(remaps.remapped("{node}/x"), "/left/policy/x");
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_is_applied_once() {
        let remaps = remaps(&["--ros-args", "-r", "/a:=/b", "-r", "/b:=/c", "-r", "/a:=/d"]);
        assert_eq!(remaps.remapped("/a"), "/b");
        assert_eq!(remaps.remapped("/b"), "/c");
    }

    #[test]
    fn rules_for_others_are_passed_over() {
        let remaps = remaps(&[
            "-r",
            "/x:=/outside",
            "--ros-args",
            "-r",
            "other:/x:=/other",
            "-r",
            "rosservice:///x:=/service",
            "-r",
            "__ns:=/left",
            "-r",
            "policy:rostopic:///x:=/y",
            "--",
            "-r",
            "/z:=/outside",
        ]);
        assert_eq!(remaps.remapped("/x"), "/y");
        assert_eq!(remaps.remapped("/z"), "/z");
    }

    #[test]
    fn the_root_namespace_adds_no_slash() {
        let remaps = Remaps::new(&[], "/", "/policy");
        assert_eq!(remaps.remapped("joint_states"), "/joint_states");
        assert_eq!(remaps.remapped("~/x"), "/policy/x");
    }
}
