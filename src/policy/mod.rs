//! The whole road from an observation to an action chunk.

mod files;
mod warm_up;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use files::tokenizer_dir;
use tracing::debug_span;

use crate::backend::blackhole::device::{DeviceBackend, DeviceError, DeviceOptions, StatusBoard};
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::backend::cpu::card::{CardNumerics, WeightBytes};
use crate::backend::cpu::{CpuBackend, Numerics};
use crate::backend::{Backend, BackendError, ModelOutput};
use crate::checkpoint::{Checkpoint, CheckpointError, Network, Snapshot, fingerprint};
use crate::contract::{
    ActionChunk, Embodiment, Letterbox, Noise, Observation, PredictOptions, StageTimings, TapSink,
    Version,
};
use crate::decode::{self, DecodeError};
use crate::encode::tokenizer::{Tokenizer, TokenizerError};
use crate::encode::{
    self, Encode, EncodeError, FrameIntake, FrameShapes, InstructionCheck, InstructionTokens,
    Viewer,
};
use crate::prepared::Cache;
use crate::program::{self, Layout, ModelPrograms, StageKind};
use crate::weights::locate::LocateError;
use crate::words::names;

/// What to load.
#[derive(Clone, Debug, Default)]
pub struct PolicyOptions {
    /// Snapshot directory of the checkpoint; empty: the released checkpoint of `version` in the hub cache.
    pub snapshot: PathBuf,
    /// Directory of the tokenizer files; `None`: the snapshot's `tokenizer` folder, the snapshot, or the hub cache.
    pub tokenizer: Option<PathBuf>,
    /// Embodiment tag; `None` is accepted when the checkpoint serves exactly one.
    pub embodiment: Option<String>,
    /// Whether an N1.7 policy pads frames to squares.
    pub letterbox: Letterbox,
    /// Data config, which only N1.5 has; `None` means the tag's own, or the only one that fits the tag's metadata.
    pub data_config: Option<String>,
    /// Threads of the CPU backend; 0 means all cores.
    pub threads: usize,
    /// Numbers that requests are computed with.
    pub numerics: Numerics,
    /// A card or a simulator that computes in place of the CPU, with the card's numbers.
    pub device: Option<DeviceOptions>,
    /// Version that the checkpoint has to be of; `None`: any, which needs a snapshot.
    pub version: Option<Version>,
    /// What a made-up observation asks for; `None`: nothing of sense. A device is ready for instructions of its length.
    pub usual_instruction: Option<String>,
    /// Where values that are computed from weights alone are kept from one start to the next; by default, nowhere.
    pub cache: Cache,
}

/// A loaded policy for one embodiment.
pub struct Policy {
    version: Version,
    snapshot: PathBuf,
    tensors: Arc<Checkpoint>,
    embodiment: Embodiment,
    served: Vec<String>,
    action_shape: [usize; 2],
    encoder: Box<dyn Encode>,
    backend: Box<dyn Backend>,
    last_layout: Option<Layout>,
    usual_instruction: Option<String>,
}

/// Why a policy cannot be loaded, or gives no chunk.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(
        "neither a snapshot nor a version is given; name the snapshot directory of the checkpoint, or one of n15, n16, n17 for the released checkpoint in the hub cache"
    )]
    NoSnapshot,
    #[error(transparent)]
    Locate(Box<LocateError>),
    #[error("{} is a checkpoint of {found}, not of {wanted}; ask for {found}, or give another snapshot", dir.display())]
    OtherVersion { dir: PathBuf, wanted: Version, found: Version },
    #[error(
        "letterbox is {wanted}, but only n17 has the choice, and this checkpoint is of {version}; leave it at auto"
    )]
    NoLetterbox { wanted: Letterbox, version: Version },
    #[error("the checkpoint serves the embodiments {}; choose one", names(.served))]
    ChooseEmbodiment { served: Vec<String> },
    #[error("no tokenizer files (vocab.json, ...) in {}, nor in its folder {}: {hint}", dir.display(), files::TOKENIZER_FOLDER)]
    NoTokenizer { dir: PathBuf, hint: String },
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The encoder cannot be made.
    #[error(transparent)]
    Encoder(#[from] EncodeError),
    #[error("observation refused: {0}")]
    Observation(EncodeError),
    /// No chunk could be composed onto the observed state.
    #[error("observation refused: {0}")]
    State(DecodeError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("chunk refused: {0}")]
    Decode(DecodeError),
    #[error(
        "warm-up: the checkpoint takes frames of none of the sizes {}; set `warm_up` to 0",
        tried.map(|[width, height]| format!("{width}x{height}")).join(", ")
    )]
    NoFrameSize { tried: [[u32; 2]; 3] },
}

