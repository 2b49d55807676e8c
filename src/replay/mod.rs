//! Replay validation: a recording goes through the node's own conversion, history and gates, driven by recorded time, and
//! what a policy predicts from it is held against what was recorded.
//!
//! [`run()`] knows no ROS and no time of day: the same recording and parameters give the same [`Report`] and the same
//! chunk file, byte for byte. How long predictions took on this machine is in [`Latency`], apart from these.

mod alternative;
mod borders;
mod bounds;
mod chart;
mod chunk_file;
mod chunks;
mod clock;
mod commands;
mod compared;
mod digest;
mod ended;
mod equality;
mod error;
mod errors;
mod events;
mod facts;
mod findings;
mod formats;
mod html;
mod input_log;
mod instructions;
mod labels;
mod latency;
mod measures;
mod moments;
mod open_loop;
mod outages;
mod output;
mod pictures;
mod player;
mod png;
mod predictions;
mod report;
mod resets;
mod setup;
mod source;
mod svg;
mod wiring;

use std::path::PathBuf;

pub use alternative::{Alternative, Fidelity};
pub use bounds::{Bound, Checked};
pub use digest::digest;
pub use error::ReplayError;
pub use events::Predicted;
pub use instructions::Given;
pub use latency::Latency;
pub use output::write;
pub use report::Report;

use self::alternative::check_embodiments;
use self::commands::Commands;
use self::ended::Ended;
use self::events::Events;
use self::input_log::InputLog;
use self::instructions::Instructions;
use self::labels::Labels;
use self::moments::Moments;
use self::player::Player;
use self::predictions::Predictions;
use self::setup::Setup;
use self::source::{RecordedMessage, Recording};
use self::wiring::Role;
use crate::bag::BagReader;
use crate::node::params::Value;
use crate::node::settings;
use crate::policy::{Policy, PolicyOptions};
use crate::recording::message::read_stamp;

/// A longer recording has no end that is worth waiting for.
const MAX_DAYS: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// When a chunk is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// As the parameters say: `execute_steps`, or else `rate_hz`.
    #[default]
    Parameters,
    /// So many times a second.
    Rate(f64),
    /// At every so many frames of the first camera.
    Frames(u64),
    /// Where a node predicted while the recording was made, with the same instructions and seeds.
    Goals,
}

/// What is to be replayed, and what it is to be compared with.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub bag: PathBuf,
    /// Parameters of the node.
    pub overrides: Vec<(String, Value)>,
    /// Full name of the node, such as `/policy`.
    pub node: String,
    /// Remapping rules, `FROM:=TO`.
    pub remaps: Vec<String>,
    pub pace: Pace,
    pub instructions: Given,
    /// Topic of recorded commands; `None` for the only one of a type that nothing else has.
    pub commands: Option<String>,
    /// Topic of recorded chunks; `None` for the only one.
    pub chunks: Option<String>,
    /// Folder or chunk file of an earlier run.
    pub previous: Option<PathBuf>,
    pub against: Option<Alternative>,
    /// How long after the moment of an observation its chunk counts, for borders and stalls; nanoseconds.
    pub latency_ns: i64,
    pub bounds: Vec<Bound>,
}

/// What has come of it.
pub struct Replay {
    pub report: Report,
    pub latency: Latency,
    /// The bytes of the chunk file.
    pub chunks: Vec<u8>,
    /// Everything that happened, for pictures and tests.
    events: Events,
    commands: Option<Commands>,
    labels: Labels,
    dt_ns: i64,
    execute_steps: usize,
    start_ns: i64,
}

impl Replay {
    pub fn predicted(&self) -> &[Predicted] {
        &self.events.predicted
    }

    /// The bounds that were not kept.
    pub fn broken(&self) -> Vec<String> {
        let broken = self.report.bounds.iter().filter(|checked| !checked.kept);
        broken.map(Checked::complaint).collect()
    }
}

