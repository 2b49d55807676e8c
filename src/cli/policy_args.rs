//! The arguments of every command that loads a policy.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, value_parser};

use super::WrongUsage;
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions};
use crate::backend::blackhole::numerics::{Accumulation, DtypePolicy, MathFidelity};
use crate::backend::cpu::Numerics;
use crate::backend::cpu::card::CardNumerics;
use crate::contract::{Letterbox, Version};
use crate::policy::{Policy, PolicyOptions};
use crate::prepared::{self, Cache};

/// A policy and the numbers that it computes with.
#[derive(Clone, Debug, Args)]
pub struct PolicyArgs {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    backend: BackendArgs,
    /// Numbers that the CPU computes with: its own, or those that a Blackhole card would; default: f32.
    #[arg(long, value_enum)]
    numerics: Option<NumericsArg>,
    #[command(flatten)]
    card: CardArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum BackendArg {
    /// This machine's processor.
    #[default]
    Cpu,
    /// A Tenstorrent Blackhole card.
    Blackhole,
    /// A simulator of one, the library that TT_METAL_SIMULATOR names.
    Sim,
}

/// What computes, and how a card or a simulator is reached.
#[derive(Clone, Debug, Args)]
pub struct BackendArgs {
    /// What computes.
    #[arg(long, value_enum, default_value_t)]
    backend: BackendArg,
    /// Number of the card, from 0.
    #[arg(long)]
    device_id: Option<u32>,
    /// Python that has the packages of device/requirements.txt; default: the one that GR00T_DEVICE_PYTHON names, or
    /// python3.
    #[arg(long)]
    device_python: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NumericsArg {
    /// f32 throughout.
    F32,
    /// Values and weights rounded as the card stores them, sums in its order.
    Card,
}

/// Which policy is loaded.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("checkpoint").required(true).multiple(true))]
pub struct LoadArgs {
    /// Snapshot directory of the checkpoint; default: the released one of --version in the hub cache.
    #[arg(long, env = "GR00T_WEIGHTS_DIR", group = "checkpoint")]
    snapshot: Option<PathBuf>,
    /// Version that the checkpoint has to be of: n15, n16 or n17; any if it is left out.
    #[arg(long, env = "GR00T_VERSION", group = "checkpoint")]
    version: Option<Version>,
    /// Directory with the tokenizer files; default: the snapshot's `tokenizer` folder, the snapshot itself, or the hub cache.
    #[arg(long, env = "GR00T_TOKENIZER_DIR")]
    tokenizer: Option<PathBuf>,
    /// Embodiment tag; may be left out when the checkpoint serves only one.
    #[arg(long, env = "GR00T_EMBODIMENT")]
    embodiment: Option<String>,
    /// Data config, N1.5 only; default: the tag's own, or the only one that fits the checkpoint's metadata.
    #[arg(long)]
    data_config: Option<String>,
    /// Whether frames are padded to squares, N1.7 only: auto (as the checkpoint declares), on or off.
    #[arg(long, default_value_t)]
    letterbox: Letterbox,
    /// Threads of the CPU backend, 0 to 256; 0 means all cores.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u16).range(0..=256))]
    threads: u16,
    /// Compute what no input changes at every start, instead of keeping it in the cache (GR00T_CACHE_DIR).
    #[arg(long)]
    no_cache: bool,
}

/// What the card would be told about numbers.
#[derive(Clone, Debug, Args)]
pub struct CardArgs {
    /// Formats of the card's weights; default: mixed_dit.
    #[arg(long, value_enum)]
    dtype_policy: Option<DtypePolicy>,
    /// Bits of values and weights that the card's matrix engine multiplies; default: hifi2.
    #[arg(long, value_enum)]
    math_fidelity: Option<MathFidelity>,
    /// What the card's sums of products are kept in; default: f32.
    #[arg(long, value_enum)]
    accumulation: Option<Accumulation>,
}

/// Reads a lowest agreement that passes.
pub fn floor(text: &str) -> Result<f64, String> {
    let floor = text.parse().ok().filter(|floor| (0.0..=1.0).contains(floor));
    floor.ok_or_else(|| "a number from 0 to 1 is needed".to_owned())
}

/// Names the numbers of a policy that gave no answer, where they may be why.
pub fn with_numbers<T, E>(policy: &Policy, answer: Result<T, E>) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match answer {
        Err(error) if !policy.is_reference() => {
            Err(anyhow::Error::new(error).context(format!("computed by {}", policy.backend())))
        }
        answer => Ok(answer?),
    }
}

/// Which noise is taken where neither seed nor noise is given.
pub fn seed_help() -> String {
    let default = |version: &Version| format!("{} for {version}", version.default_seed());
    let defaults: Vec<String> = Version::ALL.iter().map(default).collect();
    format!(
        "Seed of the initial noise; overrides the observation's seed or noise. Default: the observation's, or else {}",
        defaults.join(", ")
    )
}

impl PolicyArgs {
    /// # Errors
    /// Numbers of the card are chosen, and not the card's numbers; or a card, and not its numbers.
    pub fn options(&self) -> Result<PolicyOptions, WrongUsage> {
        let options = self.load.options();
        let device = self.backend.device()?;
        if device.is_none() {
            return Ok(PolicyOptions { numerics: self.cpu_numerics()?, ..options });
        }
        if self.numerics == Some(NumericsArg::F32) {
            let wrong =
                "a card does not compute in f32; leave --numerics out, or choose --backend cpu";
            return Err(WrongUsage(wrong.to_owned()));
        }
        let numerics = Numerics::Card(self.card.numerics());
        Ok(PolicyOptions { numerics, device, ..options })
    }