impl From<LocateError> for PolicyError {
    fn from(error: LocateError) -> Self {
        PolicyError::Locate(Box::new(error))
    }
}

impl PolicyOptions {
    /// What computes, as parameters call it.
    pub fn backend_name(&self) -> &'static str {
        self.device.as_ref().map_or("cpu", |device| device.kind.name())
    }

    /// The same policy on the CPU in f32, which others are compared with.
    pub fn reference(&self) -> Self {
        Self { numerics: Numerics::F32, device: None, ..self.clone() }
    }
}

impl Policy {
    /// Opens and checks the checkpoint and does all work that no observation changes.
    pub fn load(options: &PolicyOptions) -> Result<Self, PolicyError> {
        Self::load_with_taps(options, None)
    }

    /// As [`Policy::load`]; `taps` gets the named values that are computed at load.
    pub fn load_with_taps(
        options: &PolicyOptions,
        taps: Option<&mut dyn TapSink>,
    ) -> Result<Self, PolicyError> {
        let snapshot = open_snapshot(options)?;
        let embodiment = choose_embodiment(&snapshot, options)?.clone();
        let tokenizer = Tokenizer::open(&tokenizer_dir(options, &snapshot)?)?;
        let slot = embodiment.slot;
        let (encoder, model, head): (Box<dyn Encode>, Box<dyn ModelPrograms>, _) = match snapshot
            .network()
        {
            Network::N15(config) => {
                let encoder = encode::n15::Encoder::new(config, embodiment.clone(), tokenizer)?;
                let model = program::n15::Model { config: config.clone(), slot };
                (Box::new(encoder), Box::new(model), &config.head)
            }
            Network::N17(config, processor) => {
                let encoder = encode::n17::Encoder::new(
                    config,
                    processor,
                    embodiment.clone(),
                    tokenizer,
                    options.letterbox,
                )?;
                let prefix_tokens = encoder.prefix_tokens();
                let model = program::n17::Model { config: config.clone(), slot, prefix_tokens };
                (Box::new(encoder), Box::new(model), &config.head)
            }
            Network::N16(config, processor) => {
                let encoder =
                    encode::n16::Encoder::new(config, processor, embodiment.clone(), tokenizer)?;
                let model = program::n16::Model { config: config.clone(), slot };
                (Box::new(encoder), Box::new(model), &config.head)
            }
        };
        let cpu = CpuBackend::load(
            snapshot.tensors().clone(),
            model,
            options.threads,
            &options.cache,
            taps,
        )?;
        let backend = on_machine(cpu, options).map_err(BackendError::from)?;
        Ok(Self {
            version: snapshot.version(),
            snapshot: snapshot.dir().to_owned(),
            tensors: snapshot.tensors().clone(),
            embodiment,
            served: snapshot.served().map(|embodiment| embodiment.tag.clone()).collect(),
            action_shape: [head.action_rows, head.action_width],
            encoder,
            backend,
            last_layout: None,
            usual_instruction: options.usual_instruction.clone(),
        })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn embodiment(&self) -> &Embodiment {
        &self.embodiment
    }

    /// Every tag that the checkpoint serves.
    pub fn served(&self) -> &[String] {
        &self.served
    }

    /// The snapshot directory, inside the hub cache where one was given.
    pub fn snapshot(&self) -> &Path {
        &self.snapshot
    }

    /// See [`crate::checkpoint::fingerprint`].
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.tensors)
    }

    /// Whether the chunks are what others are compared with: those of the CPU in f32.
    pub fn is_reference(&self) -> bool {
        self.backend.is_reference()
    }

    /// Computes the chunks that follow with these numbers.
    pub fn set_numerics(&mut self, numerics: Numerics) {
        self.backend.set_numerics(numerics);
    }

    /// What computes the chunks, for logs.
    pub fn backend(&self) -> String {
        self.backend.describe()
    }

    /// Where the state of the device that computes can be read; `None` for the CPU.
    pub fn device(&self) -> Option<StatusBoard> {
        self.backend.device()
    }

    /// Looks after what computes, between two predictions; `true` if it is lost and [`Policy::recover`] has to bring it
    /// back.
    pub fn look(&mut self) -> bool {
        self.backend.look()
    }

    /// Brings back what computes, if it is time to try; may take minutes.
    pub fn recover(&mut self) {
        self.backend.recover();
    }

    /// What the weights of the last prediction would take on a card under this policy; `None` before there is one.
    pub fn weight_bytes(&self, policy: DtypePolicy) -> Option<WeightBytes> {
        self.backend.weight_bytes(policy)
    }

    /// Where frames may be handed in as they arrive, so that a prediction pays only for what is new.
    pub fn intake(&self) -> Option<Arc<dyn FrameIntake>> {
        self.encoder.intake()
    }

    /// The shapes of camera frames that the policy accepts.
    pub fn frame_shapes(&self) -> FrameShapes {
        self.encoder.frame_shapes()
    }

    /// Tells whether an instruction would be accepted, from any thread.
    pub fn instruction_check(&self) -> InstructionCheck {
        self.encoder.instruction_check()
    }

    /// Counts the tokens that an instruction adds to the prompt, from any thread.
    pub fn instruction_tokens(&self) -> InstructionTokens {
        self.encoder.instruction_tokens()
    }

    /// The layout of the last observation that was encoded; `None` before there is one.
    pub fn last_layout(&self) -> Option<Layout> {
        self.last_layout
    }

    /// Makes the pictures that the policy sees, from any thread and beside its predictions.
    pub fn viewer(&self) -> Viewer {
        self.encoder.viewer()
    }

    /// Rows and columns of the initial noise.
    pub fn noise_shape(&self) -> [usize; 2] {
        self.action_shape
    }

    /// One chunk. The same observation and noise give the same bytes.
    ///
    /// # Errors
    /// An observation that does not fit the embodiment, a cancelled prediction, or an output with a value that is
    /// not finite: in each case there is no chunk at all.
    pub fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, PolicyError> {
        self.predict_with_taps(observation, options, None)
    }

    /// Predicts from an observation without meaning, so that the first one that has one takes no longer than the others,
    /// and to see that the policy answers at all. Returns how long it took.
    ///
    /// # Errors
    /// The policy cannot predict.
    pub fn warm_up(&mut self, options: &PredictOptions) -> Result<Duration, PolicyError> {
        let observation = self.made_up_observation()?;
        let start = Instant::now();
        self.predict(&observation, options).map(|_| start.elapsed())
    }

    /// An observation without meaning that the policy takes: grey frames, and states in the middle of their range.
    ///
    /// # Errors
    /// The checkpoint takes none of the usual frame sizes.
    pub fn made_up_observation(&mut self) -> Result<Observation, PolicyError> {
        let noise = Noise::Seed(self.version.default_seed());
        for size in warm_up::FRAME_SIZES {
            let instruction = self.usual_instruction.as_deref();
            let observation = warm_up::observation(&self.embodiment, size, instruction);
            match self.encoder.encode(&observation, &noise) {
                Ok(_) => return Ok(observation),
                // Some checkpoints take frames of one shape alone.
                Err(EncodeError::AspectRatio { .. }) => {}
                Err(error) => return Err(PolicyError::Observation(error)),
            }
        }
        Err(PolicyError::NoFrameSize { tried: warm_up::FRAME_SIZES })
    }

    /// As [`Policy::predict`]; `taps` gets every named intermediate value.
    pub fn predict_with_taps(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
        taps: Option<&mut dyn TapSink>,
    ) -> Result<ActionChunk, PolicyError> {
        let _span = debug_span!("predict", stamp_ns = observation.stamp_ns).entered();
        let noise = options.noise.clone().unwrap_or(Noise::Seed(self.version.default_seed()));
        options.progress.begin("encode");
        let start = Instant::now();
        let encoded = debug_span!("stage", stage = "encode")
            .in_scope(|| self.encoder.encode(observation, &noise));
        let input = encoded.map_err(PolicyError::Observation)?;
        decode::check_state(&self.embodiment, &observation.state).map_err(PolicyError::State)?;
        let encode_time = start.elapsed();
        self.last_layout = Some(input.layout());
        let output = self.backend.run(input, options, taps)?;
        options.progress.begin("decode");
        let start = Instant::now();
        let [rows, cols] = self.action_shape;
        let decoded = debug_span!("stage", stage = "decode").in_scope(|| {
            decode::decode(&self.embodiment, &output.actions, rows, cols, &observation.state)
        });
        let groups = decoded.map_err(PolicyError::Decode)?;
        let timings = timings(encode_time, &output, start.elapsed());
        let seed = match noise {
            Noise::Seed(seed) => Some(seed),
            Noise::Explicit(_) => None,
        };
        Ok(ActionChunk {
            version: self.version,
            embodiment: self.embodiment.tag.clone(),
            instruction: observation.instruction.clone(),
            seed,
            stamp_ns: observation.stamp_ns,
            horizon: self.embodiment.horizon,
            groups,
            normalized: output.actions,
            timings,
        })
    }
}

