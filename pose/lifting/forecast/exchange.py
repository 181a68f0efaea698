"""Export of a forecaster's network to ONNX, in a form with few operators.

The file is renamed to its final name only after its outputs agree with those of the network.

Many small operators would dominate the run time. Here one matrix product computes queries, keys and values of a
sequence. Rotary encoding and attention are one operator each of ONNX's opset 23, `RotaryEmbedding` and `Attention`,
which `torch.onnx.ops` also computes in torch. The ages of the past are fixed, so their rotary phases are constants.

Axes: B person, K age of the past, Q requested time, D feature.
"""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.onnx import ops

from pose.errors import PoseError
from pose.lifting.attention import Context, rotary_phases
from pose.lifting.attention.softmax import CrossAttention, SoftmaxAttention
from pose.lifting.exchange import export_function
from pose.lifting.forecast.blended import Blended
from pose.lifting.forecast.config import AGES, FEATURES, FORMAT, INPUT_NAMES, OUTPUT_NAMES, PAST_STEPS
from pose.lifting.forecast.decoder import Decoder, OneShot, Remembered
from pose.lifting.forecast.network import ForecasterNetwork

EXPORTED = ("one-shot", "mlp", "blended")  # kinds that predict all times in a single pass
OPSET = 23  # the first opset with attention and rotary embedding


def export_forecaster(network: ForecasterNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic people and times; return its largest difference from the network, m."""
    if network.config.kind not in EXPORTED:
        supported = ", ".join(EXPORTED)
        raise PoseError(
            f"{path}: only single-pass forecasters can be exported ({supported}), not {network.config.kind}"
        )
    network = network.eval().cpu()
    metadata = {
        "format": FORMAT,
        "config": json.dumps(network.config.to_dict()),
        "checkpoint_sha256": checkpoint_sha256,
    }
    people, moments = torch.export.Dim("people", min=1, max=4096), torch.export.Dim("moments", min=1, max=4096)
    return export_function(
        folded(network), network, path, metadata, [_example(3, 5), _example(1, 1), _example(4, 25)],
        inputs=INPUT_NAMES, outputs=OUTPUT_NAMES, shapes=({0: people}, {0: people, 1: moments}), opset=OPSET,
    )  # fmt: skip


def _example(people: int, moments: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(people)
    past = torch.randn(people, PAST_STEPS, FEATURES, generator=generator)
    return past, torch.rand(people, moments, generator=generator)


def folded(network: ForecasterNetwork) -> ForecasterNetwork:
    """Return an equivalent copy of a network whose encoder and one-shot decoder use attention with few operators."""
    network = copy.deepcopy(network)
    one_shot = network.decoding if isinstance(network, Blended) else network
    if isinstance(one_shot, OneShot):
        for block in one_shot.encoder.blocks:
            block.register_module("attention", SelfAttention(cast(SoftmaxAttention, block.attention)))
        one_shot.register_module("decoder", RememberingDecoder(one_shot.decoder))
    return network


class SelfAttention(nn.Module):
    """The encoder's softmax attention over the ages of the past."""

    def __init__(self, attention: SoftmaxAttention) -> None:
        super().__init__()
        self.heads, self.dim = attention.heads, attention.q_proj.in_features
        self.project = joined([attention.q_proj, attention.k_proj, attention.v_proj])
        self.out_proj = attention.out_proj
        self.rotary = AgeRotation(attention.head_dim)

    def forward(self, x: Tensor, _: Context) -> Tensor:
        """Return the output (B, K, D) of the attention for tokens (B, K, D)."""
        compared, values = self.project(x).split([2 * self.dim, self.dim], dim=-1)
        queries, keys = self.rotary(compared, 2 * self.heads).split(self.dim, dim=-1)
        y: Tensor = self.out_proj(attend(queries, keys, values, self.heads))
        return y


class RememberingDecoder(nn.Module):
    """One-shot decoder that computes the keys and values of all its blocks in one matrix product."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        crosses = [block.cross for block in decoder.stack]
        self.embed, self.inner = decoder.embed, decoder
        self.heads, self.dim, self.depth = crosses[0].heads, crosses[0].q_proj.in_features, len(crosses)
        self.project = joined([cross.k_proj for cross in crosses] + [cross.v_proj for cross in crosses])
        self.rotary = AgeRotation(crosses[0].head_dim)
        for block in decoder.stack:
            block.register_module("cross", Cross(block.cross))

    def remember(self, memory: Tensor, _: Context) -> list[Remembered]:
        """Return keys and values (B, K, D each) for every block, from the encoded past `memory` (B, K, D) at K ages."""
        keys, *values = self.project(memory).split([self.depth * self.dim] + self.depth * [self.dim], dim=-1)
        turned = self.rotary(keys, self.depth * self.heads).split(self.dim, dim=-1)
        return list(zip(turned, values, strict=True))

    def forward(self, x: Tensor, times: Tensor, remembered: list[Remembered]) -> Tensor:
        """Decode tokens, see `pose.lifting.forecast.decoder.Decoder.forward`."""
        y: Tensor = self.inner(x, times, remembered)
        return y


class Cross(nn.Module):
    """A decoder's attention to precomputed keys and values."""

    def __init__(self, cross: CrossAttention) -> None:
        super().__init__()
        self.heads, self.q_proj, self.out_proj = cross.heads, cross.q_proj, cross.out_proj

    def forward(self, x: Tensor, context: Context, remembered: Remembered) -> Tensor:
        """Return the output (B, Q, D) of attention from tokens `x` (B, Q, D) to the keys and values of the past."""
        queries = ops.rotary_embedding(self.q_proj(x), context.cos, context.sin, num_heads=self.heads)
        y: Tensor = self.out_proj(attend(queries, *remembered, self.heads))
        return y


class AgeRotation(nn.Module):
    """Rotary encoding (`pose.lifting.attention.base.rotate`) of tokens at the ages of the past."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.cos: Tensor
        self.sin: Tensor
        self.rows: Tensor
        cos, sin = rotary_phases(torch.as_tensor(AGES)[None], head_dim)
        self.register_buffer("cos", cos[0])
        self.register_buffer("sin", sin[0])
        self.register_buffer("rows", torch.arange(PAST_STEPS)[None])

    def forward(self, x: Tensor, heads: int) -> Tensor:
        """Rotate the vectors of `heads` heads in tokens (B, K, D) of B people at K ages."""
        rows = self.rows.expand(x.shape[0], -1)  # `len(x)` would become a constant in the export
        return ops.rotary_embedding(x, self.cos, self.sin, rows, num_heads=heads)


def attend(queries: Tensor, keys: Tensor, values: Tensor, heads: int) -> Tensor:
    """Compute scaled dot-product attention. Arguments and output are (B, tokens, D), with all heads side by side."""
    return ops.attention(queries, keys, values, q_num_heads=heads, kv_num_heads=heads)[0]


def joined(layers: Sequence[nn.Linear]) -> nn.Linear:
    """Return one linear layer whose outputs are those of `layers`, concatenated."""
    one = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers))
    with torch.no_grad():
        one.weight.copy_(torch.cat([layer.weight for layer in layers]))
        one.bias.copy_(torch.cat([layer.bias for layer in layers]))
    return one