    fn cpu_numerics(&self) -> Result<Numerics, WrongUsage> {
        match (self.numerics, self.card.given()) {
            (Some(NumericsArg::Card), _) => Ok(Numerics::Card(self.card.numerics())),
            (_, None) => Ok(Numerics::F32),
            (_, Some(name)) => Err(WrongUsage(format!(
                "{name} is about the card's numbers; add --numerics card, or leave it out"
            ))),
        }
    }
}

impl LoadArgs {
    /// A policy that computes in f32.
    pub fn options(&self) -> PolicyOptions {
        PolicyOptions {
            snapshot: self.snapshot.clone().unwrap_or_default(),
            tokenizer: self.tokenizer.clone(),
            embodiment: self.embodiment.clone(),
            data_config: self.data_config.clone(),
            letterbox: self.letterbox,
            threads: usize::from(self.threads),
            numerics: Numerics::F32,
            device: None,
            version: self.version,
            usual_instruction: None,
            cache: Cache::new(prepared::default_dir().filter(|_| !self.no_cache)),
        }
    }
}

impl BackendArgs {
    /// The device that computes; `None` for this machine's processor.
    ///
    /// # Errors
    /// A card is chosen by its number, and not to compute.
    pub fn device(&self) -> Result<Option<DeviceOptions>, WrongUsage> {
        let kind = match self.backend {
            BackendArg::Cpu if self.device_id.is_some() => {
                let wrong = "--device-id is about a card; add --backend blackhole, or leave it out";
                return Err(WrongUsage(wrong.to_owned()));
            }
            BackendArg::Cpu => return Ok(None),
            BackendArg::Blackhole => DeviceKind::Card,
            BackendArg::Sim => DeviceKind::Simulator,
        };
        let default = DeviceOptions::new(kind);
        Ok(Some(DeviceOptions {
            device_id: self.device_id.unwrap_or_default(),
            python: self.device_python.clone().unwrap_or(default.python),
            ..default
        }))
    }
}

impl CardArgs {
    pub fn numerics(&self) -> CardNumerics {
        CardNumerics {
            policy: self.dtype_policy.unwrap_or_default(),
            fidelity: self.math_fidelity.unwrap_or_default(),
            accumulation: self.accumulation.unwrap_or_default(),
        }
    }