/// The model on the machine of the options.
fn on_machine(cpu: CpuBackend, options: &PolicyOptions) -> Result<Box<dyn Backend>, DeviceError> {
    let Some(device) = &options.device else {
        return Ok(Box::new(cpu.with_numerics(options.numerics)));
    };
    let numerics = match options.numerics {
        Numerics::Card(numerics) => numerics,
        Numerics::F32 => CardNumerics::default(),
    };
    let cache_dir = options.cache.dir().map(Path::to_owned);
    let device = DeviceOptions { cache_dir, ..device.clone() };
    Ok(Box::new(DeviceBackend::new(cpu, numerics, device)?))
}

/// The snapshot of the options.
///
/// # Errors
/// What is wrong with it, or that it is of another version than the options are for.
pub fn open_snapshot(options: &PolicyOptions) -> Result<Snapshot, PolicyError> {
    let dir = files::snapshot_dir(options)?;
    let snapshot = Snapshot::open(&dir)?;
    let found = snapshot.version();
    if let Some(wanted) = options.version.filter(|wanted| *wanted != found) {
        return Err(PolicyError::OtherVersion { dir, wanted, found });
    }
    check_letterbox(options.letterbox, found)?;
    Ok(snapshot)
}

/// Whether a checkpoint of this version leaves the choice.
///
/// # Errors
/// It does not.
fn check_letterbox(wanted: Letterbox, version: Version) -> Result<(), PolicyError> {
    if wanted != Letterbox::Auto && version != Version::N17 {
        return Err(PolicyError::NoLetterbox { wanted, version });
    }
    Ok(())
}

