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
    BufferId, BufferSource, Input, Layout, ModelPrograms, Op, Program, StageKind, n15, n16, n17,
};

/// Text tokens before and behind the picture.
const TEXT: [usize; 2] = [5, 3];

/// The tiny synthetic checkpoint of a version, and its programs for one picture.
pub struct Tiny {
    pub checkpoint: Arc<Checkpoint>,
    pub model: Box<dyn ModelPrograms>,
    pub layout: Layout,
    _dir: tempfile::TempDir,
}

impl Tiny {
    pub fn new(version: Version) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny");
        synth::write(version, Size::Tiny, &path, &|_, _| {}).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        let slot = 0;
        let (model, grid, patches_per_token): (Box<dyn ModelPrograms>, _, _) =
            match snapshot.network() {
                Network::N15(config) => {
                    let grid = config.vision.grid();
                    (Box::new(n15::Model { config: config.clone(), slot }), grid, 1)
                }
                Network::N16(config, _) => {
                    let grid = config.vision.grid();
                    (Box::new(n16::Model { config: config.clone(), slot }), grid, 4)
                }
                Network::N17(config, _) => {
                    let config = config.clone();
                    (Box::new(n17::Model { config, slot, prefix_tokens: TEXT[0] }), 4, 4)
                }
            };
        let image_tokens = grid * grid / patches_per_token;
        let layout = Layout {
            tokens: TEXT[0] + image_tokens + TEXT[1],
            leading_tokens: TEXT[0],
            images: 1,
            grid: [grid; 2],
        };
        Self { checkpoint: Arc::clone(snapshot.tensors()), model, layout, _dir: dir }
    }

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
    pub fn reference(self, numerics: CardNumerics) -> (Arc<Checkpoint>, Reference) {
        let (prepare, program) = (self.prepare(), self.request());
        let input = self.input(&program);
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
    fn input(&self, program: &Program) -> ModelInput {
        let values = |kind: Input, range: f32| -> Vec<f32> {
            let spec = program.buffers.iter().find(|spec| spec.source == BufferSource::Input(kind));
            let count = spec.map_or(0, |spec| spec.rows * spec.cols);
            let noise = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 504.5 - 1.0;
            (0..count).map(|i| range * noise(i + kind as usize)).collect()
        };
        let Layout { tokens, leading_tokens, images, grid } = self.layout;
        let image_tokens = tokens - TEXT[0] - TEXT[1];
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
