//! Parameter values, their types and their ranges.

use std::fmt;

/// A parameter value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    Texts(Vec<String>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    /// A type that no parameter of this node has; holds its name.
    Other(&'static str),
}

/// A value that can stand in the table.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    Bool(bool),
    Integer(i64),
    Double(f64),
    /// `<key>` stands for the camera key or the group name.
    Text(&'static str),
    NoTexts,
    NoDoubles,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Integer,
    Double,
    Text,
    Texts,
    Doubles,
}

/// Values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    Any,
    /// Both ends included.
    Integer(i64, i64),
    /// Both ends included; no value that is not finite.
    Double(f64, f64),
    Choice(&'static [&'static str]),
}

impl Default {
    /// The value, with `key` in place of `<key>`.
    pub fn value(self, key: &str) -> Value {
        match self {
            Default::Bool(value) => Value::Bool(value),
            Default::Integer(value) => Value::Integer(value),
            Default::Double(value) => Value::Double(value),
            Default::Text(value) => Value::Text(value.replace("<key>", key)),
            Default::NoTexts => Value::Texts(Vec::new()),
            Default::NoDoubles => Value::Doubles(Vec::new()),
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Default::Bool(_) => Kind::Bool,
            Default::Integer(_) => Kind::Integer,
            Default::Double(_) => Kind::Double,
            Default::Text(_) => Kind::Text,
            Default::NoTexts => Kind::Texts,
            Default::NoDoubles => Kind::Doubles,
        }
    }
}

impl Kind {
    /// The name that ROS tools use.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Integer => "integer",
            Kind::Double => "double",
            Kind::Text => "string",
            Kind::Texts => "string_array",
            Kind::Doubles => "double_array",
        }
    }
}

impl Value {
    /// The name of the value's type that ROS tools use.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Bool(_) => Kind::Bool.name(),
            Value::Integer(_) => Kind::Integer.name(),
            Value::Double(_) => Kind::Double.name(),
            Value::Text(_) => Kind::Text.name(),
            Value::Texts(_) => Kind::Texts.name(),
            Value::Integers(_) => "integer_array",
            Value::Doubles(_) => Kind::Doubles.name(),
            Value::Other(name) => name,
        }
    }

    /// The value as `kind`, or `None` if it is of another type. Integers are taken for doubles.
    pub fn as_kind(self, kind: Kind) -> Option<Value> {
        match (self, kind) {
            (Value::Integer(value), Kind::Double) => Some(Value::Double(value as f64)),
            (Value::Integers(values), Kind::Doubles) => {
                Some(Value::Doubles(values.into_iter().map(|value| value as f64).collect()))
            }
            (value, _) => (value.type_name() == kind.name()).then_some(value),
        }
    }
}

impl Range {
    /// YAML takes on and off without quotes for true and false; where they are choices, they are what was written.
    pub fn as_written(self, value: Value) -> Value {
        let choice = match value {
            Value::Bool(true) => "on",
            Value::Bool(false) => "off",
            _ => return value,
        };
        match self {
            Range::Choice(choices) if choices.contains(&choice) => Value::Text(choice.to_owned()),
            _ => value,
        }
    }

    pub fn contains(self, value: &Value) -> bool {
        match (self, value) {
            (Range::Integer(from, to), Value::Integer(value)) => (from..=to).contains(value),
            (Range::Double(from, to), Value::Double(value)) => (from..=to).contains(value),
            (Range::Choice(choices), Value::Text(value)) => choices.contains(&value.as_str()),
            (Range::Any, Value::Double(value)) => value.is_finite(),
            (Range::Any, Value::Doubles(values)) => values.iter().all(|value| value.is_finite()),
            (Range::Any, _) => true,
            _ => false,
        }
    }
}

/// As in YAML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::Text(value) => f.write_str(&quoted(value)),
            Value::Texts(values) => list(f, values.iter().map(|value| quoted(value))),
            Value::Integers(values) => list(f, values.iter().map(i64::to_string)),
            Value::Doubles(values) => list(f, values.iter().map(|value| format!("{value:?}"))),
            Value::Other(name) => f.write_str(name),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    write!(f, "[{}]", items.collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Any => f.write_str("any value"),
            Range::Integer(from, i64::MAX) => write!(f, "{from} or more"),
            Range::Integer(from, to) => write!(f, "{from} to {to}"),
            Range::Double(from, to) => write!(f, "{from:?} to {to:?}"),
            Range::Choice(choices) => {
                let quoted = choices.iter().map(|choice| quoted(choice)).collect::<Vec<_>>();
                write!(f, "one of {}", quoted.join(", "))
            }
        }
    }
}
