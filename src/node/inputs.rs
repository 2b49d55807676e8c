//! The node's subscriptions: bytes from the wire into the history, one task per topic.
//!
//! A message that cannot be used costs that message: it is counted, one rate-limited warning names topic and reason,
//! and the history knows why the topic gives nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{FutureExt, Stream, StreamExt};
use tracing::warn;

use super::frames::frame;
use super::image::{Decoded, Note};
use super::messages::TfMessage;
use super::runtime::{Shared, Throttle, WARNING_PERIOD, and_more, locked};
use super::settings;
use super::state::StateMessage;
use crate::history::{Input, Moment};

/// Reads the frames of camera number `number` until the node ends.
pub async fn read_camera(
    shared: Arc<Shared>,
    number: usize,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let mut refusals = Refusals::new(&shared.settings.cameras[number].topic);
    let mut noted = HashSet::new();
    while let Some(bytes) = newest(&mut messages, &shared.counters.overtaken_frames).await {
        let at = shared.clock.now();
        match frame(&shared.settings.cameras[number], bytes) {
            Ok((stamp_ns, Decoded { frame, notes })) => {
                refusals.note_once(&mut noted, notes);
                let timeline = shared.settings.timeline;
                let frame = Arc::new(frame);
                let mut sensors = locked(&shared.sensors);
                let shown = frame.clone();
                let taken = sensors.history.insert_frame(number, stamp_ns, frame, at, timeline);
                drop(sensors);
                match (taken, &shared.intake) {
                    (Err(refused), _) => refusals.count(&shared, &refused.to_string()),
                    (Ok(()), Some(intake)) => intake.arrived(number, shown),
                    (Ok(()), None) => {}
                }
            }
            Err(reason) => refusals.refuse(&shared, Input::Camera(number), reason, at),
        }
    }
}

/// Reads the samples of state source number `number` until the node ends.
pub async fn read_states(
    shared: Arc<Shared>,
    number: usize,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let mut refusals = Refusals::new(&shared.settings.states[number].topic);
    while let Some(bytes) = messages.next().await {
        let at = shared.clock.now();
        match shared.settings.states[number].reader.read(&bytes) {
            Ok(StateMessage { stamp_ns, sample }) => {
                let timeline = shared.settings.timeline;
                let jump_max_rad_s = settings::state_jump_max_rad_s(&locked(&shared.params));
                let mut sensors = locked(&shared.sensors);
                let history = &mut sensors.history;
                let taken =
                    history.insert_state(number, stamp_ns, sample, at, timeline, jump_max_rad_s);
                drop(sensors);
                if let Err(refused) = taken {
                    refusals.count(&shared, &refused.to_string());
                }
            }
            Err(error) => refusals.refuse(&shared, Input::State(number), error.to_string(), at),
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
    let mut refusals = Refusals::new(topic);
    while let Some(bytes) = messages.next().await {
        let at = shared.clock.now();
        match TfMessage::from_cdr(&bytes) {
            Ok(message) => {
                let timeline = shared.settings.timeline;
                let mut sensors = locked(&shared.sensors);
                let refused = sensors.insert_transforms(&message, fixed, at, timeline);
                drop(sensors);
                for reason in refused {
                    refusals.count(&shared, &reason);
                }
            }
            Err(error) => refusals.count(&shared, &error.to_string()),
        }
    }
}

/// The next message, or the last of those that have come meanwhile: when reading them takes longer than they come, the
/// newest counts.
async fn newest(
    messages: &mut (impl Stream<Item = Vec<u8>> + Unpin),
    overtaken: &AtomicU64,
) -> Option<Vec<u8>> {
    let mut last = messages.next().await?;
    while let Some(Some(next)) = messages.next().now_or_never() {
        overtaken.fetch_add(1, Ordering::Relaxed);
        last = next;
    }
    Some(last)
}

/// The messages of one topic that could not be used.
struct Refusals {
    topic: String,
    throttle: Throttle,
}

impl Refusals {
    fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), throttle: Throttle::new(WARNING_PERIOD) }
    }

    /// A message that could not be read.
    fn refuse(&mut self, shared: &Shared, input: Input, reason: String, at: Moment) {
        self.count(shared, &reason);
        locked(&shared.sensors).history.refuse(input, reason, at);
    }

    /// A message that was read, but is of no use.
    fn count(&mut self, shared: &Shared, reason: &str) {
        shared.counters.refused_messages.fetch_add(1, Ordering::Relaxed);
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
