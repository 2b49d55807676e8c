//! Parameter files and `-p NAME:=VALUE` without ROS: what rcl makes of them, for tools that read a robot's own file.
//!
//! Types are those of rcl's parser: a plain `yes`, `on` or `true` is a boolean, `7` an integer, `7.0` a double; quotes
//! make a text of anything. What rcl refuses (aliases, mixed lists) is refused here too.

use std::fs;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::value::Value;

/// A larger file holds no parameters.
const MAX_BYTES: u64 = 1 << 20;
/// Deeper than any parameter's name.
const MAX_DEPTH: usize = 32;
/// Below the node's name stand its parameters.
const PARAMETERS: &str = "ros__parameters";

/// Why a parameter file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read the parameter file {}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{} has {bytes} bytes; parameter files of up to {MAX_BYTES} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{}: {problem}", path.display())]
    Yaml { path: PathBuf, problem: String },
    #[error(
        "{} has no parameters for node '{node}' (it has some for {}); name the node with --node, or write /** in its place",
        path.display(),
        if nodes.is_empty() { "none".to_owned() } else { nodes.join(", ") }
    )]
    OtherNodes { path: PathBuf, node: String, nodes: Vec<String> },
    #[error("'{0}' is no parameter; write NAME:=VALUE")]
    Assignment(String),
    #[error("'{text}': {problem}")]
    Value { text: String, problem: String },
}

/// The parameters that a file has for the node of this full name, such as `/left/policy`, in the order of the file: where
/// a name stands twice, the later one counts.
///
/// # Errors
/// A file that cannot be read, is no YAML as rcl takes it, or has nothing for this node.
pub fn read(path: &Path, node: &str) -> Result<Vec<(String, Value)>, FileError> {
    let io_error = |error| FileError::Io { path: path.into(), error };
    let bytes = fs::metadata(path).map_err(io_error)?.len();
    if bytes > MAX_BYTES {
        return Err(FileError::TooLarge { path: path.into(), bytes });
    }
    let text = fs::read_to_string(path).map_err(io_error)?;
    let yaml_error = |problem| FileError::Yaml { path: path.into(), problem };
    let entries = entries(&text).map_err(yaml_error)?;
    let mut nodes: Vec<String> = Vec::new();
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut is_ours = false;
    for Entry { node: of, parameter, value } in entries {
        let matches = matches(&of, node);
        is_ours |= matches;
        if !nodes.contains(&of) {
            nodes.push(of);
        }
        let Some((name, value)) = parameter.zip(value).filter(|_| matches) else { continue };
        found.retain(|(known, _)| *known != name);
        found.push((name, value));
    }
    if !is_ours {
        return Err(FileError::OtherNodes { path: path.into(), node: node.to_owned(), nodes });
    }
    Ok(found)
}

/// `NAME:=VALUE`, the value as in a file.
///
/// # Errors
/// No `:=`, or a value that is none.
pub fn assignment(text: &str) -> Result<(String, Value), FileError> {
    let (name, value) =
        text.split_once(":=").ok_or_else(|| FileError::Assignment(text.to_owned()))?;
    // A node's name in front, as rcl takes it, says which node is meant; there is only one here.
    let name = name.rsplit(':').next().unwrap_or(name).trim();
    if name.is_empty() {
        return Err(FileError::Assignment(text.to_owned()));
    }
    let error = |problem| FileError::Value { text: text.to_owned(), problem };
    let node = tree(value).map_err(error)?;
    let value = node.and_then(|node| match node {
        Node::Value(value) => Some(value),
        Node::Map(_) => None,
    });
    let value = value.ok_or_else(|| error("a value or a list of values is needed".to_owned()))?;
    Ok((name.to_owned(), value))
}

/// Whether the key of a file means the node of this full name; `*` stands for one part of it, `**` for any number.
fn matches(key: &str, node: &str) -> bool {
    let parts = |name: &str| -> Vec<String> {
        name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    parts_match(&parts(key), &parts(node))
}

fn parts_match(key: &[String], node: &[String]) -> bool {
    match (key.split_first(), node.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first == "**" => {
            (0..=node.len()).any(|skipped| parts_match(rest, &node[skipped..]))
        }
        (Some((first, rest)), Some((part, others))) => {
            (first == "*" || first == part) && parts_match(rest, others)
        }
        (Some(_), None) => false,
    }
}

/// One parameter of one node; or a node without parameters.
struct Entry {
    node: String,
    parameter: Option<String>,
    value: Option<Value>,
}

/// A YAML tree as far as parameter files have one.
enum Node {
    Value(Value),
    Map(Vec<(String, Node)>),
}

fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    match tree(text)? {
        Some(Node::Map(map)) => nodes(map, "", &mut entries)?,
        Some(Node::Value(_)) => return Err("it is no map of node names".to_owned()),
        None => {}
    }
    Ok(entries)
}

