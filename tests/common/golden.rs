//! Golden cases: NVIDIA's own outputs on synthetic weights, as safetensors with a JSON beside them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gr00t_blackhole::contract::{ActionChunk, Frame, Noise, Observation, TapSink};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// One case: tensors by name, and what its JSON says.
pub struct Case {
    pub name: String,
    dir: PathBuf,
    bytes: Vec<u8>,
    json: Value,
    /// Tensors of which only some rows are stored.
    kept_rows: HashMap<String, KeptRows>,
    /// From the name of a golden tap to the program's.
    program_tap: Box<dyn Fn(&str) -> String>,
    /// Largest difference of an action in physical units.
    physical_tolerance: f32,
}

/// Every `step`-th of the first `count` rows.
#[derive(Clone, Copy)]
struct KeptRows {
    step: usize,
    count: usize,
}

const ALL_ROWS: KeptRows = KeptRows { step: 1, count: usize::MAX };

impl KeptRows {
    /// Reads `rows 0::step` or `rows 0..count`.
    fn parse(slice: &str) -> Option<Self> {
        let rows = slice.strip_prefix("rows 0")?;
        if let Some(step) = rows.strip_prefix("::") {
            return Some(Self { step: step.parse().ok()?, ..ALL_ROWS });
        }
        Some(Self { count: rows.strip_prefix("..")?.parse().ok()?, ..ALL_ROWS })
    }
}

/// A tensor as f32, with the number of its columns.
pub struct Values {
    pub cols: usize,
    pub values: Vec<f32>,
}

impl Case {
    pub fn open(dir: &Path, name: &str) -> Self {
        let read = |suffix: &str| std::fs::read(dir.join(format!("{name}{suffix}")));
        let json: Value = serde_json::from_slice(&read(".json").unwrap()).unwrap();
        let mut kept_rows = HashMap::new();
        for (tensor, about) in json["tensors"].as_object().into_iter().flatten() {
            if let Some(rows) = about["slice"].as_str().and_then(KeptRows::parse) {
                kept_rows.insert(tensor.clone(), rows);
            }
        }
        // Full-size cases are thinned a second time, along the first axis that has rows.
        if let Ok(bytes) = read(".thin.json") {
            let thin: Value = serde_json::from_slice(&bytes).unwrap();
            for (tensor, about) in thin.as_object().unwrap() {
                let step = about["step"].as_u64().unwrap() as usize;
                kept_rows.entry(tensor.clone()).or_insert(ALL_ROWS).step *= step;
            }
        }
        let bytes = read(".safetensors").unwrap();
        Self::new(name, dir, bytes, json, kept_rows)
    }

