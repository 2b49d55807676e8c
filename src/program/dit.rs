//! The flow-matching action head: encoders per embodiment slot, AdaLN DiT, Euler steps.

use super::{
    Activation, AttentionShape, IndexId, IndexInput, Input, Modulation, Orientation, Program,
    ProgramBuilder, StageKind, View, WeightId, sinusoid,
};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::network::{CrossAttention, HeadConfig};

const BLOCK_EPS: f32 = 1e-5;
const OUTPUT_EPS: f32 = 1e-6;
/// Imported name of the timestep part of the action encoder, `[steps, width]`.
const ACTION_TIMESTEPS: &str = "action.timesteps";
/// Imported name of the output modulation, `[steps, 2 * width]`: shift, then scale.
const OUTPUT_MODULATION: &str = "modulation.output";

/// Imported name of a block's modulation, `[steps, 2 * width]`: scale, then shift.
fn block_modulation(block: usize) -> String {
    format!("modulation.block{block}")
}

/// The integer timestep of Euler step `step`.
fn timestep(config: &HeadConfig, step: usize) -> f32 {
    (step as f64 / config.steps as f64 * config.timestep_buckets as f64).floor() as f32
}

/// The prepare program of a version: what of the head no input changes.
pub fn prepare(
    mut b: ProgramBuilder<'_>,
    prefix: &str,
    config: &HeadConfig,
    slot: usize,
) -> Result<Program, CheckpointError> {
    b.stage(StageKind::Denoise);
    prepare_modulations(&mut b, prefix, config)?;
    prepare_action_timesteps(&mut b, prefix, config, slot)?;
    Ok(b.finish())
}

/// Every AdaLN scale and shift of every step: they depend on nothing but the weights.
fn prepare_modulations(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &HeadConfig,
) -> Result<(), CheckpointError> {
    let (steps, width) = (config.steps, config.dit_width());
    let projected: Vec<f32> =
        (0..steps).flat_map(|step| sinusoid::dit_timestep(timestep(config, step))).collect();
    let projected = b.constant("time_proj", steps, sinusoid::DIT_TIMESTEP_WIDTH, projected);
    let hidden = b.scratch("temb.hidden", steps, width);
    let embedding = b.scratch("temb", steps, width);
    let activated = b.scratch("temb.activated", steps, width);
    let embedder = format!("{prefix}.model.timestep_encoder.timestep_embedder");
    let (weight, bias) =
        b.weight_and_bias(&format!("{embedder}.linear_1"), width, sinusoid::DIT_TIMESTEP_WIDTH)?;
    b.linear(projected, (weight, Some(bias)), Activation::Silu, hidden);
    b.project(&format!("{embedder}.linear_2"), hidden, Activation::Identity, embedding)?;
    for step in 0..steps {
        b.tap(format!("k{step}.time_proj"), projected.slice_rows(step, 1));
        b.tap(format!("k{step}.temb"), embedding.slice_rows(step, 1));
    }
    b.map(embedding, Activation::Silu, activated);

    let blocks = (0..config.dit_layers).map(|block| {
        let linear = format!("{prefix}.model.transformer_blocks.{block}.norm1.linear");
        (block_modulation(block), linear)
    });
    let output = (OUTPUT_MODULATION.to_owned(), format!("{prefix}.model.proj_out_1"));
    for (name, linear) in blocks.chain([output]) {
        let table = b.scratch(&name, steps, 2 * width);
        b.project(&linear, activated, Activation::Identity, table)?;
        b.export(&name, table);
    }
    Ok(())
}

