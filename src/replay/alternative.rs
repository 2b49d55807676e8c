//! Another policy for the same observations: another backend, other threads, another snapshot, another letterbox.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;

use super::events::Predicted;
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions};
use crate::backend::cpu::Numerics;
use crate::backend::cpu::card::CardNumerics;
use crate::contract::{ActionGroup, Embodiment, Letterbox};
use crate::correlation::Correlation;
use crate::policy::PolicyOptions;

const CPU: &str = "cpu";
/// Numerics of the CPU and of the card; only the latter have a choice of their own.
const F32: &str = "f32";
const CARD: &str = "card";

/// How the other policy differs from the first, as `KEY=VALUE,KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    text: String,
    changes: Vec<(String, String)>,
}

const KEYS: [&str; 12] = [
    "backend",
    "device_id",
    "device_python",
    "numerics",
    "dtype_policy",
    "math_fidelity",
    "accumulation",
    "threads",
    "snapshot",
    "tokenizer",
    "letterbox",
    "data_config",
];

impl FromStr for Alternative {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut changes: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                format!("'{part}' is not KEY=VALUE; keys are {}", KEYS.join(", "))
            })?;
            let (key, value) = (key.trim(), value.trim());
            if !KEYS.contains(&key) {
                return Err(format!("there is no key '{key}'; keys are {}", KEYS.join(", ")));
            }
            if changes.iter().any(|(known, _)| known == key) {
                return Err(format!("'{key}' stands twice"));
            }
            changes.push((key.to_owned(), value.to_owned()));
        }
        let made = Self { text: text.to_owned(), changes };
        // What does not fit any policy is refused before one is loaded.
        made.apply(&PolicyOptions::default())?;
        Ok(made)
    }
}

impl Alternative {
    fn get(&self, key: &str) -> Option<&str> {
        self.changes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The options of the other policy.
    ///
    /// # Errors
    /// A value that does not fit its key.
    pub fn apply(&self, first: &PolicyOptions) -> Result<PolicyOptions, String> {
        let mut options = first.clone();
        self.choose_backend(&mut options)?;
        for (key, value) in &self.changes {
            match key.as_str() {
                "device_id" => {
                    let number = value.parse();
                    let wrong = |_| format!("device_id is a card's number, from 0, not '{value}'");
                    of_device(&mut options, key)?.device_id = number.map_err(wrong)?;
                }
                "device_python" => of_device(&mut options, key)?.python = value.into(),
                "dtype_policy" => of_card(&mut options, key)?.policy = one_of(key, value)?,
                "math_fidelity" => of_card(&mut options, key)?.fidelity = one_of(key, value)?,
                "accumulation" => of_card(&mut options, key)?.accumulation = one_of(key, value)?,
                "threads" => {
                    let threads = value.parse().ok().filter(|threads| *threads <= 256);
                    options.threads =
                        threads.ok_or_else(|| format!("threads is 0 to 256, not '{value}'"))?;
                }
                "snapshot" => {
                    options.snapshot = value.into();
                    // Another snapshot may be of another version.
                    options.version = None;
                }
                "tokenizer" => options.tokenizer = Some(value.into()),
                "letterbox" => options.letterbox = value.parse::<Letterbox>()?,
                "data_config" => options.data_config = Some(value.clone()),
                _ => {}
            }
        }
        Ok(options)
    }

    /// Sets the device and the numbers to start from.
    fn choose_backend(&self, options: &mut PolicyOptions) -> Result<(), String> {
        let backend = self.get("backend");
        let kind = backend.and_then(DeviceKind::of_name);
        if let Some(name) = backend.filter(|name| *name != CPU && kind.is_none()) {
            let known: Vec<String> = DeviceKind::ALL.iter().map(ToString::to_string).collect();
            return Err(format!(
                "there is no backend '{name}'; there are {CPU}, {}",
                known.join(", ")
            ));
        }
        let card = Numerics::Card(CardNumerics::default());
        match (kind, self.get("numerics")) {
            (_, Some(other)) if ![F32, CARD].contains(&other) => {
                return Err(format!("there are no numerics '{other}'; there are {F32}, {CARD}"));
            }
            (Some(kind), Some(F32)) => {
                return Err(format!("backend '{kind}' does not compute in f32; it has {CARD}"));
            }
            (Some(kind), _) => {
                // Another kind of device has nothing to do with the first policy's.
                let same = options.device.take().filter(|device| device.kind == kind);
                let numerics = if same.is_some() { options.numerics } else { card };
                options.device = Some(same.unwrap_or_else(|| DeviceOptions::new(kind)));
                options.numerics = numerics;
            }
            // Numbers are chosen on the CPU.
            (None, Some(numerics)) => {
                options.device = None;
                options.numerics = if numerics == CARD { card } else { Numerics::F32 };
            }
            (None, None) if backend.is_some() => {
                options.device = None;
                options.numerics = Numerics::F32;
            }
            (None, None) => {}
        }
        Ok(())
    }
}

/// What a key of a device is about.
fn of_device<'a>(
    options: &'a mut PolicyOptions,
    key: &str,
) -> Result<&'a mut DeviceOptions, String> {
    let device = options.device.as_mut();
    device.ok_or_else(|| format!("{key} is about a card; add backend={}", DeviceKind::Card))
}

