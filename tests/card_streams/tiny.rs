//! Tiny networks.

use std::collections::HashMap;
use std::sync::Arc;

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::blackhole::core_map::Layout as Cores;
use gr00t_blackhole::backend::blackhole::lower::{Denoise, LowerError, Source, denoise};
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::backend::cpu::{CpuBackend, Numerics};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Checkpoint, CheckpointError, Network, Snapshot};
use gr00t_blackhole::contract::{PredictOptions, TapSink, Version};
use gr00t_blackhole::encode::ModelInput;
use gr00t_blackhole::prepared::{Cache, Values};
use gr00t_blackhole::program::{
    BufferId, BufferSource, IndexInput, Input, Layout, ModelPrograms, Op, Program, StageKind, n15,
    n16, n17,
};

/// The tiny synthetic checkpoint of a version, and its programs for one layout.
pub struct Tiny {
    pub checkpoint: Arc<Checkpoint>,
    pub model: Box<dyn ModelPrograms>,
    pub layout: Layout,
    /// A request; without one it is made up.
    input: Option<ModelInput>,
    _dir: tempfile::TempDir,
}

/// What a request is about.
#[derive(Clone, Copy)]
pub struct Prompt {
    /// Text tokens before and behind the pictures.
    pub text: [usize; 2],
    pub images: usize,
    /// Patches of a picture, where the network does not say.
    pub grid: [usize; 2],
}

const ONE_PICTURE: Prompt = Prompt { text: [5, 3], images: 1, grid: [4, 4] };

impl Tiny {
    /// For one picture.
    pub fn new(version: Version) -> Self {
        Self::of(version, ONE_PICTURE)
    }

    pub fn of(version: Version, prompt: Prompt) -> Self {
        let Prompt { text: [leading_tokens, behind], images, grid } = prompt;
        let open = Open::new(version, leading_tokens);
        let (grid, patches_per_token) = match open.side {
            Some((side, patches_per_token)) => ([side; 2], patches_per_token),
            None => (grid, 4),
        };
        let image_tokens = images * grid[0] * grid[1] / patches_per_token;
        let tokens = leading_tokens + image_tokens + behind;
        open.into_tiny(Layout { tokens, leading_tokens, images, grid }, None)
    }

    /// For a request, whose first picture begins behind so many tokens of a prefix.
    pub fn for_request(version: Version, input: ModelInput, prefix_tokens: usize) -> Self {
        Open::new(version, prefix_tokens).into_tiny(input.layout(), Some(input))
    }
}

/// A tiny network that no layout is chosen for.
struct Open {
    checkpoint: Arc<Checkpoint>,
    model: Box<dyn ModelPrograms>,
    /// Patches along the sides of a picture and patches that become a token, where all pictures are alike.
    side: Option<(usize, usize)>,
    dir: tempfile::TempDir,
}

impl Open {
    fn new(version: Version, prefix_tokens: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny");
        synth::write(version, Size::Tiny, &path, &|_, _| {}).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        let slot = 0;
        let (model, side): (Box<dyn ModelPrograms>, _) = match snapshot.network() {
            Network::N15(config) => {
                let side = Some((config.vision.grid(), 1));
                (Box::new(n15::Model { config: config.clone(), slot }), side)
            }
            Network::N16(config, _) => {
                let side = Some((config.vision.grid(), 4));
                (Box::new(n16::Model { config: config.clone(), slot }), side)
            }
            Network::N17(config, _) => {
                (Box::new(n17::Model { config: config.clone(), slot, prefix_tokens }), None)
            }
        };
        Self { checkpoint: Arc::clone(snapshot.tensors()), model, side, dir }
    }

    fn into_tiny(self, layout: Layout, input: Option<ModelInput>) -> Tiny {
        let Self { checkpoint, model, dir, .. } = self;
        Tiny { checkpoint, model, layout, input, _dir: dir }
    }
}

impl Tiny {
    pub fn prepare(&self) -> Program {
        self.model.prepare(&self.checkpoint).unwrap()
    }

    pub fn request(&self) -> Program {
        self.model.request(&self.checkpoint, self.layout).unwrap()
    }
}

/// A model whose request program hands over what every instruction writes.
struct Tapped(Box<dyn ModelPrograms>);

impl ModelPrograms for Tapped {
    fn prepare(&self, checkpoint: &Checkpoint) -> Result<Program, CheckpointError> {
        self.0.prepare(checkpoint)
    }

    fn request(&self, checkpoint: &Checkpoint, layout: Layout) -> Result<Program, CheckpointError> {
        let mut program = self.0.request(checkpoint, layout)?;
        for (stage, content) in program.stages.iter_mut().enumerate() {
            let ops = std::mem::take(&mut content.ops);
            for (number, op) in ops.into_iter().enumerate() {
                let written = op.written();
                content.ops.push(op);
                if let Some(x) = written {
                    content.ops.push(Op::Tap { x, name: written_by(stage, number) });
                }
            }
        }
        Ok(program)
    }
}