/// The timestep half of the action encoder's second layer, bias included: one row per step.
fn prepare_action_timesteps(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &HeadConfig,
    slot: usize,
) -> Result<(), CheckpointError> {
    let (steps, width) = (config.steps, config.dit_width());
    let encoded: Vec<f32> = (0..steps)
        .flat_map(|step| sinusoid::action_timestep(timestep(config, step), width))
        .collect();
    let encoded = b.constant("tau", steps, width, encoded);
    for step in 0..steps {
        b.tap(format!("k{step}.tau"), encoded.slice_rows(step, 1));
    }
    let slots = SlotWeights { prefix, slot, slots: config.slots };
    let layer = "action_encoder.W2";
    let weight = slots.matrix_rows(b, layer, 2 * width, width, width..2 * width)?;
    let bias = slots.bias(b, layer, width)?;
    let table = b.scratch(ACTION_TIMESTEPS, steps, width);
    b.linear(encoded, (weight, Some(bias)), Activation::Identity, table);
    b.export(ACTION_TIMESTEPS, table);
    Ok(())
}

/// Keys and values of one cross-attention block.
#[derive(Clone, Copy, Debug)]
pub struct KeysAndValues {
    keys: View,
    values: View,
}

/// Blocks with an even number attend to the backbone's tokens, the others to the DiT's own rows.
fn is_cross_block(block: usize) -> bool {
    block.is_multiple_of(2)
}

/// Keys and values of all cross blocks, which no Euler step changes; in the order of the blocks.
///
/// `vl` is `[tokens, backbone width]`, `image_rows` the positions of the image tokens in it.
pub fn cross_keys_and_values(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &HeadConfig,
    vl: View,
    image_rows: IndexId,
) -> Result<Vec<KeysAndValues>, CheckpointError> {
    let sources = CrossSources::new(b, config.cross_attention, vl, image_rows);
    let width = config.dit_width();
    let mut all = Vec::new();
    for block in (0..config.dit_layers).filter(|block| is_cross_block(*block)) {
        let source = sources.of_block(block);
        let attention = format!("{prefix}.model.transformer_blocks.{block}.attn1");
        let keys = b.scratch(&format!("dit.block{block}.k"), source.rows, width);
        let values = b.scratch(&format!("dit.block{block}.v"), source.rows, width);
        b.project(&format!("{attention}.to_k"), source, Activation::Identity, keys)?;
        b.project(&format!("{attention}.to_v"), source, Activation::Identity, values)?;
        all.push(KeysAndValues { keys, values });
    }
    Ok(all)
}

/// The backbone's rows, gathered as the cross blocks want them: a mask would multiply rows that nobody sees.
enum CrossSources {
    All(View),
    Alternate { text: View, image: View, text_every: usize },
}

impl CrossSources {
    fn new(
        b: &mut ProgramBuilder<'_>,
        cross_attention: CrossAttention,
        vl: View,
        image_rows: IndexId,
    ) -> Self {
        let CrossAttention::Alternate { text_every } = cross_attention else {
            return CrossSources::All(vl);
        };
        let images = b.index_len(image_rows);
        let text_rows = b.index(IndexInput::TextRows, vl.rows - images);
        let text = b.scratch("vl.text", vl.rows - images, vl.cols);
        b.gather_rows(vl, text_rows, text);
        let image = b.scratch("vl.image", images, vl.cols);
        b.gather_rows(vl, image_rows, image);
        CrossSources::Alternate { text, image, text_every }
    }

    fn of_block(&self, block: usize) -> View {
        match *self {
            CrossSources::All(vl) => vl,
            CrossSources::Alternate { text, image, text_every } => {
                let looks_at_text = block.is_multiple_of(2 * text_every);
                if looks_at_text { text } else { image }
            }
        }
    }
}

