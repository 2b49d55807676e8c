//! The node's subscriptions: bytes from the wire into the history, one task per topic.
//!
//! A message that cannot be used costs that message: it is counted, one rate-limited warning names topic and reason,
//! and the history knows why the topic gives nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{Stream, StreamExt};
use tracing::warn;

use super::compressed;
use super::image::{self, Decoded, ImageFields, Note};
use super::messages::{CompressedImage, Image, JointState, MessageError};
use super::runtime::{Shared, Throttle, locked};
use super::settings::{CameraSettings, Transport};
use crate::history::{Input, Moment};

/// A topic that sends bad messages is warned about this often.
const WARNING_PERIOD: Duration = Duration::from_secs(2);

/// Reads the frames of camera number `number` until the node ends.
pub async fn read_camera(
    shared: Arc<Shared>,
    number: usize,
    mut messages: impl Stream<Item = Vec<u8>> + Unpin,
) {
    let mut refusals = Refusals::new(&shared.settings.cameras[number].topic);
    let mut noted = HashSet::new();
    while let Some(bytes) = messages.next().await {
        let at = shared.clock.now();
        match frame(&shared.settings.cameras[number], bytes) {
            Ok((stamp_ns, Decoded { frame, notes })) => {
                refusals.note_once(&mut noted, notes);
                let timeline = shared.settings.timeline;
                let mut history = locked(&shared.history);
                let taken = history.insert_frame(number, stamp_ns, Arc::new(frame), at, timeline);
                drop(history);
                if let Err(refused) = taken {
                    refusals.count(&shared, &refused.to_string());
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
        let joints = &shared.settings.states[number].joints;
        let sample =
            JointState::from_cdr(&bytes).map_err(|error| error.to_string()).and_then(|m| {
                let read = joints.read(&m.name, &m.position, m.velocity.len(), m.effort.len());
                read.map(|sample| (m.stamp_ns, sample)).map_err(|error| error.to_string())
            });
        match sample {
            Ok((stamp_ns, sample)) => {
                let timeline = shared.settings.timeline;
                let taken =
                    locked(&shared.history).insert_state(number, stamp_ns, sample, at, timeline);
                if let Err(refused) = taken {
                    refusals.count(&shared, &refused.to_string());
                }
            }
            Err(reason) => refusals.refuse(&shared, Input::State(number), reason, at),
        }
    }
}

/// Stamp and picture of a camera message.
fn frame(camera: &CameraSettings, bytes: Vec<u8>) -> Result<(i64, Decoded), String> {
    let malformed = |error: MessageError| error.to_string();
    match camera.transport {
        Transport::Raw => {
            let message = Image::from_cdr(bytes).map_err(malformed)?;
            let fields = ImageFields {
                encoding: &message.encoding,
                width: message.width,
                height: message.height,
                step: message.step,
                is_bigendian: message.is_bigendian,
            };
            let decoded = image::decode(&fields, message.data, camera.order);
            Ok((message.stamp_ns, decoded.map_err(|error| error.to_string())?))
        }
        Transport::Compressed => {
            let message = CompressedImage::from_cdr(&bytes).map_err(malformed)?;
            let decoded = compressed::decode(&message.format, &message.data, camera.order);
            Ok((message.stamp_ns, decoded.map_err(|error| error.to_string())?))
        }
    }
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
        locked(&shared.history).refuse(input, reason, at);
    }

    /// A message that was read, but is of no use.
    fn count(&mut self, shared: &Shared, reason: &str) {
        shared.counters.refused_messages.fetch_add(1, Ordering::Relaxed);
        match self.throttle.pass() {
            None => {}
            Some(0) => warn!("a message on {} was refused: {reason}", self.topic),
            Some(more) => {
                warn!("a message on {} was refused, {more} others before it: {reason}", self.topic);
            }
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
