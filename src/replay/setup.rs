//! What a replay is made of: the node's parameters, fitted to the robot and to the recording.

use super::chunks::Recorded;
use super::error::ReplayError;
use super::moments::When;
use super::source::{RecordedTopic, Recording};
use super::wiring::{Named, Role, Wiring};
use super::{Pace, Request};
use crate::node::messages::RecordedChunk;
use crate::node::params::Params;
use crate::node::remap::Remaps;
use crate::node::settings::{self, Settings};
use crate::node::topics::Topics;
use crate::policy::{PolicyOptions, choose_embodiment, open_snapshot};

const NS_PER_S: f64 = 1e9;

/// See the module.
pub struct Setup {
    pub params: Params,
    pub options: PolicyOptions,
    pub settings: Settings,
    pub wiring: Wiring,
}

impl Setup {
    /// As the node does before it loads its checkpoint.
    ///
    /// # Errors
    /// Parameters that do not fit the robot, topics that the recording lacks.
    pub fn new(request: &Request, topics: &[RecordedTopic]) -> Result<Self, ReplayError> {
        let mut params = Params::new(request.overrides.clone())?;
        let options = settings::policy_options(&params).ok_or_else(|| {
            let text = "parameter 'snapshot' is empty and 'version' is auto; give the checkpoint with --snapshot DIR, or -p version:=n16 and the like for the released one in the hub cache";
            ReplayError::Usage(text.to_owned())
        })?;
        let snapshot = open_snapshot(&options)?;
        let embodiment = choose_embodiment(&snapshot, &options)?;
        params.declare_robot(&settings::names(embodiment))?;
        let mut settings = Settings::new(&params, embodiment)?;
        let remaps = remaps(request);
        settings.resolve_topics(&remaps);
        Topics::overridden(&settings, &remaps, &mut params)?;
        for camera in &mut settings.cameras {
            camera.topic = remaps.remapped(&camera.topic);
        }
        for state in &mut settings.states {
            state.topic = remaps.remapped(&state.topic);
        }
        let named = Named {
            commands: request.commands.clone(),
            chunks: request.chunks.clone(),
            needs_chunks: request.pace == Pace::Goals,
            use_sim_time: params.bool("use_sim_time"),
        };
        let wiring = Wiring::new(topics, &settings, &named)?;
        Ok(Self { params, options, settings, wiring })
    }

    /// The chunks that a node published while the recording was made, in the order of their reception.
    ///
    /// # Errors
    /// One that cannot be read.
    pub fn recorded_chunks(&self, recording: &Recording) -> Result<Vec<Recorded>, ReplayError> {
        let topics: Vec<usize> = self
            .wiring
            .roles
            .iter()
            .filter(|(_, role)| *role == Role::Chunks)
            .map(|(topic, _)| *topic)
            .collect();
        let mut chunks = Vec::new();
        if topics.is_empty() {
            return Ok(chunks);
        }
        for message in recording.messages(&topics)? {
            let message = message?;
            let chunk = RecordedChunk::from_cdr(&message.data).map_err(|error| {
                let topic = &recording.topics()[message.topic].name;
                ReplayError::Usage(format!("a recorded chunk on {topic} cannot be read: {error}"))
            })?;
            chunks.push(Recorded { log_ns: message.log_ns, chunk });
        }
        Ok(chunks)
    }

    /// Rows of a chunk that are executed; 0 for as many as are due until the next one.
    pub fn execute_steps(&self) -> usize {
        usize::try_from(self.params.integer("execute_steps")).unwrap_or(0)
    }

    /// When a chunk is wanted.
    ///
    /// # Errors
    /// The parameters have no timer.
    pub fn when(&self, pace: Pace) -> Result<When, ReplayError> {
        match pace {
            Pace::Parameters => self.settings.period_ns.map(When::Period).ok_or_else(|| {
                let text = "the parameters have no timer (rate_hz is 0); give --rate HZ, --every N or --at-goals";
                ReplayError::Usage(text.to_owned())
            }),
            Pace::Rate(hz) => Ok(When::Period(((NS_PER_S / hz).round() as i64).max(1))),
            Pace::Frames(every) => Ok(When::Frames(every)),
            Pace::Goals => Ok(When::Goals),
        }
    }
}

/// The rules of `--remap`, seen from the node.
fn remaps(request: &Request) -> Remaps {
    let mut arguments = vec!["--ros-args".to_owned()];
    for rule in &request.remaps {
        arguments.extend(["--remap".to_owned(), rule.clone()]);
    }
    let namespace = match request.node.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((namespace, _)) => namespace,
    };
    Remaps::new(&arguments, namespace, &request.node)
}
