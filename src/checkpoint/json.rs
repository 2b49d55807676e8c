//! The JSON files of a snapshot: read with limits, every mistake named by file and key.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::LazyLock;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::CheckpointError;

/// Largest JSON file that is read, in bytes. A checkpoint with three embodiments has 120 kB of statistics.
pub const MAX_JSON_BYTES: u64 = 16 << 20;

/// Longest piece of a value that goes into an error text, in characters.
const BRIEF_CHARS: usize = 80;

/// What Python writes for numbers that JSON does not have.
const NON_FINITE: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Reads a file that must hold one JSON object.
pub(super) fn read_object(path: &Path) -> Result<Map<String, Value>, CheckpointError> {
    parse_file(path, &read_bytes(path)?)
}

/// As [`read_object`]; `None` where there is no such file.
pub(super) fn read_object_if_present(
    path: &Path,
) -> Result<Option<Map<String, Value>>, CheckpointError> {
    // A link that leads nowhere is a damaged snapshot, not an absent file.
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    read_object(path).map(Some)
}

/// As [`read_object`], with `null` in place of the numbers NaN, Infinity and -Infinity, for tables in which one bad
/// entry must not make the others unusable.
pub(super) fn read_object_with_non_finite(
    path: &Path,
) -> Result<Map<String, Value>, CheckpointError> {
    parse_file(path, &null_non_finite(&read_bytes(path)?))
}

fn parse_file(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, CheckpointError> {
    parse_object(bytes).map_err(|message| CheckpointError::Json { path: path.to_owned(), message })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    let io = |error| CheckpointError::Io { path: path.to_owned(), error };
    let metadata = fs::metadata(path).map_err(io)?;
    // Asked before opening: opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    if metadata.len() > MAX_JSON_BYTES {
        let message = format!("is {} bytes long; the limit is {MAX_JSON_BYTES}", metadata.len());
        return Err(CheckpointError::Json { path: path.to_owned(), message });
    }
    fs::read(path).map_err(io)
}

/// Parses one JSON object; a key that stands twice in the same object is an error, at any depth.
pub(super) fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8: {error}"))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = UniqueKeys
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| match non_finite_at(text, error.line(), error.column()) {
            Some(word) => {
                format!("{word} in line {} is not a JSON number; write a finite one", error.line())
            }
            None => format!("not valid JSON: {error}"),
        })?;
    match value {
        Value::Object(object) => Ok(object),
        other => Err(format!("holds {}; a JSON object is needed", brief(&other))),
    }
}

/// The word that Python writes for a non-finite number, if one is at or just before this place.
fn non_finite_at(text: &str, line: usize, column: usize) -> Option<&'static str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    // The parser stops on the first letter, or on the second where the first is a minus sign.
    NON_FINITE.into_iter().find(|word| {
        (column.saturating_sub(2)..=column).any(|at| {
            line.as_bytes().get(at..).is_some_and(|rest| rest.starts_with(word.as_bytes()))
        })
    })
}