/// All Euler steps, from noise to the normalised chunk `[action rows, action width]`.
pub fn denoise(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &HeadConfig,
    slot: usize,
    cross: &[KeysAndValues],
) -> Result<View, CheckpointError> {
    let (rows, width) = (config.action_rows, config.dit_width());
    let slots = SlotWeights { prefix, slot, slots: config.slots };
    let state_token = encode_state(b, config, &slots)?;
    let noise = b.input(Input::Noise, rows, config.action_width);
    let actions = b.scratch("actions", rows, config.action_width);
    b.copy(noise, actions);
    let encoder = ActionEncoder::new(b, config, &slots)?;
    // The DiT sees the state token, the future tokens and the action tokens, in this order.
    let first_action = 1 + config.future_tokens;
    let sequence = first_action + rows;
    let blocks = Blocks::new(b, prefix, config, sequence);
    let decoder = ActionDecoder::new(b, prefix, config, &slots, sequence)?;
    let hidden = b.scratch("dit.hidden", sequence, width);
    for step in 0..config.steps {
        b.tap(format!("actions.step{step}"), actions);
        b.copy(state_token, hidden.slice_rows(0, 1));
        if config.future_tokens > 0 {
            let table = format!("{prefix}.future_tokens.weight");
            let tokens = b.matrix(&table, config.future_tokens, width)?;
            b.copy_weight(tokens, hidden.slice_rows(1, config.future_tokens));
        }
        encoder.run(b, step, actions, hidden.slice_rows(first_action, rows));
        b.tap(format!("k{step}.dit_in"), hidden);
        for block in 0..config.dit_layers {
            let keys = is_cross_block(block).then(|| cross[block / 2]);
            blocks.run(b, step, block, keys, hidden)?;
        }
        let velocity = decoder.run(b, step, hidden).slice_rows(first_action, rows);
        b.tap(format!("k{step}.velocity"), velocity);
        b.add_scaled(velocity, 1.0 / config.steps as f32, actions);
    }
    b.tap(format!("actions.step{}", config.steps), actions);
    Ok(actions)
}

/// The weights of the encoders and decoders exist once per embodiment slot; only one slot is used.
struct SlotWeights<'a> {
    prefix: &'a str,
    slot: usize,
    slots: usize,
}

impl SlotWeights<'_> {
    fn matrix(
        &self,
        b: &mut ProgramBuilder<'_>,
        layer: &str,
        input: usize,
        out: usize,
    ) -> Result<WeightId, CheckpointError> {
        self.matrix_rows(b, layer, input, out, 0..input)
    }

    /// Rows `rows` of this slot's `[input, out]` matrix.
    fn matrix_rows(
        &self,
        b: &mut ProgramBuilder<'_>,
        layer: &str,
        input: usize,
        out: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<WeightId, CheckpointError> {
        let tensor = format!("{}.{layer}.W", self.prefix);
        let offset = (self.slot * input + rows.start) * out;
        b.weight(&tensor, &[self.slots, input, out], offset, rows.len(), out, Orientation::InOut)
    }

    fn bias(
        &self,
        b: &mut ProgramBuilder<'_>,
        layer: &str,
        width: usize,
    ) -> Result<WeightId, CheckpointError> {
        let tensor = format!("{}.{layer}.b", self.prefix);
        b.weight(&tensor, &[self.slots, width], self.slot * width, 1, width, Orientation::OutIn)
    }

    fn layer(
        &self,
        b: &mut ProgramBuilder<'_>,
        layer: &str,
        input: usize,
        out: usize,
    ) -> Result<(WeightId, Option<WeightId>), CheckpointError> {
        Ok((self.matrix(b, layer, input, out)?, Some(self.bias(b, layer, out)?)))
    }
}

/// The state token, `[1, width]`.
fn encode_state(
    b: &mut ProgramBuilder<'_>,
    config: &HeadConfig,
    slots: &SlotWeights<'_>,
) -> Result<View, CheckpointError> {
    let width = config.dit_width();
    let state = b.input(Input::State, 1, config.state_width);
    let projected = b.scratch("state_encoder.projected", 1, config.hidden);
    let hidden = b.scratch("state_encoder.hidden", 1, config.hidden);
    let token = b.scratch("state_encoder.out", 1, width);
    let layer1 = slots.layer(b, "state_encoder.layer1", config.state_width, config.hidden)?;
    b.linear(state, layer1, Activation::Identity, projected);
    b.tap("state_encoder.layer1", projected);
    b.map(projected, Activation::Relu, hidden);
    let layer2 = slots.layer(b, "state_encoder.layer2", config.hidden, width)?;
    b.linear(hidden, layer2, Activation::Identity, token);
    b.tap("state_encoder_out", token);
    Ok(token)
}

