//! The statuses of the running node.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::core::Core;
use super::super::graph::namesakes;
use super::super::instruction::INSTRUCTION;
use super::super::lifecycle::machine::State;
use super::super::runtime::{Shared, locked};
use super::super::sensors::transform_name;
use super::super::settings;
use super::super::stats::InputStats;
use super::device;
use super::engine::{Activity, EngineView};
use super::input::InputView;
use super::status::{Level, Status};
use crate::history::{Input, Moment, Waiting, WaitingFor};
use crate::observations::Counts;

/// The node's name, every input, the engine and the backend.
pub fn report(core: &Core, state: State) -> Vec<Status> {
    let names = Names(core.node_name.trim_start_matches('/'));
    let mut statuses = vec![node_name(core, &names)];
    match core.configured() {
        None => {
            statuses.push(Status::new(names.of("engine"), Level::Ok, state.label()));
            statuses.push(not_configured(core, &names, state));
        }
        Some(shared) => {
            statuses.extend(if state == State::Active {
                active(core, &shared, &names)
            } else {
                inactive(&shared, &names, state)
            });
            statuses.push(backend(core, &shared, &names));
        }
    }
    statuses
}

/// Whether the node is the only one of its name.
fn node_name(core: &Core, names: &Names<'_>) -> Status {
    let others = core.namesakes.load(Ordering::Relaxed);
    let (level, message) = match others {
        0 => (Level::Ok, format!("no other node has the name {}", core.node_name)),
        _ => (Level::Warn, namesakes::sentence(&core.node_name, others)),
    };
    let mut status = Status::new(names.of("node name"), level, message);
    status.value("other nodes of this name", others);
    status
}

/// Of the parts of the node.
struct Names<'a>(&'a str);

impl Names<'_> {
    fn of(&self, part: &str) -> String {
        format!("{}: {part}", self.0)
    }

    fn camera(&self, key: &str) -> String {
        self.of(&format!("camera {key}"))
    }

    fn state(&self, topic: &str) -> String {
        self.of(&format!("state {topic}"))
    }
}

fn inactive(shared: &Shared, names: &Names<'_>, state: State) -> Vec<Status> {
    let settings = &shared.settings;
    let cameras = settings.cameras.iter().map(|camera| names.camera(&camera.key));
    let states = settings.states.iter().map(|state| names.state(&state.topic));
    let transforms = settings.transforms.iter().map(|of| names.state(&transform_name(of)));
    let inputs = cameras.chain(states).chain(transforms);
    let message = format!("not subscribed: the node is {}", state.label());
    let mut statuses: Vec<Status> =
        inputs.map(|name| Status::new(name, Level::Ok, message.clone())).collect();
    statuses.push(Status::new(names.of("engine"), Level::Ok, state.label()));
    statuses
}

fn active(core: &Core, shared: &Shared, names: &Names<'_>) -> Vec<Status> {
    let activity = activity(core, shared);
    let (waiting, now) = waiting(shared, activity);
    let mut statuses = inputs(shared, names, &waiting, now);
    let view = EngineView {
        name: names.of("engine"),
        stats: &shared.monitor.engine(),
        counts: &shared.counters.named(),
        causes: &shared.counters.refused_observations,
        waiting: Some(&waiting).filter(|waiting| !waiting.0.is_empty()),
        activity,
        now_ns: now.steady_ns,
    };
    statuses.push(view.status());
    statuses
}

fn activity(core: &Core, shared: &Shared) -> Activity {
    if core.goal_runs.load(Ordering::Acquire) {
        Activity::Goal
    } else if shared.settings.period_ns.is_none() {
        Activity::Idle
    } else if shared.monitor.engine().timer_waits {
        Activity::Rests
    } else {
        Activity::Timer
    }
}

