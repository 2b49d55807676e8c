//! The table as text for users.

use std::fmt::Write;

use super::table::{Entry, Scope, TABLE};
use super::value::Range;

/// Width of comment lines in the configuration file.
const LINE: usize = 116;

/// Every parameter with its type, default, range and description.
pub fn help() -> String {
    let mut text = String::new();
    for entry in TABLE {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {}\n      {}\n      {}",
            entry.name,
            properties(entry),
            entry.description
        );
    }
    text
}

/// Type, default, range, and whether it can be changed.
fn properties(entry: &Entry) -> String {
    let mut words =
        format!("{}, default {}", entry.default.kind().name(), entry.default.value("<key>"));
    if entry.range != Range::Any {
        let _ = write!(words, ", {}", entry.range);
    }
    words.push_str(if entry.read_only {
        ", fixed at start"
    } else {
        ", can be changed at run time"
    });
    words
}

/// A parameter file with every parameter at its default and a comment on each.
pub fn default_yaml() -> String {
    let mut text = String::from(
        "# Every parameter of the node at its default. Written by `gr00t_blackhole node --default-config`.\n\
         # Use: gr00t_blackhole node --ros-args --params-file FILE\n\
         /**:\n  ros__parameters:\n",
    );
    for entry in TABLE.iter().filter(|entry| entry.scope == Scope::Node) {
        comment(&mut text, entry);
        let _ = writeln!(text, "    {}: {}", entry.name, entry.default.value(""));
    }
    for (scope, title) in [
        (
            Scope::Camera,
            "Once for every camera of the robot; <key> is the checkpoint's camera key.",
        ),
        (Scope::State, "Once for every state group; <key> is the checkpoint's group name."),
        (Scope::Action, "Once for every action group; <key> is the checkpoint's group name."),
        (
            Scope::Subscription,
            "Once for every topic that the node subscribes to; <key> is its full name after remapping, such as /tf.",
        ),
        (
            Scope::Publisher,
            "Once for every topic of chunks, trajectories and poses; <key> is its full name after remapping.",
        ),
    ] {
        let _ = writeln!(text, "\n    # --- {title}");
        for entry in TABLE.iter().filter(|entry| entry.scope == scope) {
            comment(&mut text, entry);
            let _ = writeln!(text, "    # {}: {}", entry.name, entry.default.value("<key>"));
        }
    }
    text
}

/// The description and the properties, wrapped.
fn comment(text: &mut String, entry: &Entry) {
    text.push('\n');
    let words = format!("{} ({})", entry.description, properties(entry));
    let mut line = String::from("    #");
    for word in words.split(' ') {
        if line.len() + 1 + word.len() > LINE {
            let _ = writeln!(text, "{line}");
            line = String::from("    #");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/default.yaml");

    #[test]
    fn the_default_configuration_is_the_table() {
        let file = std::fs::read_to_string(FILE).expect("config/default.yaml");
        assert_eq!(
            file,
            default_yaml(),
            "write it anew: gr00t_blackhole node --default-config > config/default.yaml"
        );
    }

    #[test]
    fn help_names_every_parameter_with_its_range() {
        let help = help();
        for entry in TABLE {
            assert!(
                help.contains(entry.name) && help.contains(entry.description),
                "{}",
                entry.name
            );
        }
        assert!(help.contains("double, default 2.0, 0.0 to 200.0, fixed at start"), "{help}");
    }

    #[test]
    fn lines_are_short() {
        assert!(default_yaml().lines().all(|line| line.len() <= LINE));
    }
}
