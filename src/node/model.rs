//! A configured policy: its thread, its topics, and what belongs to it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use r2r::Node;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{info, warn};

use super::core::Core;
use super::debug_image::DebugImages;
use super::engine::Event;
use super::follower::Follower;
use super::graph::GraphFindings;
use super::instruction::{INSTRUCTION, check_given};
use super::intake::Intake;
use super::monitor::Monitor;
use super::params::Params;
use super::publish::{Publishers, Ticket};
use super::remap::Remaps;
use super::runtime::{Counters, Shared, Throttle, WARNING_PERIOD, and_more, locked};
use super::sensors::Sensors;
use super::settings::{self, RecordingSettings, Settings};
use super::spin::NodeHandle;
use super::start::usage;
use super::topics::Topics;
use super::worker::Worker;
use crate::cli::WrongUsage;
use crate::contract::{CancelToken, PredictOptions};
use crate::encode::EncodeError;
use crate::golden::Verdict;
use crate::observations::{Identity, Recorder, free_directory};
use crate::policy::{Policy, PolicyOptions, choose_embodiment, open_snapshot};

/// A prediction that runs when the policy is to end gets this long to notice.
const STOP_LIMIT: Duration = Duration::from_millis(1500);

/// A policy with its thread and its topics.
pub struct Model {
    pub shared: Arc<Shared>,
    pub worker: Worker<Ticket>,
    pub publishers: Publishers,
    pub debug_images: DebugImages,
}

impl Model {
    /// Loads the checkpoint that the parameters name, warms it up, and creates its topics. `cancel` ends the warm-up;
    /// `controller` follows trajectories.
    ///
    /// # Errors
    /// Parameters that do not fit the robot, a checkpoint that does not load, a policy that does not predict.
    pub async fn load(
        core: &Arc<Core>,
        node: &NodeHandle,
        events: &UnboundedSender<Event>,
        fault: &UnboundedSender<String>,
        controller: Option<Arc<Follower>>,
        cancel: CancelToken,
    ) -> Result<Self> {
        let (options, settings, topics, warm_up, gate, instruction) = {
            let mut params = locked(&core.params);
            let options = policy_options(&params)?;
            let (settings, topics) = fit_to_robot(&mut params, &options, &core.remaps)?;
            let (gate, instruction) =
                (settings::gate(&params), params.text(INSTRUCTION).to_owned());
            (options, settings, topics, params.integer("warm_up"), gate, instruction)
        };
        let of_loading = core.clone();
        let loading = move || {
            let mut policy = Policy::load(&options)?;
            of_loading.set_device(policy.device());
            check_given(&policy.instruction_check(), &instruction).map_err(usage)?;
            let verdict = gate
                .look_at(&mut policy, || Ok(Policy::load(&options.reference())?), &cancel)
                .context("the policy does not pass the fidelity gate")?;
            match verdict {
                Verdict::Skipped => warn!("fidelity: {verdict}"),
                _ => info!("fidelity: {verdict}"),
            }
            if !matches!(verdict, Verdict::Golden { .. }) {
                warmed_up(&mut policy, warm_up, cancel)?;
            }
            anyhow::Ok((policy, verdict.to_string()))
        };
        let (policy, fidelity) = tokio::task::spawn_blocking(loading)
            .await
            .context("loading the checkpoint panicked")??;
        let (poses, named) = (settings.poses.clone(), topics.clone());
        let publishers =
            node.ask(move |node| Publishers::new(node, &poses, &named, controller)).await??;
        let viewer = policy.viewer();
        let debug_images = node.ask(|node| DebugImages::new(node, viewer)).await??;
        let recorder = start_recorder(&locked(&core.params), &policy)?;
        let monitor = Monitor::new(&settings);
        let shared = Arc::new(Shared {
            clock: core.clock.clone(),
            snapshot: policy.snapshot().to_owned(),
            version: policy.version(),
            embodiment: policy.embodiment().clone(),
            served: policy.served().to_vec(),
            backend: policy.backend(),
            fidelity,
            recorder: Mutex::new(recorder),
            noise_shape: policy.noise_shape(),
            instruction_check: policy.instruction_check(),
            frame_shapes: policy.frame_shapes(),
            sensors: Mutex::new(Sensors::new(&settings)),
            intake: start_intake(&policy, &settings)?,
            settings,
            topics,
            params: core.params.clone(),
            counters: Counters::default(),
            monitor,
            graph: GraphFindings::default(),
        });
        let worker = start_worker(policy, events, fault)?;
        Ok(Self { shared, worker, publishers, debug_images })
    }