/// What a key of the card is about.
fn of_card<'a>(options: &'a mut PolicyOptions, key: &str) -> Result<&'a mut CardNumerics, String> {
    match &mut options.numerics {
        Numerics::Card(numerics) => Ok(numerics),
        Numerics::F32 => Err(format!("{key} is about the card's numbers; add numerics={CARD}")),
    }
}

fn one_of<T: ValueEnum>(key: &str, value: &str) -> Result<T, String> {
    T::from_str(value, false).map_err(|_| {
        let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        format!("{key} is one of {}, not '{value}'", names.join(", "))
    })
}

/// Whether chunks of two embodiments can be compared.
///
/// # Errors
/// What differs.
pub fn check_embodiments(first: &Embodiment, other: &Embodiment) -> Result<(), String> {
    let groups = |embodiment: &Embodiment| -> Vec<(String, usize)> {
        embodiment.action.iter().map(|group| (group.name.clone(), group.dim)).collect()
    };
    let fits = groups(first) == groups(other)
        && first.horizon == other.horizon
        && first.cameras == other.cameras
        && first.frame_deltas == other.frame_deltas;
    if fits {
        return Ok(());
    }
    Err(format!(
        "--against: '{}' of the other snapshot has other cameras, action groups or rows than '{}' here",
        other.tag, first.tag
    ))
}

/// How far the other policy's chunks are from the first one's, before limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// As it was asked for.
    pub against: String,
    /// Numbers that the other policy computes with.
    pub numerics: String,
    pub chunks: usize,
    /// Chunks whose bytes are all the same.
    pub equal: usize,
    /// Predictions for which the other policy gave no chunk, and the first reason.
    pub failed: usize,
    pub first_failure: Option<String>,
    pub groups: BTreeMap<String, GroupFidelity>,
}

/// Over all values of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupFidelity {
    pub max_abs: f64,
    /// Pearson's correlation; `None` where one side never changes.
    pub pcc: Option<f64>,
}

/// Sums for a correlation.
#[derive(Default)]
struct Pairs {
    first: Vec<f64>,
    other: Vec<f64>,
}

