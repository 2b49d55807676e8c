//! The body of `POST /predict`, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_path_to_error::{Path, Segment};

use super::error::{ApiError, SchemaError};
use super::numbers::Numbers;
use crate::contract::Version;
use crate::unique_keys::unique;
use crate::words::brief;

/// Frames of a camera; no robot has nearly as many.
const MAX_FRAMES: usize = 64;
/// What Python's `json` writes for values that are not finite, and JSON does not have.
const NOT_FINITE: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// One observation and how it is to be answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictRequest<'a> {
    /// Per camera: frames as base64 of PNG or JPEG, oldest first.
    #[serde(borrow, deserialize_with = "unique")]
    pub images: BTreeMap<String, Frames<'a>>,
    #[serde(deserialize_with = "unique")]
    pub state: BTreeMap<String, Numbers>,
    #[serde(alias = "language", alias = "prompt")]
    pub instruction: String,
    pub embodiment: Option<String>,
    pub seed: Option<Seed>,
    pub noise: Option<Numbers>,
    pub state_dtype: Option<StateDtype>,
    pub return_normalized: Option<bool>,
}

/// Pictures of one camera: one string, or a list.
#[derive(Debug)]
pub struct Frames<'a>(pub Vec<Cow<'a, str>>);

/// An integer from 0, also as `42.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Precision in which the state is taken before it is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateDtype {
    Float32,
    Float64,
}

impl StateDtype {
    /// That of the data set that the version was trained on.
    pub fn default_of(version: Version) -> Self {
        match version {
            Version::N15 => StateDtype::Float64,
            Version::N16 | Version::N17 => StateDtype::Float32,
        }
    }
}

/// Reads a body.
///
/// # Errors
/// No JSON, an unknown, missing or repeated field, or a wrong type, with its place; a number that is not finite.
pub fn parse(body: &[u8]) -> Result<PredictRequest<'_>, ApiError> {
    check_object(body)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    let request = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| refusal(body, error.path(), error.inner()))?;
    json.end().map_err(|error| refusal(body, &no_path(), &error))?;
    Ok(request)
}

/// Fields have names: a list of their values would be read as well.
fn check_object(body: &[u8]) -> Result<(), ApiError> {
    let found = match body.trim_ascii_start().first() {
        Some(b'[') => "a list",
        Some(b'n') => "null",
        Some(b'"') => "a string",
        _ => return Ok(()),
    };
    let msg = format!("the body is {found}; an object with the request's fields is needed");
    Err(ApiError::Schema(SchemaError { kind: "value_error", loc: vec!["body".into()], msg }))
}

fn no_path() -> Path {
    serde_path_to_error::Track::new().path()
}

fn refusal(body: &[u8], path: &Path, error: &serde_json::Error) -> ApiError {
    let place = path.to_string();
    if not_finite(body, error) {
        let text = format!("{place}: {error}: every number must be finite");
        return ApiError::Refused(vec![text]);
    }
    let kind = if error.is_data() { "value_error" } else { "json_invalid" };
    let loc = path.iter().filter_map(|segment| match segment {
        Segment::Map { key } => Some(brief(key).into()),
        Segment::Seq { index } => Some((*index).into()),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    let loc = std::iter::once("body".into()).chain(loc).collect();
    ApiError::Schema(SchemaError { kind, loc, msg: brief(&error.to_string()) })
}

/// Whether reading has ended at a number that is not finite: one of those that Python writes, or one that is too large.
fn not_finite(body: &[u8], error: &serde_json::Error) -> bool {
    if !error.is_syntax() {
        return false;
    }
    let line = body.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1));
    let Some(line) = line else { return false };
    // The column is that of the last byte that was read: `N`, `I`, the `I` behind a minus, or the end of a number.
    let at = error.column().saturating_sub(1).min(line.len());
    let starts = |from: usize| NOT_FINITE.iter().any(|text| line[from..].starts_with(text));
    starts(at) || starts(at.saturating_sub(1)) || error.to_string().contains("out of range")
}

impl<'de: 'a, 'a> Deserialize<'de> for Frames<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FramesVisitor)
    }
}

struct FramesVisitor;