/// Name of what instruction `number` of a stage writes.
fn written_by(stage: usize, number: usize) -> String {
    format!("stage {stage} instruction {number}")
}

/// Stage and number of the instruction, from [`written_by`].
pub fn place_of(tap: &str) -> Option<(usize, usize)> {
    let (stage, number) = tap.strip_prefix("stage ")?.split_once(" instruction ")?;
    Some((stage.parse().ok()?, number.parse().ok()?))
}

/// What the CPU computes with the numbers of the card.
pub struct Reference {
    pub numerics: CardNumerics,
    pub prepare: Program,
    pub program: Program,
    pub constants: Values,
    pub input: ModelInput,
    pub actions: Vec<f32>,
    written: Written,
}

#[derive(Default)]
struct Written(HashMap<String, Vec<f32>>);

impl TapSink for Written {
    fn tap(&mut self, name: &str, _rows: usize, _cols: usize, values: &[f32]) {
        self.0.insert(name.to_owned(), values.to_vec());
    }
}

/// Token id of a picture; the others follow it.
const IMAGE_TOKEN: u32 = 3;

impl Tiny {
    /// With a model that hands over what every instruction writes.
    pub fn tapped(self) -> (Arc<Checkpoint>, Box<dyn ModelPrograms>) {
        (self.checkpoint, Box::new(Tapped(self.model)))
    }

    pub fn reference(self, numerics: CardNumerics) -> (Arc<Checkpoint>, Reference) {
        let (prepare, program) = (self.prepare(), self.request());
        let input = self.input.clone().unwrap_or_else(|| self.made_up_input(&program));
        let Tiny { checkpoint, model, .. } = self;
        let tapped = Box::new(Tapped(model));
        let mut backend =
            CpuBackend::load(Arc::clone(&checkpoint), tapped, 1, &Cache::default(), None)
                .unwrap()
                .with_numerics(Numerics::Card(numerics));
        let constants = backend.constants().clone();
        let mut written = Written::default();
        let options = PredictOptions::default();
        let output = backend.run(&input, &options, Some(&mut written)).unwrap();
        let actions = output.actions;
        let reference =
            Reference { numerics, prepare, program, constants, input, actions, written };
        (checkpoint, reference)
    }

    /// An input with meaningless, lively values.
    fn made_up_input(&self, program: &Program) -> ModelInput {
        let values = |kind: Input, range: f32| -> Vec<f32> {
            let spec = program.buffers.iter().find(|spec| spec.source == BufferSource::Input(kind));
            let count = spec.map_or(0, |spec| spec.rows * spec.cols);
            let noise = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 504.5 - 1.0;
            (0..count).map(|i| range * noise(i + kind as usize)).collect()
        };
        let Layout { tokens, leading_tokens, images, grid } = self.layout;
        let image_tokens: usize = program
            .indices
            .iter()
            .find(|list| list.input == IndexInput::ImageRows)
            .map_or(0, |list| list.len);
        let token_ids = (0..tokens).map(|at| {
            let is_image = (leading_tokens..leading_tokens + image_tokens).contains(&at);
            if is_image { IMAGE_TOKEN } else { IMAGE_TOKEN + 1 + at as u32 % 20 }
        });
        ModelInput {
            pixels: values(Input::Pixels, 1.0),
            images,
            grid,
            token_ids: token_ids.collect(),
            image_token: IMAGE_TOKEN,
            state: values(Input::State, 1.0),
            noise: values(Input::Noise, 2.0),
        }
    }
}

impl Reference {
    pub fn denoise(
        &self,
        checkpoint: &Checkpoint,
        prefix: Option<usize>,
    ) -> Result<Denoise, LowerError> {
        let source = Source {
            program: &self.program,
            prepare: &self.prepare,
            checkpoint,
            constants: &self.constants,
            policy: self.numerics.policy,
            layout: Cores::TwoColumns,
        };
        denoise(&source, prefix)
    }

    /// What instruction `number` of a stage has written.
    pub fn written_by(&self, stage: usize, number: usize) -> &[f32] {
        &self.written.0[&written_by(stage, number)]
    }

    /// The last contents of a buffer that one instruction writes wholly, or of an input.
    pub fn contents(&self, buffer: BufferId) -> &[f32] {
        match self.program.buffers[buffer.0].source {
            BufferSource::Input(Input::State) => return &self.input.state,
            BufferSource::Input(Input::Noise) => return &self.input.noise,
            _ => {}
        }
        let whole = self.program.view(buffer);
        let stages = self.program.stages.iter().enumerate();
        let writers = stages.flat_map(|(stage, content)| {
            let ops = content.ops.iter().enumerate();
            ops.filter(move |(_, op)| op.written() == Some(whole)).map(move |(op, _)| (stage, op))
        });
        let (stage, op) = writers.last().unwrap();
        self.written_by(stage, op)
    }

    pub fn denoise_stage(&self) -> usize {
        let stages = &self.program.stages;
        stages.iter().position(|stage| stage.kind == StageKind::Denoise).unwrap()
    }
}
