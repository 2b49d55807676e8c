//! The node at work: its subscriptions, services, timer and threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use r2r::{Node, QosProfile, Timer};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{info, warn};

use super::guarded::guarded;
use super::instruction::INSTRUCTION;
use super::intake::Intake;
use super::messages::TfMessage;
use super::param_services::{self, ParamChanges};
use super::params::Params;
use super::publish::{Publishers, Ticket};
use super::runtime::{Counters, NodeClock, Shared, Throttle, WARNING_PERIOD, and_more, locked};
use super::sensors::{Sensors, transform_name};
use super::settings::{self, Settings};
use super::worker::{Failure, Worker};
use super::{inputs, services};
use crate::contract::{ActionChunk, Noise, PredictOptions};
use crate::encode::EncodeError;
use crate::history::{Sighting, seconds};
use crate::policy::{Policy, PolicyError};

/// How long one wait for messages lasts; the node looks at this interval whether it is to end.
const SPIN: Duration = Duration::from_millis(20);
/// A prediction that runs when the node is to end gets this long to notice.
const STOP_LIMIT: Duration = Duration::from_millis(1500);

/// The node at work.
pub struct Running {
    shared: Arc<Shared>,
    worker: SharedWorker,
    spinning: Arc<AtomicBool>,
    spinner: std::thread::JoinHandle<()>,
}

/// `None` once the node ends.
type SharedWorker = Arc<Mutex<Option<Worker<Ticket>>>>;

impl Running {
    /// Starts everything. What cannot be lived with is sent to the receiver that is returned.
    ///
    /// # Errors
    /// What ROS refuses, such as the name of a topic.
    pub fn start(
        runtime: &Runtime,
        mut node: Node,
        policy: Policy,
        params: Params,
        mut settings: Settings,
    ) -> Result<(Self, UnboundedReceiver<String>)> {
        let simulated = params.bool("use_sim_time");
        if simulated {
            node.get_time_source().enable_sim_time(&mut node)?;
        }
        settings.resolve_topics(&node.namespace()?, &node.fully_qualified_name()?);
        let publishers = Publishers::new(&mut node, &settings)?;
        let shared = Arc::new(Shared {
            clock: NodeClock::new(node.get_ros_clock()),
            version: policy.version(),
            embodiment: policy.embodiment().clone(),
            served: policy.served().to_vec(),
            backend: policy.backend(),
            noise_shape: policy.noise_shape(),
            instruction_check: policy.instruction_check(),
            sensors: Mutex::new(Sensors::new(&settings)),
            intake: start_intake(&policy, &settings)?,
            settings,
            params: Mutex::new(params),
            counters: Counters::default(),
        });
        subscribe(runtime, &mut node, &shared)?;
        serve(runtime, &mut node, &shared)?;
        let (fault, faults) = unbounded_channel();
        let worker = Arc::new(Mutex::new(Some(start_worker(policy, &shared, publishers, &fault)?)));
        if let Some(rate_hz) = shared.settings.rate_hz {
            let period = Duration::from_secs_f64(1.0 / rate_hz);
            let timer =
                if simulated { node.create_timer(period) } else { node.create_wall_timer(period) };
            runtime.spawn(predict_on_time(timer?, shared.clone(), worker.clone()));
        }
        info!(
            "{} for '{}' on {}, ready as {}",
            shared.version,
            shared.embodiment.tag,
            shared.backend,
            node.fully_qualified_name()?
        );
        let spinning = Arc::new(AtomicBool::new(true));
        let spinner = spin(node, spinning.clone(), fault)?;
        Ok((Self { shared, worker, spinning, spinner }, faults))
    }

    /// Ends everything; `false` if a prediction did not stop in time.
    pub fn stop(self) -> bool {
        let worker = locked(&self.worker).take();
        let stopped = worker.is_none_or(|worker| worker.stop(STOP_LIMIT));
        self.spinning.store(false, Ordering::Release);
        // A spinner that panicked has nothing left to end.
        let _ = self.spinner.join();
        info!("ended; {}", self.shared.counters);
        stopped
    }
}

/// The thread that waits for messages and hands them out.
fn spin(
    mut node: Node,
    go_on: Arc<AtomicBool>,
    fault: UnboundedSender<String>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("ros-spin".to_owned()).spawn(move || {
        let spun = catch_unwind(AssertUnwindSafe(|| {
            while go_on.load(Ordering::Acquire) {
                node.spin_once(SPIN);
            }
        }));
        if spun.is_err() {
            // Nobody listens when the node ends anyway.
            let _ = fault.send("the thread that receives messages panicked".to_owned());
        }
    })
}

fn start_worker(
    policy: Policy,
    shared: &Arc<Shared>,
    publishers: Publishers,
    fault: &UnboundedSender<String>,
) -> std::io::Result<Worker<Ticket>> {
    let mut warnings = Throttle::new(WARNING_PERIOD);
    let known = shared.clone();
    let done = move |ticket: Ticket, outcome: Result<ActionChunk, Failure<PolicyError>>| {
        let failure = match outcome {
            Ok(mut chunk) => match guarded(&known, &ticket.state, &mut chunk) {
                Ok(()) => return publishers.publish(&known, &ticket, &chunk),
                Err(violation) => violation.to_string(),
            },
            Err(Failure::Cancelled) => return,
            Err(failure) => failure.to_string(),
        };
        known.counters.failed_predictions.fetch_add(1, Ordering::Relaxed);
        if let Some(held_back) = warnings.pass() {
            warn!("no chunk: {failure}{}", and_more(held_back));
        }
    };
    let fault = fault.clone();
    let ended = move |reason| drop(fault.send(reason));
    Worker::spawn(policy, done, ended)
}