    fn new(
        name: &str,
        dir: &Path,
        bytes: Vec<u8>,
        json: Value,
        kept_rows: HashMap<String, KeptRows>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            dir: dir.to_owned(),
            bytes,
            json,
            kept_rows,
            program_tap: Box::new(str::to_owned),
            physical_tolerance: 2e-5,
        }
    }

    /// The same case with a version's own names of taps and tolerance of physical actions.
    pub fn with_dialect(
        self,
        program_tap: impl Fn(&str) -> String + 'static,
        physical_tolerance: f32,
    ) -> Self {
        Self { program_tap: Box::new(program_tap), physical_tolerance, ..self }
    }

    /// A case of a version whose goldens have other names and files, translated to those that [`Case::open`] reads.
    pub fn from_parts(
        name: &str,
        dir: &Path,
        bytes: Vec<u8>,
        json: Value,
        thinned: HashMap<String, usize>,
    ) -> Self {
        let kept_rows =
            thinned.into_iter().map(|(name, step)| (name, KeptRows { step, ..ALL_ROWS }));
        Self::new(name, dir, bytes, json, kept_rows.collect())
    }

    pub fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).unwrap()
    }

    /// Names of the taps, without their prefix.
    pub fn taps(&self) -> Vec<String> {
        let tensors = self.tensors();
        let mut names: Vec<String> = tensors
            .names()
            .iter()
            .filter_map(|name| name.strip_prefix("tap."))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }

    pub fn f32(&self, name: &str) -> Values {
        let tensors = self.tensors();
        let tensor = tensors.tensor(name).unwrap();
        assert_eq!(tensor.dtype(), Dtype::F32, "{name}");
        let values = tensor
            .data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        Values { cols: *tensor.shape().last().unwrap(), values }
    }

    pub fn token_ids(&self) -> Vec<u32> {
        let tensors = self.tensors();
        let ids = tensors.tensor("input_ids").unwrap().data();
        ids.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as u32).collect()
    }

    /// What the case's JSON says.
    pub fn json(&self) -> &Value {
        &self.json
    }

    pub fn embodiment(&self) -> &str {
        self.json["embodiment"].as_str().unwrap()
    }

    /// The noise that the reference started from.
    pub fn noise(&self) -> Noise {
        Noise::Explicit(self.f32("initial_noise").values)
    }

    pub fn observation(&self) -> Observation {
        let mut frames: BTreeMap<String, Vec<Arc<Frame>>> = BTreeMap::new();
        for entry in self.json["frames"].as_array().unwrap() {
            let path = self.dir.join(entry["png"].as_str().unwrap());
            let picture = image::open(path).unwrap().into_rgb8();
            let (width, height) = picture.dimensions();
            let frame = Arc::new(Frame::new(width, height, picture.into_raw()).unwrap());
            frames.entry(entry["camera"].as_str().unwrap().to_owned()).or_default().push(frame);
        }
        let mut state = BTreeMap::new();
        for (group, rows) in self.json["state"].as_object().unwrap() {
            let row = rows.as_array().unwrap().last().unwrap();
            let values = row.as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
            state.insert(group.clone(), values.collect());
        }
        let instruction = self.json["instruction"].as_str().unwrap().to_owned();
        Observation { stamp_ns: 0, frames, state, instruction }
    }

    /// Checks one tap against the golden: every value within `2e-5 * max(1, max|golden|)`.
    pub fn check_tap(&self, golden: &str, found: &Tap) {
        let expected = self.f32(golden);
        let KeptRows { step, count } = self.kept_rows.get(golden).copied().unwrap_or(ALL_ROWS);
        // The reference's rotary tables repeat their columns for the second half of each head.
        let repeats = if golden.contains("_rope_") { 2 } else { 1 };
        let rows = found.values.chunks_exact(found.cols).take(count).step_by(step);
        let kept: Vec<f32> = rows.flat_map(|row| row.repeat(repeats)).collect();
        // The reference may keep the heads of a row apart.
        let whole = (repeats * found.cols).is_multiple_of(expected.cols);
        assert!(whole, "{}: columns of {golden}", self.name);
        let scale = expected.values.iter().fold(1.0_f32, |max, value| max.max(value.abs()));
        check(&format!("{}: {golden}", self.name), &expected.values, &kept, 2e-5 * scale);
    }

    /// Checks every tap and the velocities.
    pub fn check_taps(&self, taps: &Taps) {
        for name in self.taps() {
            let program = (self.program_tap)(&name);
            let found = taps.0.get(&program);
            let found = found.unwrap_or_else(|| panic!("{}: no tap {program}", self.name));
            self.check_tap(&format!("tap.{name}"), found);
            if program.ends_with(".velocity") {
                let golden = self.f32(&format!("tap.{name}")).values;
                check(&format!("{}: {name}", self.name), &golden, &found.values, 5e-5);
            }
        }
    }

    /// Checks every tap, the velocities, the normalised prediction and the physical actions of a chunk.
    pub fn check_chunk(&self, chunk: &ActionChunk, taps: &Taps) {
        self.check_taps(taps);
        let golden = self.f32("action_pred").values;
        check(&format!("{}: action_pred", self.name), &golden, &chunk.normalized, 1e-5);
        for group in &chunk.groups {
            let golden = self.f32(&format!("action.{}", group.name));
            assert_eq!(golden.cols, group.dim);
            let name = format!("{}: {}", self.name, group.name);
            check(&name, &golden.values, &group.values, self.physical_tolerance);
        }
    }
}

/// Largest difference within `tolerance`, or a panic that says where.
pub fn check(name: &str, expected: &[f32], found: &[f32], tolerance: f32) {
    assert_eq!(expected.len(), found.len(), "{name}: number of values");
    assert!(!expected.is_empty(), "{name}: nothing to compare");
    for (index, (e, f)) in expected.iter().zip(found).enumerate() {
        let difference = (e - f).abs();
        assert!(difference <= tolerance, "{name}[{index}]: {f} should be {e} (within {tolerance})");
    }
}

/// An intermediate value, `[rows, cols]`.
pub struct Tap {
    pub cols: usize,
    pub values: Vec<f32>,
}

/// Collects every tap by name.
#[derive(Default)]
pub struct Taps(pub HashMap<String, Tap>);

impl TapSink for Taps {
    fn tap(&mut self, name: &str, _rows: usize, cols: usize, values: &[f32]) {
        let tap = self.0.entry(name.to_owned()).or_insert_with(|| Tap { cols, values: Vec::new() });
        tap.values.extend(values);
    }
}
