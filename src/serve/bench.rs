//! How long a running server takes for its demonstration, request after request.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::smoke::{SmokeError, milliseconds, timing};

/// Times of an answer, as the server tells them.
const STAGES: [&str; 5] = ["decode", "encode", "device", "decode_actions", "total"];
/// The time that the client has measured.
const WALL: &str = "wall";

/// What was measured, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub model: Value,
    pub version: Value,
    pub warm_up: u32,
    pub requests: u32,
    /// Bytes of the request.
    pub body_bytes: usize,
    /// Per stage, `total` (on the server) and `wall` (at the client).
    pub times: BTreeMap<&'static str, Times>,
}

/// How a time is spread, in milliseconds; percentiles are values that have occurred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    pub min: f64,
    pub median: f64,
    pub p90: f64,
    pub max: f64,
}

impl Times {
    /// `None` of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        Some(Self { min, median: at(50), p90: at(90), max })
    }
}

/// Posts the demonstration `warm_up` times, and then `requests` times with a clock.
///
/// # Errors
/// The server does not answer, or with something else.
pub fn measure(
    client: &Client,
    warm_up: u32,
    requests: u32,
    mut step: impl FnMut(),
) -> Result<Report, SmokeError> {
    let demo = client.get("/demo")?;
    let body = demo["request"].to_string().into_bytes();
    let mut taken: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    let mut last = Map::new();
    for number in 0..warm_up + requests {
        let timed = client.predict(&body)?;
        step();
        if number < warm_up {
            continue;
        }
        for stage in STAGES {
            taken.entry(stage).or_default().push(timing(&timed, stage)?);
        }
        taken.entry(WALL).or_default().push(milliseconds(timed.wall));
        if let Value::Object(answer) = timed.answer {
            last = answer;
        }
    }
    let told = |name: &str| last.get(name).cloned().unwrap_or(json!(null));
    let times = taken.iter().filter_map(|(stage, values)| Some((*stage, Times::of(values)?)));
    Ok(Report {
        model: told("model"),
        version: told("version"),
        warm_up,
        requests,
        body_bytes: body.len(),
        times: times.collect(),
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        writeln!(
            f,
            "{} {}: {} requests of {} bytes after {} to warm up; milliseconds",
            name(&self.model),
            name(&self.version),
            self.requests,
            self.body_bytes,
            self.warm_up
        )?;
        writeln!(f, "{:<16}{:>10}{:>10}{:>10}{:>10}", "", "min", "median", "p90", "max")?;
        for stage in STAGES.into_iter().chain([WALL]) {
            if let Some(Times { min, median, p90, max }) = self.times.get(stage) {
                writeln!(f, "{stage:<16}{min:>10.2}{median:>10.2}{p90:>10.2}{max:>10.2}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_have_occurred() {
        assert_eq!(Times::of(&[]), None);
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let expected = Times { min: 1.0, median: 5.0, p90: 9.0, max: 10.0 };
        assert_eq!(Times::of(&ten), Some(expected));
        let one = Times { min: 7.0, median: 7.0, p90: 7.0, max: 7.0 };
        assert_eq!(Times::of(&[7.0]), Some(one));
    }
}
