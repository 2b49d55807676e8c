//! One line of the diagnostics.

use std::fmt::Display;
use std::time::Duration;

/// As `diagnostic_msgs/DiagnosticStatus` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ok = 0,
    Warn = 1,
    Error = 2,
    /// Nothing has ever come.
    Stale = 3,
}

/// How one part of the node is, and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub level: Level,
    /// Of the node, a colon, and the part.
    pub name: String,
    pub message: String,
    pub values: Vec<(String, String)>,
}

impl Status {
    pub fn new(name: String, level: Level, message: impl Into<String>) -> Self {
        Self { level, name, message: message.into(), values: Vec::new() }
    }

    pub fn value(&mut self, key: impl Into<String>, value: impl Display) {
        self.values.push((key.into(), value.to_string()));
    }

    /// A value that may not be known.
    pub fn value_if(&mut self, key: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.value(key, value),
            None => self.value(key, "unknown"),
        }
    }

    #[cfg(test)]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// Milliseconds to the microsecond.
pub fn in_ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

/// Nanoseconds as seconds to the millisecond.
pub fn in_s(ns: i64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}