    /// The first of the arguments that is given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.dtype_policy.is_some(), "--dtype-policy"),
            (self.math_fidelity.is_some(), "--math-fidelity"),
            (self.accumulation.is_some(), "--accumulation"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: PolicyArgs,
    }

    #[test]
    fn threads_have_the_range_of_the_node() {
        let parse = |threads: &str| {
            Line::try_parse_from(["x", "--snapshot", "s", "--threads", threads])
                .map(|line| line.args.load.threads)
        };
        assert_eq!(parse("256").expect("the largest"), 256);
        for wrong in ["257", "-1", "100000"] {
            assert_eq!(parse(wrong).expect_err(wrong).exit_code(), 2);
        }
    }

    #[test]
    fn a_snapshot_or_a_version_is_enough_and_one_is_needed() {
        for enough in [&["--snapshot", "s"][..], &["--version", "n16"]] {
            let both = [&["x"], enough].concat();
            assert!(Line::try_parse_from(both).is_ok(), "{enough:?}");
        }
        let refused = Line::try_parse_from(["x"]).expect_err("neither").to_string();
        assert!(refused.contains("--snapshot") && refused.contains("--version"), "{refused}");
    }

    #[test]
    fn a_card_computes_with_its_own_numbers() {
        let options = |arguments: &[&str]| {
            let line = ["x", "--snapshot", "s"].iter().chain(arguments);
            Line::try_parse_from(line).expect("they parse").args.options()
        };
        assert_eq!(options(&[]).expect("the default").device, None);
        let given =
            ["--backend", "sim", "--math-fidelity", "hifi4", "--device-python", "/opt/python"];
        let sim = options(&given).expect("a simulator");
        let device = sim.device.expect("a device");
        assert_eq!((device.kind, device.device_id), (DeviceKind::Simulator, 0));
        assert_eq!(device.python, PathBuf::from("/opt/python"));
        let hifi4 = CardNumerics { fidelity: MathFidelity::HiFi4, ..CardNumerics::default() };
        assert_eq!(sim.numerics, Numerics::Card(hifi4));
        let card = options(&["--backend", "blackhole", "--device-id", "2"]).expect("a card").device;
        assert_eq!(card.map(|card| (card.kind, card.device_id)), Some((DeviceKind::Card, 2)));
        for wrong in [&["--backend", "sim", "--numerics", "f32"][..], &["--device-id", "1"]] {
            let refused = options(wrong).expect_err("refused").to_string();
            assert!(refused.contains("--backend") && refused.contains("leave"), "{refused}");
        }
    }

    #[test]
    fn numbers_of_the_card_need_the_card() {
        let numerics = |arguments: &[&str]| {
            let line = ["x", "--snapshot", "s"].iter().chain(arguments);
            let options = Line::try_parse_from(line).expect("they parse").args.options();
            options.map(|options| options.numerics)
        };
        assert_eq!(numerics(&[]).expect("the default"), Numerics::F32);
        let default = numerics(&["--numerics", "card"]).expect("the card's defaults");
        assert_eq!(default, Numerics::Card(CardNumerics::default()));
        let all = ["--dtype-policy", "mixed", "--math-fidelity", "lofi", "--accumulation", "bf16"];
        let chosen = numerics(&[&["--numerics", "card"], &all[..]].concat()).expect("chosen");
        assert_eq!(
            chosen,
            Numerics::Card(CardNumerics {
                policy: DtypePolicy::Mixed,
                fidelity: MathFidelity::LoFi,
                accumulation: Accumulation::Bf16,
            })
        );
        for pair in all.chunks(2) {
            let refused = numerics(pair).expect_err(pair[0]).to_string();
            assert!(refused.contains(pair[0]) && refused.contains("--numerics card"), "{refused}");
        }
    }
}