    /// Ends the thread and takes the topics off the graph; `false` if a prediction did not stop in time.
    pub async fn end(self, node: &NodeHandle) -> bool {
        let Self { shared, worker, publishers, debug_images } = self;
        let destroy = move |node: &mut Node| {
            publishers.destroy(node);
            debug_images.destroy(node);
        };
        // Where the node is gone, so are its topics.
        let _ = node.ask(destroy).await;
        let stop = move || {
            let stopped = worker.stop(STOP_LIMIT);
            // Closes the recording.
            drop(locked(&shared.recorder).take());
            stopped
        };
        tokio::task::spawn_blocking(stop).await.unwrap_or(false)
    }
}

fn policy_options(params: &Params) -> Result<PolicyOptions, WrongUsage> {
    let options = settings::policy_options(params).ok_or_else(|| {
        usage(
            "parameter 'snapshot' is empty; give the snapshot directory of the checkpoint, or the parameter 'version' for the \
             released one in the hub cache",
        )
    })?;
    if let Some(device) = &options.device {
        let wrong = |error| usage(format!("parameter 'backend' is '{}': {error}", device.kind));
        device.check().map_err(wrong)?;
    }
    Ok(options)
}

/// Declares the parameters that the robot and its topics bring and checks them all, before the checkpoint is loaded.
fn fit_to_robot(
    params: &mut Params,
    options: &PolicyOptions,
    remaps: &Remaps,
) -> Result<(Settings, Topics)> {
    let snapshot = open_snapshot(options)?;
    info!("loading {}", snapshot.dir().display());
    let embodiment = choose_embodiment(&snapshot, options)?;
    params.declare_robot(&settings::names(embodiment)).map_err(usage)?;
    let mut settings = Settings::new(params, embodiment).map_err(usage)?;
    settings.resolve_topics(remaps);
    let topics = Topics::overridden(&settings, remaps, params).map_err(usage)?;
    Ok((settings, topics))
}

/// Predicts a few times before a robot depends on it.
fn warmed_up(policy: &mut Policy, times: i64, cancel: CancelToken) -> Result<()> {
    let options = PredictOptions { cancel, ..Default::default() };
    for number in 1..=times {
        let took = policy.warm_up(&options).context("the policy does not predict (warm-up)")?;
        info!("warm-up {number} of {times} took {:.3} s", took.as_secs_f64());
    }
    Ok(())
}

fn start_worker(
    policy: Policy,
    events: &UnboundedSender<Event>,
    fault: &UnboundedSender<String>,
) -> std::io::Result<Worker<Ticket>> {
    let (events, fault) = (events.clone(), fault.clone());
    // Who is gone when the node ends needs no answer.
    let done = move |ticket, span, outcome| {
        drop(events.send(Event::Done(ticket, span, Box::new(outcome))));
    };
    let ended = move |reason| drop(fault.send(reason));
    Worker::spawn(policy, done, ended)
}

/// Begins the recording of observations that the parameters ask for.
fn start_recorder(params: &Params, policy: &Policy) -> Result<Option<Recorder>> {
    let Some(RecordingSettings { directory, max_bytes }) = settings::recording(params) else {
        return Ok(None);
    };
    let place = free_directory(&directory);
    // It is read where nobody knows the node's own folder.
    let snapshot = std::path::absolute(policy.snapshot())?;
    let identity = Identity {
        version: policy.version(),
        embodiment: policy.embodiment().tag.clone(),
        snapshot: snapshot.display().to_string(),
    };
    let recorder = Recorder::create(&place, identity, max_bytes)
        .context("parameter 'record_observations': no recording can be made")?;
    info!("predictions are recorded in {}", place.display());
    Ok(Some(recorder))
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