/// Compares the chunks of both policies, of which the other computes with `numerics`.
pub fn fidelity(
    alternative: &Alternative,
    numerics: Numerics,
    predicted: &[Predicted],
) -> Fidelity {
    let mut fidelity = Fidelity {
        against: alternative.text.clone(),
        numerics: numerics.to_string(),
        chunks: 0,
        equal: 0,
        failed: 0,
        first_failure: None,
        groups: BTreeMap::new(),
    };
    let mut pairs: BTreeMap<String, Pairs> = BTreeMap::new();
    for both in predicted.iter().filter_map(|prediction| prediction.other.as_ref()) {
        let other = match &both.other {
            Ok(other) => other,
            Err(reason) => {
                fidelity.failed += 1;
                fidelity.first_failure.get_or_insert_with(|| reason.clone());
                continue;
            }
        };
        fidelity.chunks += 1;
        let bits = |groups: &[ActionGroup]| -> Vec<u32> {
            groups.iter().flat_map(|group| &group.values).map(|value| value.to_bits()).collect()
        };
        let is_equal = bits(&both.unguarded.groups) == bits(&other.groups);
        fidelity.equal += usize::from(is_equal);
        for (here, there) in both.unguarded.groups.iter().zip(&other.groups) {
            let pairs = pairs.entry(here.name.clone()).or_default();
            pairs.first.extend(here.values.iter().map(|value| f64::from(*value)));
            pairs.other.extend(there.values.iter().map(|value| f64::from(*value)));
        }
    }
    for (group, Pairs { first, other }) in pairs {
        let apart = first.iter().zip(&other).map(|(a, b)| (a - b).abs());
        let max_abs = apart.fold(0.0, f64::max);
        let correlation = Correlation::of(first.iter().copied().zip(other.iter().copied()));
        let pcc = correlation.map(|found| found.pcc);
        fidelity.groups.insert(group, GroupFidelity { max_abs, pcc });
    }
    fidelity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::numerics::{Accumulation, MathFidelity};

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (text, expected) in [
            ("backend=tenstorrent", "no backend 'tenstorrent'; there are cpu, blackhole, sim"),
            ("backend=sim,numerics=f32", "backend 'sim' does not compute in f32"),
            ("device_id=1", "add backend=blackhole"),
            ("backend=blackhole,device_id=x", "from 0, not 'x'"),
            ("numerics=bf16", "no numerics 'bf16'; there are f32, card"),
            ("dtype_policy=mixed", "add numerics=card"),
            ("numerics=f32,accumulation=bf16", "add numerics=card"),
            ("numerics=card,math_fidelity=hifi3", "one of lofi, hifi2, hifi4, not 'hifi3'"),
            ("thread=1", "no key 'thread'"),
            ("threads", "not KEY=VALUE"),
            ("threads=1000", "0 to 256"),
            ("letterbox=maybe", "letterbox"),
            ("threads=1,threads=2", "stands twice"),
        ] {
            let error = text.parse::<Alternative>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let made: Alternative = "backend=cpu, threads=2".parse().expect("known");
        assert_eq!(made.apply(&PolicyOptions::default()).expect("fits").threads, 2);
    }

    fn applied(text: &str, first: &PolicyOptions) -> PolicyOptions {
        text.parse::<Alternative>().and_then(|made| made.apply(first)).expect(text)
    }

    #[test]
    fn the_other_policy_may_compute_with_the_numbers_of_the_card() {
        let numerics = |text: &str| applied(text, &PolicyOptions::default()).numerics;
        let default = CardNumerics::default();
        assert_eq!(numerics("threads=1"), Numerics::F32);
        assert_eq!(numerics("numerics=card"), Numerics::Card(default));
        let accumulation = Accumulation::Bf16;
        let chosen = Numerics::Card(CardNumerics { accumulation, ..default });
        assert_eq!(numerics("accumulation=bf16,numerics=card"), chosen);
    }

    #[test]
    fn the_other_policy_may_run_elsewhere() {
        let sim = applied("backend=sim,device_python=/opt/python", &PolicyOptions::default());
        let lofi = CardNumerics { fidelity: MathFidelity::LoFi, ..CardNumerics::default() };
        let first = PolicyOptions { numerics: Numerics::Card(lofi), ..sim };
        let device = first.device.as_ref().expect("a device");
        assert_eq!(
            (device.kind, device.python.as_path()),
            (DeviceKind::Simulator, "/opt/python".as_ref())
        );

        let on_cpu = applied("backend=cpu", &first);
        assert_eq!((on_cpu.device, on_cpu.numerics), (None, Numerics::F32));
        let same_numbers = applied("numerics=card,math_fidelity=lofi", &first);
        assert_eq!((same_numbers.device, same_numbers.numerics), (None, first.numerics));
        let again = applied("backend=sim,threads=1", &first);
        assert_eq!((again.device, again.numerics), (first.device.clone(), first.numerics));
        let card = applied("backend=blackhole,device_id=2", &first);
        assert_eq!(card.device.map(|device| device.device_id), Some(2));
        assert_eq!(card.numerics, Numerics::Card(CardNumerics::default()));
    }
}