/// What keeps an observation from being made now, which is empty if nothing does, and the moment. Only the timer needs
/// the instruction of the parameters.
fn waiting(shared: &Shared, activity: Activity) -> (Waiting, Moment) {
    let (instruction, gates) = {
        let params = locked(&shared.params);
        (params.text(INSTRUCTION).to_owned(), settings::gates(&params))
    };
    let instruction = if activity == Activity::Timer { &instruction } else { "of a goal" };
    let mut sensors = locked(&shared.sensors);
    let now = shared.clock.now();
    (sensors.observation(now, instruction, &gates).err().unwrap_or_default(), now)
}

fn inputs(shared: &Shared, names: &Names<'_>, waiting: &Waiting, now: Moment) -> Vec<Status> {
    let settings = &shared.settings;
    let gates = settings::gates(&locked(&shared.params));
    let findings = shared.graph.findings();
    let lack_of = |input: &str| {
        let of_input = |lack: &&WaitingFor| {
            !matches!(lack, WaitingFor::Clock | WaitingFor::Instruction) && lack.input() == input
        };
        waiting.0.iter().find(of_input)
    };
    let view = |name: String, lack_name: &str, topic: &str, stats: &InputStats, limit_ns: i64| {
        let view = InputView {
            name,
            topic,
            stats,
            lack: lack_of(lack_name),
            limit_ns,
            graph: findings.iter().find(|found| found.topic == topic),
            now,
        };
        view.status()
    };
    let cameras = settings.cameras.iter().zip(&shared.topics.cameras).enumerate();
    let cameras = cameras.map(|(number, (camera, topic))| {
        let stats = shared.monitor.input(Input::Camera(number));
        let name = names.camera(&camera.key);
        view(name, &camera.key, &topic.name, &stats, gates.camera_max_age_ns)
    });
    let states = settings.states.iter().zip(&shared.topics.states).enumerate();
    let states = states.map(|(number, (state, topic))| {
        let stats = shared.monitor.input(Input::State(number));
        let name = names.state(&state.topic);
        view(name, &state.topic, &topic.name, &stats, gates.state_max_age_ns)
    });
    // All transforms share their topics, and the numbers of those.
    let transforms = settings.transforms.iter().map(|wanted| {
        let place = transform_name(wanted);
        let stats = shared.monitor.transforms();
        view(names.state(&place), &place, "/tf", &stats, gates.state_max_age_ns)
    });
    cameras.chain(states).chain(transforms).collect()
}

/// A device that is being started, which may take minutes, is told of already.
fn not_configured(core: &Core, names: &Names<'_>, state: State) -> Status {
    let message = match state {
        State::Configuring => "the policy is being configured",
        _ => "no policy is configured",
    };
    let mut status = Status::new(names.of("backend"), Level::Ok, message);
    if let Some(board) = core.device() {
        device::add(&mut status, &board.read(), Instant::now());
    }
    status
}

fn backend(core: &Core, shared: &Shared, names: &Names<'_>) -> Status {
    let mut status = Status::new(names.of("backend"), Level::Ok, shared.backend.clone());
    let params = locked(&shared.params);
    status.value("version", shared.version.name());
    status.value("embodiment", &shared.embodiment.tag);
    status.value("backend", &shared.backend);
    status.value("fidelity", &shared.fidelity);
    status.value("snapshot", shared.snapshot.display());
    if let Some(recorder) = &*locked(&shared.recorder) {
        let Counts { recorded, dropped, ended } = recorder.counts();
        status.value("predictions recorded", recorded);
        status.value("predictions not recorded", dropped);
        if let Some(reason) = ended {
            status.level = Level::Warn;
            status.message = format!("the recording of observations has ended: {reason}");
        }
    }
    let threads = match params.integer("threads") {
        0 => "all cores".to_owned(),
        threads => threads.to_string(),
    };
    status.value("threads", threads);
    status.value_if("memory [MiB]", resident_mib());
    if let Some(board) = core.device() {
        device::add(&mut status, &board.read(), Instant::now());
    }
    status.value("debug images", shared.monitor.debug_images.load(Ordering::Relaxed));
    status
}

/// Memory of this process that is in RAM.
fn resident_mib() -> Option<u64> {
    const KIB_PER_MIB: u64 = 1024;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / KIB_PER_MIB)
}