/// Replays the recording that is asked for. `progress` hears of how many nanoseconds of the recording are done, and of
/// how many.
///
/// # Errors
/// See [`ReplayError`].
pub fn run(request: &Request, progress: &dyn Fn(u64, u64)) -> Result<Replay, ReplayError> {
    run_on(BagReader::open(&request.bag)?, request, progress)
}

/// As [`run()`], of its bag that is open already: to open one may mean to unpack it, or to read it whole.
///
/// # Errors
/// See [`ReplayError`].
pub fn run_on(
    bag: BagReader,
    request: &Request,
    progress: &dyn Fn(u64, u64),
) -> Result<Replay, ReplayError> {
    let recording = Recording::of(bag);
    let [start_ns, end_ns] = recording.span().ok_or(ReplayError::Empty)?;
    let days = seconds_since(start_ns, end_ns) / SECONDS_PER_DAY;
    if days > MAX_DAYS {
        return Err(ReplayError::TooLong { days, start_ns, end_ns });
    }
    let previous = request.previous.as_deref().map(output::read_chunks).transpose()?;
    let setup = Setup::new(request, recording.topics())?;
    let recorded = setup.recorded_chunks(&recording)?;
    let looks_back = setup.settings.frame_deltas.iter().any(|delta| *delta != 0);
    let instructions = Instructions::new(
        &request.instructions,
        setup.params.text("instruction"),
        &recorded,
        looks_back,
        start_ns,
    );
    if instructions.are_none() {
        let text = "there is no instruction: the parameter 'instruction' is empty and the recording has no chunks that \
                    name one; give --instruction TEXT";
        return Err(ReplayError::Usage(text.to_owned()));
    }

    let policy = Policy::load(&setup.options)?;
    check_instructions(&policy, &instructions)?;
    let chunk_run = chunk_file::Run {
        version: policy.version().name().to_owned(),
        embodiment: policy.embodiment().tag.clone(),
        dt_ns: setup.settings.dt_ns,
    };
    if let Some(previous) = previous.as_ref().filter(|previous| previous.run != chunk_run) {
        let (name, found) = (previous.name.clone(), previous.run.to_string());
        return Err(ReplayError::OtherRun { name, found, wanted: chunk_run.to_string() });
    }
    let other_options = other_options(request, &setup, &policy)?;
    let other = other_options.as_ref().map(|options| other_policy(options, &policy)).transpose()?;
    let on_violation = settings::on_violation(&setup.params);
    let seed = settings::seed(&setup.params, policy.version());
    let when = setup.when(request.pace)?;
    let origin = instructions.origin;
    let moments = Moments::new(when, recorded);
    let frame_shapes = policy.frame_shapes();
    let mut predictions = Predictions::new(policy, other, &setup.settings, on_violation);
    let mut player = Player::new(&setup, frame_shapes, seed, moments, instructions, start_ns);
    let commands =
        play(&recording, &setup, &mut player, &mut predictions, [start_ns, end_ns], progress)?;
    let Player { events, .. } = player;

    let labels = Labels::new(&setup.settings);
    let latency = Latency::new(&predictions, &events, start_ns);
    let chunks = chunk_file::bytes(&events.predicted, &chunk_run).map_err(ReplayError::Usage)?;
    let ended = Ended {
        request,
        setup: &setup,
        policy: predictions.policy(),
        other: other_options.as_ref(),
        when,
        seed,
        origin,
        span: [start_ns, end_ns],
        commands: commands.as_ref(),
        labels: &labels,
    };
    let report = ended.report(&events, previous);
    let (dt_ns, execute_steps) = (setup.settings.dt_ns, setup.execute_steps());
    Ok(Replay { report, latency, chunks, events, commands, labels, dt_ns, execute_steps, start_ns })
}