/// Names of nodes, nested by namespaces, down to their parameters.
fn nodes(map: Vec<(String, Node)>, above: &str, entries: &mut Vec<Entry>) -> Result<(), String> {
    for (key, node) in map {
        let Node::Map(inside) = node else {
            let place = if above.is_empty() { "the top" } else { above };
            return Err(format!("'{key}' at {place} stands outside of any '{PARAMETERS}'"));
        };
        if key == PARAMETERS {
            if above.is_empty() {
                return Err(format!("'{PARAMETERS}' stands below no node's name; /** means any"));
            }
            entries.push(Entry { node: above.to_owned(), parameter: None, value: None });
            parameters(inside, "", above, entries);
        } else {
            nodes(inside, &format!("{above}/{}", key.trim_matches('/')), entries)?;
        }
    }
    Ok(())
}

fn parameters(map: Vec<(String, Node)>, above: &str, of: &str, entries: &mut Vec<Entry>) {
    for (key, node) in map {
        let name = if above.is_empty() { key } else { format!("{above}.{key}") };
        match node {
            Node::Map(inside) => parameters(inside, &name, of, entries),
            Node::Value(value) => entries.push(Entry {
                node: of.to_owned(),
                parameter: Some(name),
                value: Some(value),
            }),
        }
    }
}

/// The only document of `text`; `None` if there is nothing in it.
fn tree(text: &str) -> Result<Option<Node>, String> {
    let mut events = Parser::new_from_str(text).map(|event| {
        let (event, span) = event.map_err(|error| error.to_string())?;
        Ok((event, span.start.line()))
    });
    let mut found = None;
    while let Some(next) = events.next() {
        match next? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => break,
            (_, line) if found.is_some() => {
                return Err(format!("line {line}: a second document; only one is read"));
            }
            (event, line) => found = Some(node(event, line, &mut events, 0)?),
        }
    }
    Ok(found)
}

type Next<'a> = Result<(Event<'a>, usize), String>;

fn node<'a>(
    event: Event<'a>,
    line: usize,
    events: &mut impl Iterator<Item = Next<'a>>,
    depth: usize,
) -> Result<Node, String> {
    if depth > MAX_DEPTH {
        return Err(format!("line {line}: nested more than {MAX_DEPTH} times"));
    }
    match event {
        Event::Scalar(text, style, ..) => Ok(Node::Value(scalar(&text, style))),
        Event::SequenceStart(..) => Ok(Node::Value(list(line, events)?)),
        Event::MappingStart(..) => {
            let mut map: Vec<(String, Node)> = Vec::new();
            loop {
                let key = match following(events)? {
                    (Event::MappingEnd, _) => return Ok(Node::Map(map)),
                    (Event::Scalar(key, ..), _) => key.into_owned(),
                    (_, line) => return Err(format!("line {line}: a key has to be a name")),
                };
                let (event, line) = following(events)?;
                if map.iter().any(|(known, _)| *known == key) {
                    return Err(format!("line {line}: '{key}' stands twice in one place"));
                }
                map.push((key, node(event, line, events, depth + 1)?));
            }
        }
        Event::Alias(_) => Err(format!("line {line}: aliases (*name) are not supported by ROS 2")),
        _ => Err(format!("line {line}: a value is missing")),
    }
}

fn following<'a>(events: &mut impl Iterator<Item = Next<'a>>) -> Next<'a> {
    events.next().unwrap_or_else(|| Err("it ends in the middle".to_owned()))
}

/// A list of scalars of one type.
fn list<'a>(line: usize, events: &mut impl Iterator<Item = Next<'a>>) -> Result<Value, String> {
    let mut values = Vec::new();
    loop {
        match following(events)? {
            (Event::SequenceEnd, _) => break,
            (Event::Scalar(text, style, ..), _) => values.push(scalar(&text, style)),
            (_, line) => return Err(format!("line {line}: a list holds values only")),
        }
    }
    let types: Vec<&str> = values.iter().map(Value::type_name).collect();
    if let Some(other) = types.iter().find(|name| **name != types[0]) {
        let first = types[0];
        return Err(format!(
            "line {line}: a list of {first} has a value of type {other}; ROS 2 wants one type: 1.0 for a double, and quotes around \
             texts such as 'y' or '1'"
        ));
    }
    let mut texts = Vec::new();
    let mut integers = Vec::new();
    let mut doubles = Vec::new();
    let mut other = None;
    for value in values {
        match value {
            Value::Text(text) => texts.push(text),
            Value::Integer(integer) => integers.push(integer),
            Value::Double(double) => doubles.push(double),
            _ => other = Some(Value::Other("bool_array")),
        }
    }
    Ok(match (integers.is_empty(), doubles.is_empty(), other) {
        (_, _, Some(other)) => other,
        (false, ..) => Value::Integers(integers),
        (_, false, _) => Value::Doubles(doubles),
        // An empty list has no type of its own; the table takes it for one of texts.
        _ => Value::Texts(texts),
    })
}