/// The embodiment of the options: that of their tag, or the only one that is served; as their data config makes it, if
/// they name one.
///
/// # Errors
/// The tag is not served, or there is a choice; the checkpoint has no such data config, or it does not fit.
pub fn choose_embodiment<'a>(
    snapshot: &'a Snapshot,
    options: &PolicyOptions,
) -> Result<&'a Embodiment, PolicyError> {
    match (options.embodiment.as_deref(), options.data_config.as_deref()) {
        (Some(tag), None) => Ok(snapshot.embodiment(tag)?),
        (Some(tag), Some(data_config)) => Ok(snapshot.embodiment_with(tag, data_config)?),
        (None, None) => the_only_one(snapshot.served()),
        (None, Some(data_config)) => {
            the_only_one(snapshot.embodiments_with(data_config)?.filter_map(|(_, made)| made.ok()))
        }
    }
}

fn the_only_one<'a>(
    served: impl Iterator<Item = &'a Embodiment>,
) -> Result<&'a Embodiment, PolicyError> {
    let served: Vec<&Embodiment> = served.collect();
    match served.as_slice() {
        [only] => Ok(only),
        _ => Err(PolicyError::ChooseEmbodiment {
            served: served.iter().map(|embodiment| embodiment.tag.clone()).collect(),
        }),
    }
}

fn timings(encode: Duration, output: &ModelOutput, decode: Duration) -> StageTimings {
    let of = |kind: StageKind| {
        output.timings.iter().filter(|(stage, _)| *stage == kind).map(|(_, time)| *time).sum()
    };
    StageTimings {
        encode,
        vision: of(StageKind::Vision),
        llm: of(StageKind::Llm),
        adapter: of(StageKind::Adapter),
        denoise: of(StageKind::Denoise),
        decode,
    }
}
