//! What computes: this machine's processor, a card, or a simulator of one.

use clap::ValueEnum;

use super::super::params::Params;
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions};
use crate::backend::blackhole::numerics::{Accumulation, DtypePolicy, MathFidelity};
use crate::backend::cpu::Numerics;
use crate::backend::cpu::card::CardNumerics;

/// Numbers that requests are computed with: a card has its own.
pub fn numerics(params: &Params) -> Numerics {
    match kind(params) {
        None => Numerics::F32,
        Some(_) => Numerics::Card(CardNumerics {
            policy: chosen::<DtypePolicy>(params, "dtype_policy"),
            fidelity: chosen::<MathFidelity>(params, "math_fidelity"),
            accumulation: Accumulation::default(),
        }),
    }
}

/// The device; `None` for the CPU.
pub fn device(params: &Params) -> Option<DeviceOptions> {
    let default = DeviceOptions::new(kind(params)?);
    let python = Some(params.text("device_python")).filter(|python| !python.is_empty());
    Some(DeviceOptions {
        // Its range fits.
        device_id: u32::try_from(params.integer("device_id")).unwrap_or(0),
        python: python.map_or(default.python, Into::into),
        watchdog_factor: params.double("watchdog_factor"),
        ..default
    })
}

fn kind(params: &Params) -> Option<DeviceKind> {
    DeviceKind::of_name(params.text("backend"))
}

/// A choice whose names are those of the table.
fn chosen<T: ValueEnum + Default>(params: &Params, name: &str) -> T {
    T::from_str(params.text(name), false).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::params::Value;
    use super::*;

    fn params(given: &[(&str, Value)]) -> Params {
        let overrides = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Params::new(overrides.collect()).expect("parameters")
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn the_cpu_computes_in_f32_whatever_a_card_would_do() {
        let params = params(&[("dtype_policy", text("bf16")), ("device_id", Value::Integer(3))]);
        assert_eq!((numerics(&params), device(&params)), (Numerics::F32, None));
    }

    #[test]
    fn a_device_computes_with_its_own_numbers() {
        let given = [
            ("backend", text("sim")),
            ("device_id", Value::Integer(3)),
            ("device_python", text("/opt/python")),
            ("dtype_policy", text("mixed")),
            ("math_fidelity", text("hifi4")),
            ("watchdog_factor", Value::Double(5.0)),
        ];
        let params = params(&given);
        let device = device(&params).expect("a device");
        assert_eq!((device.kind, device.device_id), (DeviceKind::Simulator, 3));
        assert_eq!((device.python, device.watchdog_factor), ("/opt/python".into(), 5.0));
        let expected = CardNumerics {
            policy: DtypePolicy::Mixed,
            fidelity: MathFidelity::HiFi4,
            accumulation: Accumulation::F32,
        };
        assert_eq!(numerics(&params), Numerics::Card(expected));
    }

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        let params = params(&[("backend", text("blackhole"))]);
        assert_eq!(device(&params), Some(DeviceOptions::new(DeviceKind::Card)));
        assert_eq!(numerics(&params), Numerics::Card(CardNumerics::default()));
    }

    #[test]
    fn every_choice_is_understood() {
        for name in DtypePolicy::NAMES {
            let params = params(&[("dtype_policy", text(name))]);
            assert_eq!(chosen::<DtypePolicy>(&params, "dtype_policy").name(), name);
        }
        for name in MathFidelity::NAMES {
            let params = params(&[("math_fidelity", text(name))]);
            assert_eq!(chosen::<MathFidelity>(&params, "math_fidelity").name(), name);
        }
    }
}