impl<'de> Visitor<'de> for FramesVisitor {
    type Value = Frames<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a picture as base64, or a list of them, oldest first")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Frames<'de>, E> {
        Ok(Frames(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Frames<'de>, E> {
        Ok(Frames(vec![Cow::Owned(text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Frames<'de>, A::Error> {
        let mut frames = Vec::new();
        while let Some(Text(text)) = items.next_element()? {
            if frames.len() == MAX_FRAMES {
                return Err(A::Error::custom(format!("more than {MAX_FRAMES} frames")));
            }
            frames.push(text);
        }
        Ok(Frames(frames))
    }
}

/// A string, borrowed where it has no escapes; serde alone would copy it.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeedVisitor)
    }
}

struct SeedVisitor;

impl Visitor<'_> for SeedVisitor {
    type Value = Seed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from 0 to {}", u64::MAX)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Seed, E> {
        Ok(Seed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Seed, E> {
        // The largest f64 below 2^64.
        if value.fract() == 0.0 && (0.0..=u64::MAX as f64 - 2048.0).contains(&value) {
            return Ok(Seed(value as u64));
        }
        Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(fields: &str) -> String {
        format!(r#"{{"images": {{"cam": "QQ=="}}, "state": {{"arm": [1, 2.5]}}{fields}}}"#)
    }

    fn schema(text: &str) -> SchemaError {
        match parse(text.as_bytes()).expect_err(text) {
            ApiError::Schema(error) => error,
            other => panic!("{text}: {other}"),
        }
    }

    #[test]
    fn every_name_of_the_instruction_is_known() {
        for name in ["instruction", "language", "prompt"] {
            let text = body(&format!(r#", "{name}": "go""#));
            assert_eq!(parse(text.as_bytes()).expect(name).instruction, "go");
        }
        let twice = schema(&body(r#", "prompt": "go", "instruction": "go""#));
        assert!(twice.msg.contains("duplicate field"), "{}", twice.msg);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, loc, part) in [
            (body(r#", "prompt": "x", "sed": 1"#), &["body", "sed"][..], "unknown field `sed`"),
            (body(""), &["body"], "missing field `instruction`"),
            (body(r#", "prompt": 3"#), &["body", "prompt"], "expected a string"),
            (body(r#", "prompt": "x", "seed": -1"#), &["body", "seed"], "an integer from 0"),
            (body(r#", "prompt": "x", "seed": 1.5"#), &["body", "seed"], "an integer from 0"),
            (body(r#", "prompt": "x", "state_dtype": "f"#), &["body"], "EOF"),
            (
                body(r#", "prompt": "x", "state_dtype": "float16""#),
                &["body", "state_dtype"],
                "float16",
            ),
            ("[]x".to_owned(), &["body"], ""),
        ] {
            let error = schema(&text);
            let found: Vec<&str> = error.loc.iter().filter_map(|part| part.as_str()).collect();
            assert_eq!(found[0], loc[0], "{text}");
            if part != "EOF" {
                assert_eq!(found, loc, "{text}: {}", error.msg);
            }
            assert!(error.msg.contains(part), "{text}: {}", error.msg);
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused_and_no_syntax_error() {
        for value in ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"] {
            let text = format!(r#"{{"state": {{"arm": [0.5, {value}]}}}}"#);
            match parse(text.as_bytes()).expect_err(value) {
                ApiError::Refused(errors) => assert!(errors[0].contains("finite"), "{errors:?}"),
                other => panic!("{value}: {other}"),
            }
        }
        assert_eq!(schema(r#"{"state": Nothing}"#).kind, "json_invalid");
    }

    #[test]
    fn seeds_are_whole() {
        for (text, expected) in [("0", 0), ("42.0", 42), ("18446744073709551615", u64::MAX)] {
            assert_eq!(serde_json::from_str::<Seed>(text).expect(text).0, expected);
        }
        for text in ["18446744073709551616", "-0.5", "true", "\"1\""] {
            serde_json::from_str::<Seed>(text).expect_err(text);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_changed_byte_makes_it_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let more = r#", "prompt": "x", "noise": [[[1, 2e3]]], "seed": 1, "state_dtype": "float32""#;
            let mut body = body(more).into_bytes();
            let at = at.index(body.len());
            body[at] = byte;
            let _ = parse(&body);
        }
    }
}
