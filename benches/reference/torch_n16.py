"""GR00T N1.6 in torch fp32 on the CPU: what the CPU backend is measured against.

The forward pass as NVIDIA's policy computes it, operation by operation: nothing is computed ahead of a request, every
Euler step runs the timestep encoder, the AdaLN linears and the keys and values of the cross blocks over all tokens.
The unused language head is left out. One case of the golden data is run, its result compared with the stored
`action_pred`, then timed:

    python torch_n16.py SNAPSHOT CASE.safetensors [--runs 5] [--threads 2]
    python torch_n16.py --linear [--threads 2]

Needs torch (2.7.1 is the reference's version), numpy, safetensors, opencv-python-headless and pillow.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from frame_chain import plain_chain
from PIL import Image
from safetensors import safe_open

# Of `action_pred`, whose values are around 1.
TOLERANCE = 2e-5

VISION = "backbone.model.vision_model.vision_model."
CONNECTOR = "backbone.model.mlp1."
LLM = "backbone.model.language_model.model."
HEAD = "action_head."
UNUSED = ("backbone.model.language_model.lm_head.", VISION + "head.")
IMAGE_TOKEN = 151669

# Rows, inputs, outputs of the linears of vision tower, language model and DiT.
LINEAR_SHAPES = [
    (324, 588, 1152),
    (324, 1152, 1152),
    (324, 1152, 4304),
    (324, 4304, 1152),
    (116, 2048, 2048),
    (116, 2048, 6144),
    (116, 6144, 2048),
    (51, 1536, 1536),
    (51, 1536, 6144),
    (51, 6144, 1536),
]
# So many bytes of weights are used in turn, as a network would: no cache holds them.
LINEAR_WEIGHT_BYTES = 256 * 1024 * 1024


class Weights:
    """All tensors of a snapshot that the network uses, as f32."""

    def __init__(self, snapshot):
        index = json.loads((snapshot / "model.safetensors.index.json").read_text())
        self.tensors = {}
        for shard in sorted(set(index["weight_map"].values())):
            with safe_open(snapshot / shard, framework="pt") as file:
                for name in file.keys():
                    if not name.startswith(UNUSED):
                        self.tensors[name] = file.get_tensor(name).float()

    def __getitem__(self, name):
        return self.tensors[name]

    def linear(self, x, name):
        return F.linear(x, self[name + ".weight"], self.tensors.get(name + ".bias"))

    def layer_norm(self, x, name, eps):
        weight = self[name + ".weight"]
        return F.layer_norm(x, weight.shape, weight, self[name + ".bias"], eps)

    def rms_norm(self, x, name):
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self[name + ".weight"] * scaled

    def category(self, x, name, slot):
        """A linear whose matrix is chosen by embodiment: `x W[slot] + b[slot]`."""
        return torch.bmm(x, self[name + ".W"][slot]) + self[name + ".b"][slot].unsqueeze(1)

    def count(self, prefix):
        """Number of layers named `prefix`0, `prefix`1, ..."""
        names = (name for name in self.tensors if name.startswith(prefix))
        return 1 + max(int(name[len(prefix):].split(".")[0]) for name in names)


def heads(x, count):
    """`[1, rows, count * dim]` to `[1, count, rows, dim]`."""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


class Policy:
    def __init__(self, snapshot):
        self.w = Weights(snapshot)
        self.config = json.loads((snapshot / "config.json").read_text())
        override = snapshot / "eagle_config.json"
        override = json.loads(override.read_text()) if override.exists() else {}
        self.vision_heads = override.get("vision_config", {}).get("num_attention_heads", 16)

    def vision(self, pixels):
        """`[images, 3, side, side]` to `[1, tokens, width of the language model]`."""
        w = self.w
        patch = math.isqrt(w[VISION + "embeddings.patch_embedding.weight"].shape[1] // 3)
        images, channels, side, _ = pixels.shape
        grid = side // patch
        x = pixels.view(images, channels, grid, patch, grid, patch)
        x = x.permute(0, 2, 4, 3, 5, 1).reshape(images, grid * grid, -1)
        h = w.linear(x, VISION + "embeddings.patch_embedding")
        table = w[VISION + "embeddings.position_embedding.weight"]
        stored = math.isqrt(table.shape[0])
        table = table.view(1, stored, stored, -1).permute(0, 3, 1, 2)
        table = F.interpolate(table, (grid, grid), mode="bilinear", align_corners=False, antialias=True)
        h = h + table.flatten(2).transpose(1, 2)
        for layer in range(w.count(VISION + "encoder.layers.")):
            name = f"{VISION}encoder.layers.{layer}."
            n = w.layer_norm(h, name + "layer_norm1", 1e-6)
            q, k, v = (heads(w.linear(n, f"{name}self_attn.{p}_proj"), self.vision_heads) for p in "qkv")
            h = h + w.linear(merge(F.scaled_dot_product_attention(q, k, v)), name + "self_attn.out_proj")
            n = w.layer_norm(h, name + "layer_norm2", 1e-6)
            n = F.gelu(w.linear(n, name + "mlp.fc1"), approximate="tanh")
            h = h + w.linear(n, name + "mlp.fc2")
        h = w.layer_norm(h, VISION + "post_layernorm", 1e-6)
        half = grid // 2
        h = h.view(images, half, 2, half, 2, -1).permute(0, 1, 3, 5, 2, 4).reshape(1, images * half * half, -1)
        h = F.gelu(w.linear(w.layer_norm(h, CONNECTOR + "0", 1e-5), CONNECTOR + "1"))
        return w.linear(h, CONNECTOR + "3")

    def language(self, ids, image_tokens):
        """`[1, tokens]` to `[1, tokens, width]`."""
        w = self.w
        x = w[LLM + "embed_tokens.weight"][ids]
        x[ids == IMAGE_TOKEN] = image_tokens[0]
        dim = w[LLM + "layers.0.self_attn.q_norm.weight"].shape[0]
        inverse = 1.0 / (1e6 ** (torch.arange(0, dim, 2).float() / dim))
        angles = torch.outer(torch.arange(ids.shape[1]).float(), inverse)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()

        def rotate(x):
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat((-b, a), -1) * sin

        for layer in range(self.config["select_layer"]):
            name = f"{LLM}layers.{layer}."
            n = w.rms_norm(x, name + "input_layernorm")
            q, k, v = (w.linear(n, f"{name}self_attn.{p}_proj").unflatten(-1, (-1, dim)) for p in "qkv")
            q = rotate(w.rms_norm(q, name + "self_attn.q_norm").transpose(1, 2))
            k = rotate(w.rms_norm(k, name + "self_attn.k_norm").transpose(1, 2))
            group = q.shape[1] // k.shape[1]
            k = k.repeat_interleave(group, 1)
            v = v.transpose(1, 2).repeat_interleave(group, 1)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + w.linear(merge(a), name + "self_attn.o_proj")
            n = w.rms_norm(x, name + "post_attention_layernorm")
            n = F.silu(w.linear(n, name + "mlp.gate_proj")) * w.linear(n, name + "mlp.up_proj")
            x = x + w.linear(n, name + "mlp.down_proj")
        return w.rms_norm(x, LLM + "norm")

    def encode_actions(self, actions, t, slot):
        w = self.w
        a = w.category(actions, HEAD + "action_encoder.W1", slot)
        half = a.shape[-1] // 2
        frequencies = torch.exp(-torch.arange(half).float() * (math.log(10000.0) / half))
        angles = torch.full((1, actions.shape[1], 1), float(t)) * frequencies
        tau = torch.cat((angles.sin(), angles.cos()), -1)
        a = F.silu(w.category(torch.cat((a, tau), -1), HEAD + "action_encoder.W2", slot))
        a = w.category(a, HEAD + "action_encoder.W3", slot)
        return a + w[HEAD + "position_embedding.weight"][: actions.shape[1]]

    def dit(self, h, vl, image_mask, t):
        w, cfg = self.w, self.config["diffusion_model_cfg"]
        name = HEAD + "model.timestep_encoder.timestep_embedder.linear_"
        frequencies = torch.exp(-math.log(10000.0) * torch.arange(128).float() / 127)
        angles = float(t) * frequencies[None]
        temb = w.linear(torch.cat((angles.cos(), angles.sin()), -1), name + "1")
        temb = w.linear(F.silu(temb), name + "2")
        width = h.shape[-1:]
        for block in range(cfg["num_layers"]):
            name = f"{HEAD}model.transformer_blocks.{block}."
            scale, shift = w.linear(F.silu(temb), name + "norm1.linear").chunk(2, 1)
            n = F.layer_norm(h, width, eps=1e-5) * (1 + scale[:, None]) + shift[:, None]
            if block % 2 == 1:
                context, mask = n, None
            else:
                text = block % (2 * self.config["attend_text_every_n_blocks"]) == 0
                context, mask = vl, (~image_mask if text else image_mask)[:, None, None]
            q = w.linear(n, name + "attn1.to_q")
            k = w.linear(context, name + "attn1.to_k")
            v = w.linear(context, name + "attn1.to_v")
            q, k, v = (heads(x, cfg["num_attention_heads"]) for x in (q, k, v))
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            h = h + w.linear(merge(a), name + "attn1.to_out.0")
            n = F.gelu(w.linear(F.layer_norm(h, width, eps=1e-5), name + "ff.net.0.proj"), approximate="tanh")
            h = h + w.linear(n, name + "ff.net.2")
        shift, scale = w.linear(F.silu(temb), HEAD + "model.proj_out_1").chunk(2, 1)
        h = F.layer_norm(h, width, eps=1e-6) * (1 + scale[:, None]) + shift[:, None]
        return w.linear(h, HEAD + "model.proj_out_2")

    @torch.inference_mode()
    def predict(self, pixels, ids, state, noise, slot):
        w = self.w
        slot = torch.tensor([slot])
        features = self.language(ids, self.vision(pixels))
        image_mask = ids == IMAGE_TOKEN
        vl = w.layer_norm(features, HEAD + "vlln", 1e-5)
        s = F.relu(w.category(state, HEAD + "state_encoder.layer1", slot))
        s = w.category(s, HEAD + "state_encoder.layer2", slot)
        steps = self.config["num_inference_timesteps"]
        actions = noise
        for step in range(steps):
            t = int(step / steps * self.config["num_timestep_buckets"])
            h = torch.cat((s, self.encode_actions(actions, t, slot)), 1)
            h = self.dit(h, vl, image_mask, t)
            h = F.relu(w.category(h, HEAD + "action_decoder.layer1", slot))
            h = w.category(h, HEAD + "action_decoder.layer2", slot)
            actions = actions + h[:, -actions.shape[1]:] / steps
        return actions


def load_case(path):
    """Inputs of a golden case and its `action_pred`."""
    case = json.loads(path.with_suffix(".json").read_text())
    with safe_open(path, framework="pt") as file:
        # Large cases store only a part of the pixels, so they are made from the frames again.
        frames = [np.asarray(Image.open(path.parent / frame["png"]).convert("RGB")) for frame in case["frames"]]
        pixels = torch.from_numpy(np.stack([plain_chain(frame)["pixels"] for frame in frames]))
        inputs = (
            pixels,
            file.get_tensor("input_ids"),
            file.get_tensor("state_normalized"),
            file.get_tensor("initial_noise"),
            case["embodiment_slot"],
        )
        return inputs, file.get_tensor("action_pred")


def run_case(snapshot, path, runs):
    policy = Policy(snapshot)
    inputs, expected = load_case(path)
    error = (policy.predict(*inputs) - expected).abs().max().item()
    print(f"action_pred is within {error:.1e} of the stored one (limit {TOLERANCE:.0e})")
    if error > TOLERANCE:
        return 1
    seconds, cpu_seconds = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        policy.predict(*inputs)
        seconds.append(time.perf_counter() - wall)
        cpu_seconds.append(time.process_time() - cpu)
    print(
        f"median of {runs} runs on {torch.get_num_threads()} threads: {statistics.median(seconds):.3f} s, "
        f"best {min(seconds):.3f} s; CPU time: median {statistics.median(cpu_seconds):.3f} s, "
        f"best {min(cpu_seconds):.3f} s"
    )
    return 0


@torch.inference_mode()
def time_linear(runs):
    print("rows x inputs x outputs   GFLOP/s: median   best   per CPU second: median   best")
    for rows, inputs, outputs in LINEAR_SHAPES:
        x = torch.randn(rows, inputs)
        count = max(1, LINEAR_WEIGHT_BYTES // (inputs * outputs * 4))
        weights = [torch.randn(outputs, inputs) for _ in range(count)]
        bias = torch.randn(outputs)
        wall, cpu = [], []
        for run in range(count + runs):
            start, start_cpu = time.perf_counter(), time.process_time()
            F.linear(x, weights[run % count], bias)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
        giga = 2e-9 * rows * inputs * outputs
        # The first round finds nothing warmed up.
        wall, cpu = wall[count:], cpu[count:]
        print(
            f"{rows:4} x {inputs:4} x {outputs:4}        {giga / statistics.median(wall):7.1f} {giga / min(wall):7.1f}"
            f"   {giga / statistics.median(cpu):7.1f} {giga / min(cpu):7.1f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot", type=Path, nargs="?", help="directory with config.json and the shards")
    parser.add_argument("case", type=Path, nargs="?", help="golden case (.safetensors beside its .json)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--linear", action="store_true", help="time F.linear at the shapes of the network")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.linear:
        time_linear(arguments.runs)
        return 0
    if arguments.snapshot is None or arguments.case is None:
        parser.error("a snapshot and a case, or --linear")
    return run_case(arguments.snapshot, arguments.case, arguments.runs)


if __name__ == "__main__":
    sys.exit(main())
