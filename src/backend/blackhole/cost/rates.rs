//! The rates that a plan reckons with: where each comes from, and how to change it.

use std::collections::HashSet;

use serde::Serialize;

/// A rate by its name on the command line.
pub struct Rate {
    pub name: &'static str,
    pub unit: &'static str,
    /// What it is, and its source.
    pub text: &'static str,
    pub default: f64,
    /// Its place.
    field: fn(&mut Rates) -> &mut f64,
}

/// Writes the table once, as the fields of [`Rates`] and as [`RATES`].
macro_rules! rates {
    ($($(#[doc = $text:literal])+ $name:ident: $unit:literal = $default:literal,)+) => {
        /// What the card does in a second, as documented; none of it was measured by this project.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Rates {
            $($(#[doc = $text])+ pub $name: f64,)+
        }

        impl Default for Rates {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// Every rate.
        pub const RATES: &[Rate] = &[$(Rate {
            name: stringify!($name),
            unit: $unit,
            text: concat!($($text),+),
            default: $default,
            field: |rates| &mut rates.$name,
        },)+];
    };
}

rates! {
    /// Weights and values read from DRAM as bf16, all banks together: streaming kernel of the serving documents.
    dram_bf16: "GB/s" = 464.0,
    /// The same, as bfp8_b, whose tiles are shorter: streaming kernel of the serving documents.
    dram_bfp8: "GB/s" = 414.0,
    /// Clock of the cores: tt-metal GEMM report.
    clock: "GHz" = 1.35,
    /// What a core takes in or gives out over the network on chip: tt-metal NoC tables.
    noc_width: "bytes a cycle" = 64.0,
    /// Shortest distance of two requests of a core: tt-metal#55898.
    noc_request: "cycles" = 16.4,
    /// From one core's result until another core may read it, as one short transfer: tt-metal NoC tables.
    noc_handover: "us" = 0.28,
    /// Matrix engine of a core at HiFi2; LoFi is twice, HiFi4 half as fast: tt-metal GEMM report.
    matrix: "TFLOPS" = 2.7,
    /// Share of it that a kernel reaches: half, as the goals of this project assume; tt-metal#35519 measured 48 % on 110 cores.
    /// The vector unit works in the time that this leaves, so that a larger share hides less of it; a faster `matrix` shortens the
    /// products themselves.
    matrix_reached: "of 1" = 0.5,
    /// One instruction of the vector unit for all values of a tile, 32 lanes at a time: tt-metal#54318.
    vector_pass: "cycles" = 32.0,
    /// exp, exact to bf16: 578 cycles a tile, tt-metal#54318.
    exponential: "passes" = 18.0,
    /// Sigmoid, exact: 1247 cycles a tile, tt-metal#49926.
    sigmoid: "passes" = 39.0,
    /// GELU by tanh, exact: 2012 cycles a tile, tt-metal#49926.
    gelu_tanh: "passes" = 63.0,
    /// GELU by erf, exact: 2847 cycles a tile, tt-metal#49926.
    gelu_erf: "passes" = 89.0,
    /// One tile from two, such as a sum: 178 cycles, tt-metal#49820.
    two_operands: "passes" = 5.6,
    /// Start of a program in a trace: the least of the dispatch golden file of tt-metal; 5.5 with arguments for each core.
    dispatch: "us" = 1.9,
    /// Inputs to the card: golden files of tt-metal.
    host_to_card: "GB/s" = 12.4,
    /// The chunk back, into memory that is not pinned: tt-metal#27846.
    card_to_host: "GB/s" = 7.0,
}

/// A rate that is not the documented one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedRate {
    pub name: &'static str,
    pub unit: &'static str,
    pub value: f64,
    pub default: f64,
}

/// Why a rate is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    #[error("'{text}' is not NAME=VALUE, such as dram_bf16=464")]
    Form { text: String },
    #[error("there is no rate '{name}'; accepted: {}", names())]
    Unknown { name: String },
    #[error("rate {name} is '{value}'; accepted: {LEAST:e} to {}", most(name))]
    Value { name: &'static str, value: String },
    #[error("rate {name} is given twice; give it once")]
    Twice { name: String },
}

/// Bounds of a rate, between which no time overflows or vanishes.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1e12;

/// The rate that is a share, and at most 1.
const SHARE: &str = "matrix_reached";

fn most(name: &str) -> String {
    if name == SHARE { "1".to_owned() } else { format!("{MOST:e}") }
}

fn names() -> String {
    RATES.iter().map(|rate| rate.name).collect::<Vec<_>>().join(", ")
}

impl Rates {
    /// Changes one rate; `text` is `NAME=VALUE`, the value in the rate's unit.
    ///
    /// # Errors
    /// Another form, an unknown name, or a value that is no rate.
    pub fn set(&mut self, text: &str) -> Result<(), RateError> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| RateError::Form { text: text.to_owned() })?;
        let rate = RATES.iter().find(|rate| rate.name == name);
        let rate = rate.ok_or_else(|| RateError::Unknown { name: name.to_owned() })?;
        let most = if rate.name == SHARE { 1.0 } else { MOST };
        let number = value.parse().ok().filter(|number| (LEAST..=most).contains(number));
        *(rate.field)(self) =
            number.ok_or_else(|| RateError::Value { name: rate.name, value: value.to_owned() })?;
        Ok(())
    }

    /// The documented rates with those of `texts` in their place, each `NAME=VALUE`.
    ///
    /// # Errors
    /// As [`Self::set`]; a name that comes twice.
    pub fn with(texts: &[String]) -> Result<Self, RateError> {
        let mut rates = Self::default();
        let mut known = HashSet::new();
        for text in texts {
            rates.set(text)?;
            let name = text.split('=').next().unwrap_or(text);
            if !known.insert(name) {
                return Err(RateError::Twice { name: name.to_owned() });
            }
        }
        Ok(rates)
    }

    /// The rates that are not the documented ones.
    pub fn changed(&self) -> Vec<ChangedRate> {
        let mut own = self.clone();
        let changed = RATES.iter().filter_map(|rate| {
            let value = *(rate.field)(&mut own);
            let Rate { name, unit, default, .. } = *rate;
            (value != default).then_some(ChangedRate { name, unit, value, default })
        });
        changed.collect()
    }

    /// Seconds of so many cycles.
    pub(super) fn cycles(&self, cycles: f64) -> f64 {
        cycles / (self.clock * 1e9)
    }

    /// Seconds of so many passes of the vector unit.
    pub(super) fn passes(&self, passes: f64) -> f64 {
        self.cycles(passes * self.vector_pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_set_by_its_name() {
        assert!(Rates::default().changed().is_empty());
        for rate in RATES {
            let mut rates = Rates::default();
            assert_eq!(*(rate.field)(&mut rates), rate.default);
            let changed = rate.default / 2.0;
            rates.set(&format!("{}={changed}", rate.name)).expect(rate.name);
            assert_eq!(*(rate.field)(&mut rates), changed);
            let found = rates.changed();
            assert_eq!((found.len(), found[0].name), (1, rate.name));
            assert_eq!((found[0].value, found[0].default), (changed, rate.default));
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_what_is_accepted() {
        let error = |text: &str| Rates::default().set(text).expect_err(text).to_string();
        assert_eq!(error("dram"), "'dram' is not NAME=VALUE, such as dram_bf16=464");
        assert!(error("speed=1").starts_with("there is no rate 'speed'; accepted: dram_bf16, "));
        for value in ["0", "-1", "NaN", "inf", "fast", "", "1e300", "1e-320"] {
            let text = error(&format!("clock={value}"));
            assert_eq!(text, format!("rate clock is '{value}'; accepted: 1e-6 to 1e12"));
        }
        assert!(error("matrix_reached=1.1").ends_with("accepted: 1e-6 to 1"));
        let twice = ["clock=1", "dispatch=2", "clock=2"].map(str::to_owned);
        let error = Rates::with(&twice).expect_err("clock comes twice").to_string();
        assert_eq!(error, "rate clock is given twice; give it once");
        assert_eq!(Rates::with(&twice[..2]).expect("two rates").changed().len(), 2);
    }
}
