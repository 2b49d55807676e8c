//! `doctor`: whether this machine, this checkpoint, these parameters and the robot's topics suit the node.
//!
//! Each check is a function of what was read, listed or heard, and gives one [`Finding`] or more with the fix.

mod checkpoint;
mod device_python;
mod distributions;
pub mod finding;
mod given;
mod machine;
mod middleware;
mod network;
mod profile;
mod shared_memory;
mod simulator;
pub mod system;
mod tenstorrent;

#[cfg(any(feature = "ros", test))]
mod input;
#[cfg(feature = "ros")]
mod live;
#[cfg(feature = "ros")]
mod read;
#[cfg(any(feature = "ros", test))]
mod topics;

use anyhow::Result;

pub use finding::{Finding, Level, Report};
pub use system::System;

use self::profile::Profile;
use crate::backend::blackhole::device::DeviceOptions;
#[cfg(not(feature = "ros"))]
use crate::cli::WrongUsage;
use crate::encode::FrameShapes;
use crate::node::params::{Params, Value};
use crate::node::settings::{self, Settings, Transport};

/// What is to be examined.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Parameters of the node that stand on the command line as options; they override those of `ros_args`.
    pub overrides: Vec<(String, Value)>,
    /// Arguments of the node from `--ros-args` on; empty if there is no node to be examined.
    pub ros_args: Vec<String>,
    /// How long topics are listened to (seconds).
    pub seconds: f64,
}

/// Makes all checks, in the order in which they build on one another.
///
/// # Errors
/// Wrong usage, or a ROS graph that cannot be joined; what is wrong with the machine is a finding.
pub fn examine(system: &System, request: &Request) -> Result<Report> {
    let mut live = Robot::new(&request.ros_args)?;
    let mut findings = machine::processor(system);
    let mut overrides = live.overrides();
    overrides.retain(|(name, _)| request.overrides.iter().all(|(other, _)| other != name));
    overrides.extend(request.overrides.iter().cloned());

    let with_node = !request.ros_args.is_empty();
    let wiring = wiring(overrides, with_node);
    findings.extend(wiring.findings);
    findings.push(machine::memory(system, wiring.weight_bytes));
    findings.push(machine::disk(system));

    let raw_cameras = wiring.settings.as_ref().map(raw_cameras);
    findings.extend(middleware::checks(system));
    findings.extend(network::checks(system, raw_cameras));
    let mut profile = Profile::default();
    if middleware::is_fast_dds(system) {
        let (finding, found) = profile::check(system);
        findings.push(finding);
        profile = found;
    }
    findings.extend(shared_memory::checks(system, profile, raw_cameras));
    findings.extend(tenstorrent::checks(system, wiring.device.as_ref()));

    match (wiring.params, wiring.settings) {
        (Some(params), Some(settings)) => {
            let shapes = &wiring.frame_shapes;
            findings.extend(live.check(settings, shapes, params, request.seconds)?);
        }
        _ if with_node => {
            let found = "not looked at, since the parameters do not say which there are";
            findings.push(Finding::warn("topics", found, "mend what is said above"));
        }
        _ => findings.push(Robot::not_asked()),
    }
    Ok(Report { findings })
}

/// What the parameters come to.
#[derive(Default)]
struct Wiring {
    findings: Vec<Finding>,
    weight_bytes: Option<u64>,
    params: Option<Params>,
    /// The card or simulator that the node would open.
    device: Option<DeviceOptions>,
    /// How the node would be wired, if all is well so far.
    settings: Option<Settings>,
    frame_shapes: FrameShapes,
}

fn wiring(overrides: Vec<(String, Value)>, with_node: bool) -> Wiring {
    let mut wiring = Wiring::default();
    if overrides.is_empty() && !with_node {
        let fix = "--snapshot DIR, or the node's own arguments: --ros-args --params-file FILE";
        wiring.findings.push(Finding::warn("checkpoint", "none is given", fix));
        return wiring;
    }
    let mut params = match given::parameters(overrides) {
        Ok(params) => params,
        Err(findings) => {
            wiring.findings = findings;
            return wiring;
        }
    };
    let options = match given::policy_options(&params) {
        Ok(options) => options,
        Err(finding) => {
            wiring.findings.push(finding);
            return wiring;
        }
    };
    wiring.device = options.device.clone();
    let (findings, opened) = checkpoint::check(&options, with_node);
    wiring.findings = findings;
    wiring.weight_bytes = opened.bytes;
    wiring.frame_shapes = opened.frame_shapes;
    // Without the node's own arguments nothing says which joints and topics the robot has.
    let Some(embodiment) = opened.embodiment.filter(|_| with_node) else { return wiring };
    let gate = settings::gate(&params);
    wiring.findings.extend(checkpoint::golden(&gate, &options, &embodiment));
    match given::settings(&mut params, &embodiment) {
        Ok(settings) => {
            wiring.findings.push(given::fine(&settings));
            wiring.params = Some(params);
            wiring.settings = Some(settings);
        }
        Err(findings) => wiring.findings.extend(findings),
    }
    wiring
}

fn raw_cameras(settings: &Settings) -> usize {
    settings.cameras.iter().filter(|camera| camera.transport == Transport::Raw).count()
}

/// The robot's topics, where the build can hear them and the node's arguments name them.
struct Robot {
    #[cfg(feature = "ros")]
    live: Option<live::Live>,
}

#[cfg(feature = "ros")]
impl Robot {
    fn new(ros_args: &[String]) -> Result<Self> {
        let live = if ros_args.is_empty() { None } else { Some(live::Live::new(ros_args)?) };
        Ok(Self { live })
    }

    fn overrides(&self) -> Vec<(String, Value)> {
        self.live.as_ref().map(live::Live::overrides).unwrap_or_default()
    }

    fn check(
        &mut self,
        settings: Settings,
        shapes: &FrameShapes,
        params: Params,
        seconds: f64,
    ) -> Result<Vec<Finding>> {
        match &mut self.live {
            Some(live) => live.check(settings, shapes, params, seconds),
            None => Ok(Vec::new()),
        }
    }

    fn not_asked() -> Finding {
        let fix = "give the node's own arguments: --ros-args --params-file FILE";
        Finding::warn("topics", "not looked at, since no parameters name them", fix)
    }
}

#[cfg(not(feature = "ros"))]
impl Robot {
    fn new(ros_args: &[String]) -> Result<Self> {
        match ros_args.first() {
            None => Ok(Self {}),
            Some(first) => {
                let text = format!(
                    "'{first}' cannot be used: this build is without ROS; build it with the feature ros"
                );
                Err(WrongUsage(text).into())
            }
        }
    }

    fn overrides(&self) -> Vec<(String, Value)> {
        Vec::new()
    }

    fn check(&mut self, _: Settings, _: &FrameShapes, _: Params, _: f64) -> Result<Vec<Finding>> {
        Ok(vec![Self::not_asked()])
    }

    fn not_asked() -> Finding {
        let fix = "build with the feature ros to have them checked";
        Finding::warn("topics", "left out, since this build is without ROS", fix)
    }
}

#[cfg(test)]
mod tests;
