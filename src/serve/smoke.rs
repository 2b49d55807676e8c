//! One look at a running server: its demonstration, predicted again and compared.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::client::{Client, ClientError, Timed};
use crate::contract::{ActionGroup, Representation};
use crate::correlation::Correlation;
use crate::golden::{Agreement, GroupAgreement, Incomparable};

/// Why a server cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SmokeError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(
        "the answer has no '{field}' of the kind that is expected; is this server gr00t_blackhole?"
    )]
    Field { field: String },
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub pass: bool,
    /// Why it does not pass.
    pub failures: Vec<String>,
    pub model: String,
    pub version: String,
    /// Where the expected actions are from.
    pub source: String,
    pub pcc_min: f64,
    /// All groups together; null where nothing moves.
    pub pcc_actions: Option<f64>,
    pub max_difference: f64,
    /// The network's own output; null where the demonstration does not have it.
    pub pcc_action_pred_valid: Option<f64>,
    pub groups: Vec<GroupAgreement>,
    /// Largest difference between the two equal requests.
    pub repeat_max_difference: f64,
    /// Two requests with one seed agree to the bit.
    pub seed_path_ok: bool,
    /// Of the first and the second request, in milliseconds.
    pub device_ms: [f64; 2],
    pub total_ms: [f64; 2],
    pub wall_ms: f64,
}

/// Steps that are told as they begin.
pub const STEPS: u64 = 5;

/// Asks the server for its demonstration, posts it twice, and with a seed twice.
///
/// # Errors
/// The server does not answer, or with something else.
pub fn look(client: &Client, mut step: impl FnMut()) -> Result<Report, SmokeError> {
    let demo = client.get("/demo")?;
    step();
    let mut request = demo["request"].clone();
    if !request.is_object() {
        return Err(field("request"));
    }
    request["return_normalized"] = json!(true);
    let expected = &demo["expected"];
    let keys = strings(&expected["action_keys"]).ok_or_else(|| field("action_keys"))?;
    let mut post = |request: &Value| {
        let answer = client.predict(request.to_string().as_bytes());
        step();
        answer
    };
    let first = post(&request)?;
    let second = post(&request)?;
    seeded(&mut request);
    let seeds = [post(&request)?, post(&request)?];

    let wanted = groups(&expected["actions"], &keys)?;
    let found = groups(&first.answer["actions"], &keys)?;
    let agreement = Agreement::of(&wanted, &found)?;
    let pairs = || {
        let values = |groups: &[ActionGroup]| {
            groups.iter().flat_map(|group| group.values.clone()).map(f64::from).collect::<Vec<_>>()
        };
        values(&wanted).into_iter().zip(values(&found))
    };
    let max_difference = agreement.0.iter().map(|group| group.max_difference).fold(0.0, f64::max);
    let pcc_actions = Correlation::of(pairs()).map(|found| found.pcc);
    let pcc_min = expected["gates"]["pcc_min"].as_f64().ok_or_else(|| field("pcc_min"))?;
    let repeat_max_difference = difference(&first.answer, &second.answer)?;
    let seed_difference = difference(&seeds[0].answer, &seeds[1].answer)?;
    let text =
        |name: &str| first.answer[name].as_str().map(str::to_owned).ok_or_else(|| field(name));
    let mut report = Report {
        pass: false,
        failures: Vec::new(),
        model: text("model")?,
        version: text("version")?,
        source: expected["source"].as_str().unwrap_or("not told").to_owned(),
        pcc_min,
        pcc_actions,
        max_difference,
        pcc_action_pred_valid: valid_pcc(expected, &first.answer),
        groups: agreement.0,
        repeat_max_difference,
        seed_path_ok: seed_difference == 0.0 && seeds[0].answer["noise_source"] == "seed",
        device_ms: [timing(&first, "device")?, timing(&second, "device")?],
        total_ms: [timing(&first, "total")?, timing(&second, "total")?],
        wall_ms: milliseconds(first.wall),
    };
    report.failures = failures(&report);
    report.pass = report.failures.is_empty();
    Ok(report)
}

/// Replaces the noise of a request by a seed; one that has a seed keeps it.
fn seeded(request: &mut Value) {
    if let Some(fields) = request.as_object_mut()
        && fields.remove("noise").is_some()
    {
        fields.insert("seed".to_owned(), json!(0));
    }
}