/// Noisy actions and a timestep to DiT rows.
struct ActionEncoder {
    embedded: View,
    mixed: View,
    layer1: (WeightId, Option<WeightId>),
    /// The half of the second layer that reads the actions; the other half is in `timesteps`.
    layer2: WeightId,
    timesteps: View,
    layer3: (WeightId, Option<WeightId>),
    positions: WeightId,
}

impl ActionEncoder {
    fn new(
        b: &mut ProgramBuilder<'_>,
        config: &HeadConfig,
        slots: &SlotWeights<'_>,
    ) -> Result<Self, CheckpointError> {
        let (rows, width) = (config.action_rows, config.dit_width());
        Ok(Self {
            embedded: b.scratch("action_encoder.embedded", rows, width),
            mixed: b.scratch("action_encoder.mixed", rows, width),
            layer1: slots.layer(b, "action_encoder.W1", config.action_width, width)?,
            layer2: slots.matrix_rows(b, "action_encoder.W2", 2 * width, width, 0..width)?,
            timesteps: b.import(ACTION_TIMESTEPS, config.steps, width),
            layer3: slots.layer(b, "action_encoder.W3", width, width)?,
            positions: b.matrix(
                &format!("{}.position_embedding.weight", slots.prefix),
                config.position_rows,
                width,
            )?,
        })
    }

    fn run(&self, b: &mut ProgramBuilder<'_>, step: usize, actions: View, out: View) {
        b.linear(actions, self.layer1, Activation::Identity, self.embedded);
        let timestep = self.timesteps.slice_rows(step, 1);
        b.linear_buffer(self.embedded, (self.layer2, timestep), Activation::Silu, self.mixed);
        b.linear(self.mixed, self.layer3, Activation::Identity, out);
        b.tap(format!("k{step}.action_encoder_out"), out);
        b.add_weight(self.positions, out);
    }
}

/// The transformer blocks, with the buffers that they share.
struct Blocks<'a> {
    prefix: &'a str,
    config: &'a HeadConfig,
    modulations: Vec<View>,
    normed: View,
    q: View,
    k: View,
    v: View,
    context: View,
    branch: View,
    mlp: View,
}

impl<'a> Blocks<'a> {
    fn new(
        b: &mut ProgramBuilder<'_>,
        prefix: &'a str,
        config: &'a HeadConfig,
        rows: usize,
    ) -> Self {
        let width = config.dit_width();
        let modulations = (0..config.dit_layers)
            .map(|block| b.import(&block_modulation(block), config.steps, 2 * width))
            .collect();
        Self {
            prefix,
            config,
            modulations,
            normed: b.scratch("dit.norm", rows, width),
            q: b.scratch("dit.q", rows, width),
            k: b.scratch("dit.k", rows, width),
            v: b.scratch("dit.v", rows, width),
            context: b.scratch("dit.context", rows, width),
            branch: b.scratch("dit.branch", rows, width),
            mlp: b.scratch("dit.mlp", rows, MLP_FACTOR * width),
        }
    }