/// A scalar in the type that rcl gives it.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']);
    let looks_like_a_number =
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.is_ascii();
    if looks_like_a_number {
        if let Some(value) = integer(text) {
            return Value::Integer(value);
        }
        if let Some(value) = double(text, digits) {
            return Value::Double(value);
        }
    }
    Value::Text(text.to_owned())
}

/// As C's `strtoll` with base 0.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}

fn double(text: &str, digits: &str) -> Option<f64> {
    let negative = text.starts_with('-');
    match digits {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" => Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, node: &str) -> Result<Vec<(String, Value)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robot.yaml");
        fs::write(&path, text).unwrap();
        read(&path, node).map_err(|error| error.to_string())
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn types_are_those_of_rcl() {
        let file = "/**:\n  ros__parameters:\n    a: on\n    b: 'on'\n    c: 7\n    d: -7.5e-1\n    e: 0x10\n    f: 1.\n    \
                    g: [1, 2]\n    h: [0.5, 1.0]\n    i: [u, '1']\n    k: []\n    l: 1.2.3\n    m:\n      n: /topic\n    o: ''\n    p: 017\n    q: 1_0\n";
        let parsed = parsed(file, "/policy").unwrap();
        let value =
            |name: &str| parsed.iter().find(|(known, _)| known == name).expect(name).1.clone();
        for (name, expected) in [
            ("a", Value::Bool(true)),
            ("b", text("on")),
            ("c", Value::Integer(7)),
            ("d", Value::Double(-0.75)),
            ("e", Value::Integer(16)),
            ("f", Value::Double(1.0)),
            ("g", Value::Integers(vec![1, 2])),
            ("h", Value::Doubles(vec![0.5, 1.0])),
            ("i", Value::Texts(vec!["u".into(), "1".into()])),
            ("k", Value::Texts(vec![])),
            ("l", text("1.2.3")),
            ("m.n", text("/topic")),
            ("o", text("")),
            ("p", Value::Integer(15)),
            ("q", text("1_0")),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }

    #[test]
    fn the_nodes_own_section_is_found_and_the_later_one_counts() {
        let file = "/**:\n  ros__parameters:\n    rate_hz: 1.0\nleft:\n  policy:\n    ros__parameters:\n      rate_hz: 3.0\n\
                    /right/policy:\n  ros__parameters:\n    rate_hz: 4.0\n";
        let rate = |node: &str| parsed(file, node).unwrap()[0].1.clone();
        assert_eq!(rate("/left/policy"), Value::Double(3.0));
        assert_eq!(rate("/right/policy"), Value::Double(4.0));
        assert_eq!(rate("/policy"), Value::Double(1.0));
        let other = parsed("/camera:\n  ros__parameters:\n    a: 1\n", "/policy").unwrap_err();
        assert!(other.contains("node '/policy'") && other.contains("/camera"), "{other}");
        assert!(matches("/*/policy", "/left/policy") && !matches("/*", "/left/policy"));
    }

    #[test]
    fn what_rcl_refuses_is_refused_with_its_line() {
        for (file, expected) in [
            ("/**:\n  ros__parameters:\n    a: [0.5, 1]\n", "line 3"),
            ("/**:\n  ros__parameters:\n    a: &x 1\n    b: *x\n", "aliases"),
            ("/**:\n  a: 1\n", "outside of any 'ros__parameters'"),
            ("ros__parameters:\n  a: 1\n", "below no node's name"),
            ("/**:\n  ros__parameters:\n    a: 1\n    a: 2\n", "'a' stands twice"),
            ("just text\n", "no map"),
            ("/**: [\n", "robot.yaml"),
            ("/**:\n  ros__parameters:\n    a: [[1]]\n", "values only"),
        ] {
            let error = parsed(file, "/policy").unwrap_err();
            assert!(error.contains(expected), "{file}: {error}");
        }
    }

    #[test]
    fn assignments_are_values_of_yaml() {
        let (name, value) = assignment("instruction:=pick the pear").unwrap();
        assert_eq!((name.as_str(), value), ("instruction", text("pick the pear")));
        assert_eq!(assignment("rate_hz:=2.5").unwrap().1, Value::Double(2.5));
        assert_eq!(
            assignment("a.b:=[u, v]").unwrap().1,
            Value::Texts(vec!["u".into(), "v".into()])
        );
        for wrong in ["rate_hz=2", ":=2", "a:={b: 1}", "a:=[1, x]"] {
            assert!(assignment(wrong).is_err(), "{wrong}");
        }
    }
}