fn failures(report: &Report) -> Vec<String> {
    let mut failures = Vec::new();
    match report.pcc_actions {
        Some(pcc) if pcc < report.pcc_min => {
            failures.push(format!("PCC(actions) is {pcc:.6}, below {}", report.pcc_min));
        }
        Some(_) => {}
        None => {
            let off = report.groups.iter().filter(|group| !group.reaches(report.pcc_min));
            failures.extend(off.map(|group| format!("actions that do not move differ: {group}")));
        }
    }
    if report.repeat_max_difference > 0.0 {
        let size = report.repeat_max_difference;
        failures.push(format!("two equal requests differ by {size:.1e}"));
    }
    if !report.seed_path_ok {
        failures.push("two requests with one seed differ".to_owned());
    }
    failures
}

fn valid_pcc(expected: &Value, answer: &Value) -> Option<f64> {
    let numbers = |value: &Value| {
        let rows = value["action_pred_valid_hd"].as_array()?;
        rows.iter().map(floats).collect::<Option<Vec<_>>>().map(|rows| rows.concat())
    };
    let (wanted, found) = (numbers(expected)?, numbers(answer)?);
    let pairs = wanted.iter().zip(&found).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    Correlation::of(pairs).map(|found| found.pcc)
}

/// Largest difference between the actions of two answers.
fn difference(a: &Value, b: &Value) -> Result<f64, SmokeError> {
    let keys = strings(&a["action_keys"]).ok_or_else(|| field("action_keys"))?;
    let agreement = Agreement::of(&groups(&a["actions"], &keys)?, &groups(&b["actions"], &keys)?)?;
    Ok(agreement.0.iter().map(|group| group.max_difference).fold(0.0, f64::max))
}

fn groups(actions: &Value, keys: &[String]) -> Result<Vec<ActionGroup>, SmokeError> {
    let group = |name: &String| {
        let rows = actions[name].as_array()?;
        let rows: Vec<Vec<f32>> = rows.iter().map(floats).collect::<Option<_>>()?;
        let dim = rows.first()?.len();
        let even = dim > 0 && rows.iter().all(|row| row.len() == dim);
        even.then(|| ActionGroup {
            name: name.clone(),
            // Answers do not tell; only values are compared.
            representation: Representation::Absolute,
            dim,
            values: rows.concat(),
        })
    };
    keys.iter().map(|name| group(name).ok_or_else(|| field(name))).collect()
}

fn floats(row: &Value) -> Option<Vec<f32>> {
    row.as_array()?.iter().map(|value| value.as_f64().map(|value| value as f32)).collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// An entry of `timing_ms`.
pub fn timing(timed: &Timed, name: &str) -> Result<f64, SmokeError> {
    timed.answer["timing_ms"][name].as_f64().ok_or_else(|| field(&format!("timing_ms.{name}")))
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn field(name: &str) -> SmokeError {
    SmokeError::Field { field: name.to_owned() }
}

/// A number as C and Python write it with `%.1e`: `0.0e+00`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The documents' line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pcc = |pcc: Option<f64>| pcc.map_or("still".to_owned(), |pcc| format!("{pcc:.6}"));
        write!(
            f,
            "{} {} {}: PCC(actions)={} max|d|={:.4} ",
            if self.pass { "PASS" } else { "FAIL" },
            self.model,
            self.version,
            pcc(self.pcc_actions),
            self.max_difference
        )?;
        if let Some(valid) = self.pcc_action_pred_valid {
            write!(f, "PCC(action_pred_valid)={valid:.6} ")?;
        }
        let seed = if self.seed_path_ok { "seed_path_ok" } else { "seed_path_differs" };
        let groups = self.groups.iter().map(|group| {
            let pcc = group.pcc.map_or("still".to_owned(), |pcc| format!("{pcc:.5}"));
            format!("{}={pcc}/{:.4}", group.name, group.max_difference)
        });
        write!(
            f,
            "repeat_maxdiff={} {seed} device_ms={:.2}/{:.2} total_ms={:.2}/{:.2} wall_ms={:.0} per_group[{}]",
            scientific(self.repeat_max_difference),
            self.device_ms[0],
            self.device_ms[1],
            self.total_ms[0],
            self.total_ms[1],
            self.wall_ms,
            groups.collect::<Vec<_>>().join(" ")
        )?;
        for failure in &self.failures {
            write!(f, "\n  {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_does() {
        for (value, text) in [(0.0, "0.0e+00"), (1.2e-7, "1.2e-07"), (3e120, "3.0e+120")] {
            assert_eq!(scientific(value), text);
        }
        assert_eq!(scientific(f64::INFINITY), "inf");
    }
}