    fn run(
        &self,
        b: &mut ProgramBuilder<'_>,
        step: usize,
        block: usize,
        cross: Option<KeysAndValues>,
        hidden: View,
    ) -> Result<(), CheckpointError> {
        let width = self.config.dit_width();
        let name = format!("{}.model.transformer_blocks.{block}", self.prefix);
        let tap = format!("k{step}.dit_block{block}");
        let table = self.modulations[block].slice_rows(step, 1);
        let modulation =
            Modulation { scale: table.slice_cols(0, width), shift: table.slice_cols(width, width) };
        b.layer_norm(hidden, None, Some(modulation), BLOCK_EPS, self.normed);
        b.tap(format!("{tap}.norm1"), self.normed);
        b.project(&format!("{name}.attn1.to_q"), self.normed, Activation::Identity, self.q)?;
        let KeysAndValues { keys, values } = match cross {
            Some(cross) => cross,
            None => {
                b.project(
                    &format!("{name}.attn1.to_k"),
                    self.normed,
                    Activation::Identity,
                    self.k,
                )?;
                b.project(
                    &format!("{name}.attn1.to_v"),
                    self.normed,
                    Activation::Identity,
                    self.v,
                )?;
                KeysAndValues { keys: self.k, values: self.v }
            }
        };
        let shape = AttentionShape {
            heads: self.config.dit_heads,
            kv_heads: self.config.dit_heads,
            head_dim: self.config.dit_head_dim,
            scale: (self.config.dit_head_dim as f32).powf(-0.5),
            causal: false,
            sequences: 1,
        };
        b.attention(self.q, keys, values, shape, self.context);
        b.project(
            &format!("{name}.attn1.to_out.0"),
            self.context,
            Activation::Identity,
            self.branch,
        )?;
        b.tap(format!("{tap}.attn"), self.branch);
        b.add(self.branch, hidden);

        b.layer_norm(hidden, None, None, BLOCK_EPS, self.normed);
        b.tap(format!("{tap}.norm3"), self.normed);
        b.project(&format!("{name}.ff.net.0.proj"), self.normed, Activation::GeluTanh, self.mlp)?;
        b.project(&format!("{name}.ff.net.2"), self.mlp, Activation::Identity, self.branch)?;
        b.tap(format!("{tap}.ff"), self.branch);
        b.add(self.branch, hidden);
        b.tap(tap, hidden);
        Ok(())
    }
}

/// Width of a block's MLP relative to the DiT.
const MLP_FACTOR: usize = 4;

/// DiT rows to velocities.
struct ActionDecoder {
    modulation: View,
    normed: View,
    output: View,
    hidden: View,
    velocities: View,
    proj_out: (WeightId, Option<WeightId>),
    layer1: (WeightId, Option<WeightId>),
    layer2: (WeightId, Option<WeightId>),
}

impl ActionDecoder {
    fn new(
        b: &mut ProgramBuilder<'_>,
        prefix: &str,
        config: &HeadConfig,
        slots: &SlotWeights<'_>,
        rows: usize,
    ) -> Result<Self, CheckpointError> {
        let (width, output) = (config.dit_width(), config.dit_output);
        let (weight, bias) =
            b.weight_and_bias(&format!("{prefix}.model.proj_out_2"), output, width)?;
        Ok(Self {
            modulation: b.import(OUTPUT_MODULATION, config.steps, 2 * width),
            normed: b.scratch("dit.out_norm", rows, width),
            output: b.scratch("dit.out", rows, output),
            hidden: b.scratch("action_decoder.hidden", rows, config.hidden),
            velocities: b.scratch("action_decoder.out", rows, config.action_width),
            proj_out: (weight, Some(bias)),
            layer1: slots.layer(b, "action_decoder.layer1", output, config.hidden)?,
            layer2: slots.layer(b, "action_decoder.layer2", config.hidden, config.action_width)?,
        })
    }

    fn run(&self, b: &mut ProgramBuilder<'_>, step: usize, hidden: View) -> View {
        let width = hidden.cols;
        let table = self.modulation.slice_rows(step, 1);
        // The halves stand the other way round than inside the blocks.
        let modulation =
            Modulation { shift: table.slice_cols(0, width), scale: table.slice_cols(width, width) };
        b.layer_norm(hidden, None, Some(modulation), OUTPUT_EPS, self.normed);
        b.linear(self.normed, self.proj_out, Activation::Identity, self.output);
        b.tap(format!("k{step}.dit_out"), self.output);
        b.linear(self.output, self.layer1, Activation::Relu, self.hidden);
        b.linear(self.hidden, self.layer2, Activation::Identity, self.velocities);
        b.tap(format!("k{step}.decoder_out"), self.velocities);
        self.velocities
    }
}
