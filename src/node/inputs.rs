//! The node's subscriptions: bytes from the wire into the history, one task per topic.
//!
//! A message that cannot be used costs that message: it is counted, one rate-limited warning names topic and reason,
//! and the history knows why the topic gives nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::{FutureExt, Stream, StreamExt};
use tracing::warn;

use super::frames::accepted_frame;
use super::image::{Decoded, Note};
use super::messages::TfMessage;
use super::runtime::{Shared, Throttle, WARNING_PERIOD, and_more, locked};
use super::settings;
use crate::history::{Input, Moment};

/// Reads the frames of camera number `number` until the node ends.
pub async fn read_camera(
    shared: Arc<Shared>,
    number: usize,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let input = Input::Camera(number);
    let mut refusals = Refusals::new(&shared.settings.cameras[number].topic, Some(input));
    let mut noted = HashSet::new();
    while let Some(bytes) = newest(&mut messages, &shared, input).await {
        let at = shared.clock.now();
        let camera = &shared.settings.cameras[number];
        let read = accepted_frame(camera, &shared.frame_shapes, bytes);
        let read = read.map(|(stamp_ns, decoded)| {
            let Decoded { frame, notes } = decoded;
            refusals.note_once(&mut noted, notes);
            (stamp_ns, Arc::new(frame))
        });
        let shown = read.as_ref().ok().cloned();
        let timeline = shared.settings.timeline;
        let mut sensors = locked(&shared.sensors);
        let taken = sensors.take_frame(number, read, at, timeline);
        if taken.is_ok() {
            let stamp_ns = shown.as_ref().map(|(stamp_ns, _)| *stamp_ns);
            shared.monitor.taken(input, stamp_ns, at, &shared);
        }
        drop(sensors);
        match (taken, shown, &shared.intake) {
            (Err(reason), ..) => refusals.count(&shared, &reason, at),
            (Ok(()), Some((_, frame)), Some(intake)) => intake.arrived(number, frame),
            (Ok(()), ..) => {}
        }
    }
}

/// Reads the samples of state source number `number` until the node ends.
pub async fn read_states(
    shared: Arc<Shared>,
    number: usize,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let input = Input::State(number);
    let mut refusals = Refusals::new(&shared.settings.states[number].topic, Some(input));
    while let Some(bytes) = messages.next().await {
        let at = shared.clock.now();
        let read = shared.settings.states[number].reader.read(&bytes);
        let timeline = shared.settings.timeline;
        let jump_max_rad_s = settings::state_jump_max_rad_s(&locked(&shared.params));
        let mut sensors = locked(&shared.sensors);
        let taken = sensors.take_state(number, read, at, timeline, jump_max_rad_s);
        if let Ok(stamp_ns) = taken {
            shared.monitor.taken(input, stamp_ns, at, &shared);
        }
        drop(sensors);
        if let Err(reason) = taken {
            refusals.count(&shared, &reason, at);
        }
    }
}

/// Reads transforms of `topic` until the node ends; `fixed` for those that hold for all time.
pub async fn read_transforms(
    shared: Arc<Shared>,
    topic: &'static str,
    fixed: bool,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let mut refusals = Refusals::new(topic, None);
    while let Some(bytes) = messages.next().await {
        let at = shared.clock.now();
        match TfMessage::from_cdr(&bytes) {
            Ok(message) => {
                let timeline = shared.settings.timeline;
                let mut sensors = locked(&shared.sensors);
                let refused = sensors.insert_transforms(&message, fixed, at, timeline);
                drop(sensors);
                shared.monitor.transforms().taken_unstamped(at.steady_ns);
                for reason in refused {
                    refusals.count(&shared, &reason, at);
                }
            }
            Err(error) => refusals.count(&shared, &error.to_string(), at),
        }
    }
}

/// The next message, or the last of those that have come meanwhile: when reading them takes longer than they come, the
/// newest counts.
async fn newest(
    messages: &mut (impl Stream<Item = Vec<u8>> + Unpin),
    shared: &Shared,
    input: Input,
) -> Option<Vec<u8>> {
    let mut last = messages.next().await?;
    while let Some(Some(next)) = messages.next().now_or_never() {
        shared.counters.overtaken_frames.fetch_add(1, Ordering::Relaxed);
        shared.monitor.input(input).overtaken(shared.clock.now().steady_ns);
        last = next;
    }
    Some(last)
}

/// The messages of one topic that could not be used.
struct Refusals {
    topic: String,
    /// `None` for transforms.
    input: Option<Input>,
    throttle: Throttle,
}

impl Refusals {
    fn new(topic: &str, input: Option<Input>) -> Self {
        Self { topic: topic.to_owned(), input, throttle: Throttle::new(WARNING_PERIOD) }
    }

    /// A message that could not be read, or is of no use.
    fn count(&mut self, shared: &Shared, reason: &str, at: Moment) {
        shared.counters.refused_messages.fetch_add(1, Ordering::Relaxed);
        let mut stats = match self.input {
            Some(input) => shared.monitor.input(input),
            None => shared.monitor.transforms(),
        };
        stats.refused(reason, at.steady_ns);
        drop(stats);
        if let Some(held_back) = self.throttle.pass() {
            warn!("a message on {} was refused: {reason}{}", self.topic, and_more(held_back));
        }
    }

    /// Something about accepted pictures that is said once per topic.
    fn note_once(&self, noted: &mut HashSet<Note>, notes: Vec<Note>) {
        /// Labels that vary without end must not fill the memory.
        const MAX_NOTES: usize = 16;
        for note in notes {
            if noted.len() < MAX_NOTES && noted.insert(note.clone()) {
                warn!("on {}: {note}", self.topic);
            }
        }
    }
}