/// Hands every wanted message to the player, in the order of reception. Gives back the recorded commands.
fn play(
    recording: &Recording,
    setup: &Setup,
    player: &mut Player,
    predictions: &mut Predictions,
    [start_ns, end_ns]: [i64; 2],
    progress: &dyn Fn(u64, u64),
) -> Result<Option<Commands>, ReplayError> {
    let wiring = &setup.wiring;
    let mut commands =
        wiring.commands.as_ref().and_then(|topic| Commands::of_type(&topic.message_type));
    let topics = recording.topics();
    let predict: &mut player::Predict = &mut |events, seen| predictions.predict(events, seen);
    let total = u64::try_from(end_ns - start_ns).unwrap_or(0);
    let mut messages = recording.messages(&wiring.wanted())?;
    for message in messages.by_ref() {
        let RecordedMessage { topic, log_ns, data } = message?;
        if !(start_ns..=end_ns).contains(&log_ns) {
            let topic = topics[topic].name.clone();
            return Err(ReplayError::OutsideSpan { topic, log_ns, start_ns, end_ns });
        }
        player.until(log_ns, predict);
        for role in wiring.roles_of(topic) {
            match role {
                Role::Camera(number) => player.camera(number, log_ns, data.clone(), predict),
                Role::State(number) => player.state(number, log_ns, &data, predict),
                Role::Transforms { fixed } => player.transforms(fixed, log_ns, &data, predict),
                Role::Clock => match read_stamp(&data) {
                    Ok(time) => player.tick(time.nanoseconds(), log_ns, predict),
                    Err(error) => unread(player, &topics[topic].name, &error.to_string(), log_ns),
                },
                Role::Commands => {
                    let ros_ns = player.now_ns(log_ns);
                    let taken = commands.as_mut().map(|known| known.take(&data, log_ns, ros_ns));
                    if let Some(Err(reason)) = taken {
                        unread(player, &topics[topic].name, &reason, log_ns);
                    }
                }
                // They were read before.
                Role::Chunks => {}
            }
        }
        progress(u64::try_from(log_ns - start_ns).unwrap_or(0).min(total), total);
    }
    player.finish(end_ns, predict);
    player.events.notes = messages.notes();
    if let Some(commands) = &mut commands {
        commands.sort();
    }
    Ok(commands)
}

fn unread(player: &mut Player, topic: &str, reason: &str, log_ns: i64) {
    let logs = &mut player.events.unread;
    let place = logs.iter().position(|log| log.topic == topic).unwrap_or_else(|| {
        logs.push(InputLog::new(topic, topic, ""));
        logs.len() - 1
    });
    logs[place].refused(reason, log_ns, log_ns);
}

fn check_instructions(policy: &Policy, instructions: &Instructions) -> Result<(), ReplayError> {
    let check = policy.instruction_check();
    for text in instructions.texts() {
        check(text).map_err(|error| {
            ReplayError::Usage(format!("the instruction \"{text}\" cannot be used: {error}"))
        })?;
    }
    Ok(())
}

/// How the policy is loaded that the first one is compared with, if there is one.
fn other_options(
    request: &Request,
    setup: &Setup,
    policy: &Policy,
) -> Result<Option<PolicyOptions>, ReplayError> {
    let Some(alternative) = &request.against else { return Ok(None) };
    let mut options = alternative.apply(&setup.options).map_err(ReplayError::Usage)?;
    options.embodiment = Some(policy.embodiment().tag.clone());
    Ok(Some(options))
}

fn other_policy(options: &PolicyOptions, policy: &Policy) -> Result<Policy, ReplayError> {
    let other = Policy::load(options).map_err(|error| ReplayError::Against(Box::new(error)))?;
    check_embodiments(policy.embodiment(), other.embodiment()).map_err(ReplayError::Usage)?;
    Ok(other)
}

/// Seconds since the recording's start.
fn seconds_since(start_ns: i64, log_ns: i64) -> f64 {
    log_ns.saturating_sub(start_ns) as f64 / 1e9
}
