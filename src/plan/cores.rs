//! What every core has to do, where it stands.

use serde::Serialize;

use crate::backend::blackhole::core_map::{CoreMap, Role};
use crate::backend::blackhole::cost::{Plan, StageCost};
use crate::backend::blackhole::grid::Core;
use crate::program::StageKind;

/// A core and its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreLoad {
    pub x: u8,
    pub y: u8,
    /// As legends have it.
    pub role: &'static str,
    /// Seconds of a request: of arithmetic, or of reading weights.
    pub load_s: f64,
}

/// Loads of the stages that run as programs on all cores, row by row.
pub fn traced(plan: &Plan) -> Vec<CoreLoad> {
    let stages: Vec<&StageCost> =
        plan.counted().filter(|stage| stage.kind != StageKind::Denoise).collect();
    let load = |at: usize| stages.iter().filter_map(|stage| stage.core_s.get(at)).sum();
    let cores = Core::all().enumerate();
    cores.map(|(at, Core { x, y })| CoreLoad { x, y, role: "compute", load_s: load(at) }).collect()
}

/// Loads of the persistent program.
pub fn persistent(plan: &Plan, map: &CoreMap) -> Vec<CoreLoad> {
    let Some(stage) = plan.counted().find(|stage| stage.kind == StageKind::Denoise) else {
        return Vec::new();
    };
    let places: Vec<Core> = map.compute().collect();
    let load = |core: Core| {
        let at = places.iter().position(|place| *place == core);
        at.and_then(|at| stage.core_s.get(at)).copied().unwrap_or_default()
    };
    let cores = Core::all().map(|core| {
        let (role, load_s) = match map.role(core) {
            Role::Reader(_) => ("reader of a bank", stage.memory_s()),
            Role::Hub(_) => ("hub", 0.0),
            Role::Owner(_) => ("owner of columns", load(core)),
            Role::Head(_) => ("heads", load(core)),
            Role::Spare => ("spare", 0.0),
        };
        CoreLoad { x: core.x, y: core.y, role, load_s }
    });
    cores.collect()
}