/// Overwrites NaN, Infinity and -Infinity outside of strings with `null`, which has a different length but keeps every
/// line where it is.
fn null_non_finite(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut replaced: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut at = 0;
    let mut in_string = false;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'N' | b'I' | b'-' if !in_string => {
                let rest = &bytes[at..];
                if let Some(word) = NON_FINITE.iter().find(|word| rest.starts_with(word.as_bytes()))
                {
                    let out = replaced.get_or_insert_default();
                    out.extend_from_slice(&bytes[copied..at]);
                    out.extend_from_slice(b"null");
                    at += word.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    match replaced {
        Some(mut out) => {
            out.extend_from_slice(&bytes[copied..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(bytes),
    }
}

/// A value as it goes into an error text: cut where it is long.
pub(super) fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Builds a [`Value`] and refuses a key that stands twice.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(UniqueKeys)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key '{key}' stands twice")));
            }
            let value = entries.next_value_seed(UniqueKeys)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The fields of one object of a file, read with checks.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    path: &'a Path,
    /// Keys that lead to the object, each followed by a dot.
    prefix: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &'a Path, map: &'a Map<String, Value>) -> Self {
        Self { path, prefix: String::new(), map }
    }

    /// The value of a key; `null` counts as a value.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.keys().map(String::as_str)
    }

    /// The error for a key whose value is not served.
    pub(super) fn refuse(&self, key: &str, accepted: impl Into<String>) -> CheckpointError {
        let found = self.map.get(key).map_or("missing".to_owned(), brief);
        CheckpointError::Field {
            path: self.path.to_owned(),
            key: format!("{}{key}", self.prefix),
            found,
            accepted: accepted.into(),
        }
    }

    /// The object under a key, if the key is there.
    pub(super) fn object(&self, key: &str) -> Result<Option<Fields<'a>>, CheckpointError> {
        match self.map.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => {
                let prefix = format!("{}{key}.", self.prefix);
                Ok(Some(Fields { path: self.path, prefix, map }))
            }
            Some(_) => Err(self.refuse(key, "an object")),
        }
    }

    /// As [`Fields::object`], with an object without fields where the key is absent.
    pub(super) fn object_or_empty(&self, key: &str) -> Result<Fields<'a>, CheckpointError> {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let absent =
            || Fields { path: self.path, prefix: format!("{}{key}.", self.prefix), map: &EMPTY };
        Ok(self.object(key)?.unwrap_or_else(absent))
    }

    /// An integer within `range`; where the key is absent, the default, or an error if there is none.
    pub(super) fn size(
        &self,
        key: &str,
        default: Option<usize>,
        range: RangeInclusive<usize>,
    ) -> Result<usize, CheckpointError> {
        let found = match self.map.get(key) {
            Some(value) => value.as_u64().and_then(|value| usize::try_from(value).ok()),
            None => default,
        };
        found.filter(|value| range.contains(value)).ok_or_else(|| {
            self.refuse(key, format!("an integer from {} to {}", range.start(), range.end()))
        })
    }

    /// `true` or `false`; where the key is absent, the default, or an error if there is none.
    pub(super) fn flag(&self, key: &str, default: Option<bool>) -> Result<bool, CheckpointError> {
        let found = match self.map.get(key) {
            Some(value) => value.as_bool(),
            None => default,
        };
        found.ok_or_else(|| self.refuse(key, "true or false"))
    }

    /// Checks that a key, where it is present, has the one value that is served.
    pub(super) fn only(&self, key: &str, served: Value) -> Result<(), CheckpointError> {
        match self.map.get(key) {
            Some(value) if *value != served => Err(self.refuse(key, brief(&served))),
            _ => Ok(()),
        }
    }

    /// As [`Fields::only`]; the key must be present.
    pub(super) fn exactly(&self, key: &str, served: Value) -> Result<(), CheckpointError> {
        if self.map.contains_key(key) {
            self.only(key, served)
        } else {
            Err(self.refuse(key, brief(&served)))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        for value in [0.1, 1.0 / 3.0, -1.650050401687622, 5e-324, f64::MAX, 0.30000000000000004] {
            let object = parse_object(format!("{{\"x\": {value:?}}}").as_bytes()).unwrap();
            assert_eq!(object["x"].as_f64().unwrap().to_bits(), value.to_bits());
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_named() {
        for (text, word) in [
            ("{\"a\": NaN}", "NaN"),
            ("{\"a\":\n [1.0, Infinity]}", "Infinity"),
            ("{\"a\": -Infinity}", "-Infinity"),
            ("{\"a\":-Infinity}", "-Infinity"),
            ("{\"a\":\n\n [\n  NaN\n]}", "NaN"),
        ] {
            let message = parse_object(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(&format!("{word} in line")), "{text}: {message}");
        }
        assert!(parse_object(b"{\"a\": 1e999}").unwrap_err().contains("out of range"));
    }

    #[test]
    fn keys_that_stand_twice_are_named_at_any_depth() {
        for text in ["{\"a\":1,\"a\":1}", "{\"x\":[{\"y\":{\"a\":1,\"b\":2,\"a\":3}}]}"] {
            let message = parse_object(text.as_bytes()).unwrap_err();
            assert!(message.contains("the key 'a' stands twice"), "{message}");
        }
    }

    #[test]
    fn damaged_text_is_an_error() {
        let deep = "{\"a\":".repeat(100_000);
        let cases: [&[u8]; 7] =
            [b"", b"{", b"{}x", b"[1]", b"{\"a\": \xff}", b"\xef\xbb\xbf{}", deep.as_bytes()];
        for bytes in cases {
            assert!(parse_object(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes).get(..9));
        }
    }

    #[test]
    fn non_finite_numbers_become_null_outside_of_strings() {
        let text = br#"{"NaN": [NaN, -Infinity, "a\"NaN", "\\", Infinity, -1]}"#;
        let object = parse_object(&null_non_finite(text)).unwrap();
        assert_eq!(json!(object), json!({ "NaN": [null, null, "a\"NaN", "\\", null, -1] }));
        assert!(matches!(null_non_finite(b"{\"a\": 1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = brief(&json!("\u{e4}".repeat(500)));
        assert_eq!(text.chars().count(), BRIEF_CHARS + 3);
        assert_eq!(brief(&json!({ "a": 1 })), "{\"a\":1}");
    }

    proptest! {
        #[test]
        fn random_text_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_object(&null_non_finite(&bytes));
        }

        #[test]
        fn random_json_like_text_never_panics(text in r#"[{}\[\]":,\\NaInfinity0-9.e -]{0,120}"#) {
            let _ = parse_object(text.as_bytes());
            let _ = parse_object(&null_non_finite(text.as_bytes()));
        }
    }
}
