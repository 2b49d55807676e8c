//! The node's parameters, as `--ros-args` give them: what the node would load, and how it would be wired.

use super::finding::Finding;
use crate::contract::Embodiment;
use crate::node::params::{ParamError, ParamErrors, Params, Value};
use crate::node::settings::{self, Settings};
#[cfg(feature = "ros")]
use crate::node::{remap::Remaps, topics::Topics};
use crate::policy::PolicyOptions;

const SUBJECT: &str = "parameters";
const FIX: &str =
    "mend it in the parameter file or behind -p; config/default.yaml explains every parameter";

/// Checks the parameters by themselves.
///
/// # Errors
/// One finding for each that is wrong.
pub fn parameters(overrides: Vec<(String, Value)>) -> Result<Params, Vec<Finding>> {
    Params::new(overrides).map_err(failures)
}

/// What the node would load.
///
/// # Errors
/// Neither a snapshot nor a version is given.
pub fn policy_options(params: &Params) -> Result<PolicyOptions, Finding> {
    settings::policy_options(params).ok_or_else(|| {
        let fix = "give the snapshot directory of the checkpoint (--snapshot DIR, or in the parameter file), or the parameter version for the released one in the hub cache";
        Finding::fail("checkpoint", "parameter 'snapshot' is empty, and 'version' is auto", fix)
    })
}

/// Checks the parameters against the robot, and gives its wiring.
///
/// # Errors
/// One finding for each parameter that does not fit.
pub fn settings(params: &mut Params, embodiment: &Embodiment) -> Result<Settings, Vec<Finding>> {
    params.declare_robot(&settings::names(embodiment)).map_err(failures)?;
    Settings::new(params, embodiment).map_err(failures)
}

/// Checks the quality of service that parameters give to the topics, whose names are known on the graph only.
///
/// # Errors
/// One finding for each parameter that does not fit.
#[cfg(feature = "ros")]
pub fn topics(
    settings: &Settings,
    remaps: &Remaps,
    params: &mut Params,
) -> Result<Topics, Vec<Finding>> {
    Topics::overridden(settings, remaps, params).map_err(failures)
}

/// What is fine about parameters that fit the robot.
pub fn fine(settings: &Settings) -> Finding {
    let (cameras, states) = (settings.cameras.len(), settings.states.len());
    let transforms = settings.transforms.len();
    let found = format!(
        "they fit the robot: {cameras} camera topics, {states} state topics, {transforms} transforms"
    );
    Finding::ok(SUBJECT, found)
}

fn failures(errors: ParamErrors) -> Vec<Finding> {
    let failure = |error: &ParamError| Finding::fail_as_told(SUBJECT, &error.to_string(), FIX);
    errors.0.iter().map(failure).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn text(name: &str, value: &str) -> (String, Value) {
        (name.to_owned(), Value::Text(value.to_owned()))
    }

    #[test]
    fn every_wrong_parameter_has_its_line() {
        let wrong = vec![text("rate_Hz", "1"), ("seed".to_owned(), Value::Integer(-5))];
        let findings = parameters(wrong).expect_err("two");
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].contains("'rate_Hz' does not exist — did you mean 'rate_hz'?"),
            "{lines:?}"
        );
        assert!(lines[1].contains("'seed' is -1 or more, not -5 — mend it"), "{lines:?}");
    }

    #[test]
    fn the_checkpoint_is_that_of_the_node() {
        let params =
            parameters(vec![text("snapshot", "/s"), text("version", "n17")]).expect("fine");
        let options = policy_options(&params).expect("options");
        assert_eq!(options.snapshot, std::path::Path::new("/s"));
        assert_eq!(options.version, Some(crate::contract::Version::N17));
        assert_eq!((options.tokenizer, options.embodiment), (None, None));
        let released = parameters(vec![text("version", "n16")]).expect("fine");
        let options = policy_options(&released).expect("options");
        assert!(options.snapshot.as_os_str().is_empty(), "{options:?}");
        let missing = policy_options(&parameters(vec![]).expect("fine")).expect_err("no snapshot");
        assert_eq!(missing.level, Level::Fail);
    }
}
