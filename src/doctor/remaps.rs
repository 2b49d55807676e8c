//! Topic names as rcl would remap them.

/// Rules of the ROS arguments, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remaps(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// The rule holds for this node alone.
    node: Option<String>,
    from: String,
    to: String,
}

/// A node that names are relative to.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// With a slash in front.
    pub namespace: &'a str,
    /// Namespace and name.
    pub node: &'a str,
}

impl Place<'_> {
    /// The full name of a topic, by the rules of ROS 2 names.
    fn resolve(&self, topic: &str) -> String {
        match (topic.strip_prefix('~'), topic.starts_with('/')) {
            (Some(rest), _) => format!("{}{rest}", self.node),
            (None, true) => topic.to_owned(),
            (None, false) => format!("{}/{topic}", self.namespace.trim_end_matches('/')),
        }
    }
}

impl Remaps {
    /// The rules `-r FROM:=TO` and `--remap NODE:FROM:=TO` of the arguments; those of names of nodes are left out.
    pub fn new(arguments: &[String]) -> Self {
        let pairs = arguments.iter().zip(arguments.iter().skip(1));
        let rules = pairs.filter(|(option, _)| ["-r", "--remap"].contains(&option.as_str()));
        Self(rules.filter_map(|(_, rule)| Rule::new(rule)).collect())
    }

    /// What the full name `topic` becomes: the first rule that fits counts, as with rcl.
    pub fn apply(&self, topic: &str, place: Place<'_>) -> String {
        let name = place.node.rsplit('/').next().unwrap_or_default();
        let fits = |rule: &&Rule| {
            rule.node.as_deref().is_none_or(|node| node == name)
                && place.resolve(&rule.from) == topic
        };
        match self.0.iter().find(fits) {
            Some(rule) => place.resolve(&rule.to),
            None => topic.to_owned(),
        }
    }
}

impl Rule {
    fn new(text: &str) -> Option<Self> {
        let (from, to) = text.split_once(":=")?;
        let (node, from) = match from.split_once(':') {
            // A name may say that it is one of a topic.
            Some(("rostopic", name)) => (None, name.trim_start_matches("//")),
            Some((node, from)) => (Some(node.to_owned()), from),
            None => (None, from),
        };
        if from.is_empty() || to.is_empty() || from.starts_with("__") {
            return None;
        }
        Some(Self { node, from: from.to_owned(), to: to.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { namespace: "/left", node: "/left/policy" };

    fn remapped(rules: &[&str], topic: &str) -> String {
        let arguments = rules.iter().flat_map(|rule| ["-r".to_owned(), (*rule).to_owned()]);
        Remaps::new(&arguments.collect::<Vec<_>>()).apply(topic, PLACE)
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        assert_eq!(remapped(&["/a:=/b", "/a:=/c"], "/a"), "/b");
        assert_eq!(remapped(&["/a:=/b", "/b:=/c"], "/a"), "/b");
        assert_eq!(remapped(&["/x:=/b"], "/a"), "/a");
    }

    #[test]
    fn names_are_relative_to_the_node() {
        assert_eq!(
            remapped(&["joint_states:=arm/joints"], "/left/joint_states"),
            "/left/arm/joints"
        );
        assert_eq!(remapped(&["~/in:=/out"], "/left/policy/in"), "/out");
        assert_eq!(remapped(&["joint_states:=/x"], "/joint_states"), "/joint_states");
        assert_eq!(remapped(&["rostopic://joint_states:=/x"], "/left/joint_states"), "/x");
    }

    #[test]
    fn rules_may_be_of_one_node() {
        assert_eq!(remapped(&["policy:/a:=/b"], "/a"), "/b");
        assert_eq!(remapped(&["other:/a:=/b"], "/a"), "/a");
    }

    #[test]
    fn names_of_nodes_are_no_topics() {
        for rule in ["__node:=x", "__ns:=/x", "policy:__node:=x", "nonsense", "a:="] {
            assert_eq!(
                Remaps::new(&["-r".to_owned(), rule.to_owned()]),
                Remaps::default(),
                "{rule}"
            );
        }
    }
}
