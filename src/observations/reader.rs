//! Reads an observation recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::error::RecordError;
use super::file::Identity;
use super::kept::Newest;
use super::message::{Image, RecordedPrediction};
use crate::bag::{BagReader, Messages, Note, Topic};
use crate::contract::{ActionGroup, Frame, Noise, Observation, PredictOptions};
use crate::recording::message::{RosMessage, deserialize};

/// An opened observation recording, whole or as a kill has left it.
pub struct Recording {
    bag: BagReader,
}

/// One recorded prediction.
#[derive(Debug)]
pub struct Recorded {
    /// Number in the recording, from 0.
    pub number: u64,
    /// When it was recorded, nanoseconds since the epoch of the wall clock.
    pub log_time_ns: u64,
    pub identity: Identity,
    /// Version of the program that predicted.
    pub program: String,
    /// Frames that several predictions used are the same ones here too.
    pub observation: Observation,
    /// With the noise that was used.
    pub options: PredictOptions,
    /// The chunk's groups, or why there was no chunk.
    pub outcome: Result<Vec<ActionGroup>, String>,
}

impl Recording {
    /// Whether a bag is an observation recording, so that [`Recording::of`] takes it.
    pub fn is_one(bag: &BagReader) -> bool {
        bag.topics().iter().any(is_prediction)
    }

    /// Opens the recording at `path`.
    ///
    /// # Errors
    /// A bag that cannot be read, or that is no observation recording.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::of(BagReader::open(path)?)
    }

    /// Takes an opened bag as a recording.
    ///
    /// # Errors
    /// A bag that is none.
    pub fn of(bag: BagReader) -> Result<Self, RecordError> {
        if !Self::is_one(&bag) {
            return Err(RecordError::NoRecording(bag.path().into()));
        }
        Ok(Self { bag })
    }

    /// What is odd about the recording; [`Predictions::notes`] has what is found while it is read.
    pub fn notes(&self) -> &[Note] {
        self.bag.notes()
    }

    /// How many predictions it says that it holds.
    pub fn count(&self) -> Option<u64> {
        let mut predictions = self.bag.topics().iter().filter(|topic| is_prediction(topic));
        predictions.try_fold(0, |sum, topic| Some(sum + topic.messages?))
    }

    /// The predictions in their order.
    ///
    /// # Errors
    /// Messages that are not CDR.
    pub fn predictions(&self) -> Result<Predictions, RecordError> {
        let wanted = |topic: &Topic| is_prediction(topic) || is_image(topic);
        let is_image = self.bag.topics().iter().map(is_image).collect();
        let messages = self.bag.messages(wanted)?;
        Ok(Predictions { messages, is_image, frames: BTreeMap::new(), next: 0, ended: false })
    }
}

fn is_prediction(topic: &Topic) -> bool {
    topic.message_type == RecordedPrediction::TYPE
}

fn is_image(topic: &Topic) -> bool {
    topic.message_type == <Image>::TYPE
}

/// Iterator over the predictions of a recording. It ends after an error, unless that is of one prediction alone
/// ([`RecordError::is_of_one_prediction`]).
pub struct Predictions {
    messages: Messages,
    /// Whether a topic of the bag holds frames.
    is_image: Vec<bool>,
    /// Camera -> its newest frames.
    frames: BTreeMap<String, Newest<Arc<Frame>>>,
    next: u64,
    ended: bool,
}

impl Predictions {
    /// What was found to be odd up to now.
    pub fn notes(&self) -> &[Note] {
        self.messages.notes()
    }

    fn advance(&mut self) -> Result<Option<Recorded>, RecordError> {
        while let Some(message) = self.messages.next() {
            let message = message?;
            if self.is_image[message.topic] {
                let (camera, number, frame) = deserialize::<Image>(&message.data)?.into_frame()?;
                self.frames.entry(camera).or_default().push(number, Arc::new(frame));
            } else {
                let prediction = deserialize(&message.data)?;
                return self.recorded(message.log_time_ns, prediction).map(Some);
            }
        }
        Ok(None)
    }

    fn recorded(
        &mut self,
        log_time_ns: u64,
        message: RecordedPrediction,
    ) -> Result<Recorded, RecordError> {
        let number = self.next;
        self.next += 1;
        let mut frames = BTreeMap::new();
        for of_camera in message.frames {
            let camera = of_camera.camera;
            let named = of_camera.numbers.into_iter().map(|frame| {
                self.frame(&camera, frame).ok_or_else(|| RecordError::MissingFrame {
                    prediction: number,
                    camera: camera.clone(),
                    number: frame,
                })
            });
            let named: Vec<Arc<Frame>> = named.collect::<Result<_, _>>()?;
            frames.insert(camera, named);
        }
        let version = message.version.parse();
        let identity = Identity {
            version: version.map_err(|_| RecordError::Version(message.version))?,
            embodiment: message.embodiment,
            snapshot: message.snapshot,
        };
        let observation = Observation {
            stamp_ns: message.header.stamp.nanoseconds(),
            frames,
            state: message.state.into_iter().map(|group| (group.name, group.values)).collect(),
            instruction: message.instruction,
        };
        let noise = if message.noise_given {
            Noise::Explicit(message.noise)
        } else {
            Noise::Seed(message.seed)
        };
        let outcome = if message.failure.is_empty() {
            let groups = message.groups.into_iter().map(|group| group.into_group());
            Ok(groups.collect::<Result<_, _>>()?)
        } else {
            Err(message.failure)
        };
        let options = PredictOptions { noise: Some(noise), ..PredictOptions::default() };
        let program = message.program;
        Ok(Recorded { number, log_time_ns, identity, program, observation, options, outcome })
    }

    fn frame(&self, camera: &str, number: u64) -> Option<Arc<Frame>> {
        let mut frames = self.frames.get(camera)?.iter();
        frames.find(|(known, _)| *known == number).map(|(_, frame)| Arc::clone(frame))
    }
}

impl Iterator for Predictions {
    type Item = Result<Recorded, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = match &next {
            Some(Ok(_)) => false,
            Some(Err(error)) => !error.is_of_one_prediction(),
            None => true,
        };
        next
    }
}
