//! One observation recording as it is written.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::error::RecordError;
use super::kept::Newest;
use super::message::{Image, RecordedFrames, RecordedGroup, RecordedPrediction, RecordedState};
use crate::bag::{BagError, BagWriter, TopicId};
use crate::contract::{ActionGroup, Frame, Noise, Observation, Version};
use crate::recording::message::{Header, Time};

/// Topic of the predictions, and what the topics of cameras begin with.
const PREDICTIONS: &str = "/observation/prediction";
const FRAMES: &str = "/observation/frames/";

/// Which policy a recording is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub version: Version,
    /// The checkpoint's tag of the robot.
    pub embodiment: String,
    /// Which checkpoint: its directory, and its content hash where that is known.
    pub snapshot: String,
}

impl Identity {
    /// Whether a policy of `version` for `embodiment` can be asked to answer as the recorded one did. The checkpoint may stand
    /// elsewhere by now, so that `snapshot` is for people to compare.
    ///
    /// # Errors
    /// [`RecordError::OtherPolicy`] if it cannot.
    pub fn check(&self, version: Version, embodiment: &str) -> Result<(), RecordError> {
        if self.version == version && self.embodiment == embodiment {
            return Ok(());
        }
        Err(RecordError::OtherPolicy {
            recorded: format!("{} for {}", self.version, self.embodiment),
            loaded: format!("{version} for {embodiment}"),
        })
    }
}

/// A prediction to be written.
pub(super) struct Job {
    pub log_time_ns: u64,
    pub observation: Arc<Observation>,
    pub noise: Noise,
    /// Rows and groups of the chunk, or why there is none.
    pub outcome: Result<(usize, Vec<ActionGroup>), String>,
}

/// What is known of one camera.
struct Camera {
    topic: TopicId,
    /// Frames that have been written. Their memory may be gone, but its address is not used again.
    written: Newest<Weak<Frame>>,
    next: u64,
}

/// A recording that grows.
pub(super) struct RecordingFile {
    bag: BagWriter,
    directory: PathBuf,
    identity: Identity,
    predictions: TopicId,
    cameras: BTreeMap<String, Camera>,
    topics: BTreeSet<String>,
    /// Bytes of all messages so far.
    bytes: u64,
}

impl RecordingFile {
    /// Begins a recording at `directory`, which must not exist.
    ///
    /// # Errors
    /// As [`BagWriter::create_in_place`].
    pub fn create(directory: &Path, identity: Identity) -> Result<Self, BagError> {
        let mut bag = BagWriter::create_in_place(directory)?;
        let predictions = bag.add_topic::<RecordedPrediction>(PREDICTIONS)?;
        // The file says what it is even before the first prediction.
        bag.flush()?;
        let (cameras, topics) = (BTreeMap::new(), BTreeSet::new());
        let directory = directory.into();
        Ok(Self { bag, directory, identity, predictions, cameras, topics, bytes: 0 })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes of all messages so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a prediction, with the frames that are new, as one chunk of the file.
    ///
    /// # Errors
    /// A file that cannot be written, or a stamp that ROS cannot write.
    pub fn write(&mut self, job: &Job) -> Result<(), BagError> {
        let observation = &job.observation;
        let stamp = Time::from_nanoseconds(observation.stamp_ns)?;
        let mut frames = Vec::new();
        for (camera, of_camera) in &observation.frames {
            let mut numbers = Vec::new();
            for frame in of_camera {
                numbers.push(self.frame(camera, frame, stamp, job.log_time_ns)?);
            }
            frames.push(RecordedFrames { camera: camera.clone(), numbers });
        }
        let state = observation
            .state
            .iter()
            .map(|(name, values)| RecordedState { name: name.clone(), values: values.clone() });
        let (seed, noise) = match &job.noise {
            Noise::Seed(seed) => (*seed, None),
            Noise::Explicit(values) => (0, Some(values.clone())),
        };
        let (horizon, groups, failure) = match &job.outcome {
            Ok((horizon, groups)) => (*horizon, groups.as_slice(), String::new()),
            // An empty reason would stand for success.
            Err(reason) if reason.is_empty() => (0, &[][..], "no reason was given".to_owned()),
            Err(reason) => (0, &[][..], reason.clone()),
        };
        let message = RecordedPrediction {
            header: Header { stamp, frame_id: String::new() },
            program: env!("CARGO_PKG_VERSION").to_owned(),
            version: self.identity.version.name().to_owned(),
            embodiment: self.identity.embodiment.clone(),
            snapshot: self.identity.snapshot.clone(),
            instruction: observation.instruction.clone(),
            frames,
            state: state.collect(),
            seed,
            noise_given: noise.is_some(),
            noise: noise.unwrap_or_default(),
            failure,
            horizon: horizon as u32,
            groups: groups.iter().map(RecordedGroup::from).collect(),
        };
        self.bytes += self.bag.write(self.predictions, job.log_time_ns, &message)?;
        self.bag.flush()
    }

    /// Closes the recording.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(self) -> Result<(), BagError> {
        self.bag.finish()
    }

    /// Number of a frame, which is written if it has not been.
    fn frame(
        &mut self,
        camera: &str,
        frame: &Arc<Frame>,
        stamp: Time,
        log_time_ns: u64,
    ) -> Result<u64, BagError> {
        let known = match self.cameras.entry(camera.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let topic = self.bag.add_topic::<Image>(&topic_name(&mut self.topics, camera))?;
                place.insert(Camera { topic, written: Newest::default(), next: 0 })
            }
        };
        let this = Arc::downgrade(frame);
        let written = known.written.iter().find(|(_, written)| written.ptr_eq(&this));
        if let Some((number, _)) = written {
            return Ok(*number);
        }
        let number = known.next;
        let image = Image::of(camera, number, stamp, frame);
        self.bytes += self.bag.write(known.topic, log_time_ns, &image)?;
        known.next += 1;
        known.written.push(number, this);
        Ok(number)
    }
}

/// The topic of a camera, whose key may hold what ROS does not allow in a name; unlike all in `taken`.
fn topic_name(taken: &mut BTreeSet<String>, camera: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = FRAMES.chars().chain(camera.chars().map(allowed)).collect();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}