/// What is wrong with a frame is logged as soon as it is seen; the request that needs the frame fails by itself.
fn start_intake(policy: &Policy, settings: &Settings) -> std::io::Result<Option<Intake>> {
    let Some(encoder) = policy.intake() else { return Ok(None) };
    let mut warnings = Throttle::new(WARNING_PERIOD);
    let refused = move |error: EncodeError| {
        if let Some(held_back) = warnings.pass() {
            warn!("a frame is of no use: {error}{}", and_more(held_back));
        }
    };
    let cameras = settings.cameras.iter().map(|camera| camera.key.clone()).collect();
    Intake::spawn(cameras, encoder, refused).map(Some)
}

/// One task per topic.
fn subscribe(runtime: &Runtime, node: &mut Node, shared: &Arc<Shared>) -> Result<()> {
    for (number, camera) in shared.settings.cameras.iter().enumerate() {
        let message_type = camera.transport.message_type();
        let messages = node
            .subscribe_raw(&camera.topic, message_type, QosProfile::sensor_data())
            .with_context(|| {
            format!("cannot subscribe to '{}' of camera '{}'", camera.topic, camera.key)
        })?;
        info!("camera '{}' on {} ({message_type})", camera.key, camera.topic);
        runtime.spawn(inputs::read_camera(shared.clone(), number, messages));
    }
    for (number, state) in shared.settings.states.iter().enumerate() {
        let groups = format!("state {}", state.reader.groups().join(", "));
        let message_type = state.reader.message_type();
        let messages = node
            .subscribe_raw(&state.topic, message_type, QosProfile::sensor_data())
            .with_context(|| format!("cannot subscribe to {} on '{}'", groups, state.topic))?;
        info!("{groups} on {} ({message_type})", state.topic);
        for group in state.reader.groups() {
            if let Some(map) = state.reader.map(group) {
                let ([first, second], [to_first, to_second]) = (map.from(), map.to());
                info!(
                    "state {group}: {first} is {to_first} for the policy, {second} is {to_second}"
                );
            }
        }
        runtime.spawn(inputs::read_states(shared.clone(), number, messages));
    }
    subscribe_to_transforms(runtime, node, shared)
}

/// `/tf` and `/tf_static`, if a state group needs them, with the QoS of tf2's own listener.
fn subscribe_to_transforms(runtime: &Runtime, node: &mut Node, shared: &Arc<Shared>) -> Result<()> {
    if shared.settings.transforms.is_empty() {
        return Ok(());
    }
    let moving = QosProfile::default().keep_last(100);
    let fixed = QosProfile::default().keep_last(100).transient_local();
    for (topic, is_fixed, qos) in [("/tf", false, moving), ("/tf_static", true, fixed)] {
        let messages = node.subscribe_raw(topic, TfMessage::TYPE, qos).with_context(|| {
            format!("cannot subscribe to {topic}; is the package tf2_msgs installed?")
        })?;
        runtime.spawn(inputs::read_transforms(shared.clone(), topic, is_fixed, messages));
    }
    for wanted in &shared.settings.transforms {
        info!("state {} from {} ({})", wanted.group, transform_name(wanted), TfMessage::TYPE);
    }
    Ok(())
}

fn serve(runtime: &Runtime, node: &mut Node, shared: &Arc<Shared>) -> Result<()> {
    use r2r::gr00t_blackhole::srv::{GetContract, SetInstruction};

    let changes = Arc::new(ParamChanges::new(node, shared)?);
    runtime.spawn(param_services::serve(node, shared, &changes)?);
    let qos = QosProfile::services_default;
    let requests = node.create_service::<SetInstruction::Service>("~/set_instruction", qos())?;
    let known = shared.clone();
    runtime.spawn(param_services::answer(requests, move |request: &SetInstruction::Request| {
        services::set_instruction(&known, &changes, request)
    }));
    let requests = node.create_service::<GetContract::Service>("~/get_contract", qos())?;
    let known = shared.clone();
    runtime.spawn(param_services::answer(requests, move |request: &GetContract::Request| {
        services::get_contract(&known, request)
    }));
    Ok(())
}

/// Starts a prediction on every tick of the timer, unless one is running or something is missing.
async fn predict_on_time(mut timer: Timer, shared: Arc<Shared>, worker: SharedWorker) {
    let mut waiting_notes = Throttle::new(WARNING_PERIOD);
    while timer.tick().await.is_ok() {
        let guard = locked(&worker);
        let Some(worker) = guard.as_ref() else { return };
        let now = shared.clock.now();
        let seen = {
            let mut sensors = locked(&shared.sensors);
            sensors.history.advance(now);
            if let Some(jump) = sensors.history.take_clock_jump() {
                warn!(
                    "the clock jumped by {:.3} s; all readings are forgotten",
                    seconds(jump.by_ns)
                );
            }
            if worker.is_busy() {
                shared.counters.missed_ticks.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let params = locked(&shared.params);
            sensors.observation(now, params.text(INSTRUCTION), &settings::gates(&params))
        };
        match seen {
            Ok(sighting) => {
                let Sighting { observation, readings, .. } = sighting;
                let seed = settings::seed(&locked(&shared.params), shared.version);
                let options =
                    PredictOptions { noise: Some(Noise::Seed(seed)), ..Default::default() };
                let state = observation.state.clone();
                let ticket = Ticket { readings, state, begin_ns: now.ros_ns };
                // The worker was idle, and nobody else gives it work; one that has ended has said so.
                let _ = worker.begin(observation, options, ticket);
            }
            Err(waiting) => {
                shared.counters.waiting_ticks.fetch_add(1, Ordering::Relaxed);
                shared.counters.refused_observations.count_all(&waiting);
                if waiting_notes.pass().is_some() {
                    info!("waiting for {waiting}");
                }
            }
        }
    }
}
