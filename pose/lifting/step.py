"""One frame of a stream as a function of tensors, for `LifterStream` and for exported lifters.

    observation + state  ->  output + next state

The state of P people consists of these tensors:

    frames (P,)                  number of frames before this step, minus L, the look-ahead; -L at first. The step's
                                 output is valid if this input is 0 or more
    recent (P, L + 1, F)         features of the last frames; the target frame, whose pose is returned, comes first
    recent_times (P, L + 1)      their times, s
    the caches of the attention layers, which depend on the mechanism

Axes: P person, L look-ahead, F feature, D width, H head, K feature of one head, S slot of a window.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Context, rotary_phases
from pose.lifting.attention.softmax import SoftmaxAttention, Window
from pose.lifting.blocks import Block
from pose.lifting.features import decode, observe_next, split_features
from pose.lifting.format import OUTPUT_NAMES, STEP_INPUT_NAMES, STREAM_STATE_NAMES, TYPICAL_STEP
from pose.lifting.model import LifterBlock, LifterNetwork, streaming_token
from pose.lifting.step_batch import CacheLayout


class StreamStep(nn.Module):
    """Step of a streaming lifter for one frame: input features, network, and decoding (`pose.lifting.features`)."""

    # For a state tensor `x`, the output `next_x` is the input `x` for the next frame. Networks that run in a
    # `WindowedCore` have the output `update` instead for the caches of their layers.

    def __init__(self, network: LifterNetwork) -> None:
        super().__init__()
        if not network.config.streaming:
            raise ValueError("an offline lifter processes whole windows and cannot process single frames")
        self.core = core = WindowedCore(network) if WindowedCore.supports(network) else RecurrentCore(network)
        self.calibration: Tensor
        self.register_buffer("calibration", network.calibration)
        self.inputs = [*STEP_INPUT_NAMES, *STREAM_STATE_NAMES, *core.state_names]  # names of the arguments of `forward`
        self.outputs = [*OUTPUT_NAMES, *(f"next_{name}" for name in STREAM_STATE_NAMES), *core.result_names]

    @property
    def cache_layout(self) -> CacheLayout:
        """Initial caches of one person and their layout."""
        empty = (part[0].cpu().numpy() for part in self.core.empty_state())
        pinned = self.core.window.pinned if isinstance(self.core, WindowedCore) else None
        return CacheLayout(dict(zip(self.core.state_names, empty, strict=True)), pinned)

    def forward(
        self,
        keypoints: Tensor,
        scores: Tensor,
        time: Tensor,
        intrinsics: Tensor,
        derived: Tensor,
        intrinsics_known: Tensor,
        frames: Tensor,
        recent: Tensor,
        recent_times: Tensor,
        *state: Tensor,
    ) -> tuple[Tensor, ...]:
        """Process one frame of P people; return joints (P, 17, 3) m, root, sigma mm of L frames ago, and next state."""
        # `frames` (P,) is the number of earlier frames minus the look-ahead L; `recent` (P, L + 1, F) holds features of
        # the last frames, oldest first, and `recent_times` (P, L + 1) their times, s.
        first = frames + recent.shape[1] == 1
        elapsed = torch.where(first, TYPICAL_STEP, time - recent_times[:, -1])
        newest = observe_next(keypoints, scores, elapsed, recent[:, -1], intrinsics, derived, intrinsics_known)
        recent = torch.cat([recent, newest[:, None]], dim=1)[:, 1:]
        recent_times = torch.cat([recent_times, time[:, None]], dim=1)[:, 1:]
        target = recent[:, 0]
        token = streaming_token(newest, target, time - recent_times[:, 0])
        outputs, *results = self.core(token, time, frames, state)
        lifted = decode(outputs, split_features(target), self.calibration)
        return lifted.joints, lifted.root, lifted.sigma, frames + 1, recent, recent_times, *results


class RecurrentCore(nn.Module):
    """Part of a `StreamStep` that runs any streaming network; `forward` returns the whole new state."""

    def __init__(self, network: LifterNetwork) -> None:
        super().__init__()
        self.network = network
        layers = [cast(LifterBlock, block).cache_fields for block in network.blocks]
        self._lengths = [len(fields) for fields in layers]
        self.state_names = [f"layer{i}_{field}" for i, fields in enumerate(layers) for field in fields]
        self.result_names = [f"next_{name}" for name in self.state_names]

    def empty_state(self) -> list[Tensor]:
        """Return the state of one person before the first frame."""
        return [part for cache in self.network.init_caches(1) for part in cache]

    def forward(self, token: Tensor, time: Tensor, token_index: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Process one token (P, 2 F + 1) per person; return network outputs (P, OUTPUTS) and the new state."""
        # `token_index` is negative before the first output. The caches then stay unchanged.
        parts = iter(state)
        caches = [tuple(islice(parts, length)) for length in self._lengths]
        context = Context.from_times(time[:, None], self.network.head_dim)
        outputs, caches = self.network.step(token[:, None], context, caches)
        has_output = token_index >= 0  # frames before the first output are not part of the sequence
        following = (part for cache in caches for part in cache)
        next_state = (
            torch.where(has_output.view(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(following, state, strict=True)
        )
        return outputs[:, 0], *next_state


class WindowedCore(nn.Module):
    """Part of a `StreamStep` that runs networks of windowed softmax attention, faster than `RecurrentCore`."""

    # The state tensors are `keys0`, `values0`, `keys1`, ..., (P, H, S, K) each for H heads of K features and S slots.
    # Instead of copies of them, `forward` returns `update` (P, 2 depth, H, K) with one new entry for each. The caller
    # writes the entries to slot `CacheLayout.slot(token_index)`.

    result_names: list[str] = ["update"]  # noqa: RUF012

    @staticmethod
    def supports(network: LifterNetwork) -> bool:
        """Return whether this core supports the network."""
        return all(
            isinstance(block, Block)
            and network.config.residual == "plain"
            and isinstance(block.attention, SoftmaxAttention)
            and block.attention.is_windowed_softmax
            for block in network.blocks
        )

    def __init__(self, network: LifterNetwork) -> None:
        super().__init__()
        attention = cast(SoftmaxAttention, cast(Block, network.blocks[0]).attention)
        assert isinstance(attention.window, Window)
        self.window: Window = attention.window
        self.heads, self.head_dim = attention.heads, attention.head_dim
        self.slots = self.window.pinned + self.window.reach
        self.embed, self.norm, self.head = network.embed, network.norm, network.head
        self.blocks = nn.ModuleList(WindowedBlock(cast(Block, block)) for block in network.blocks)
        self.state_names = [f"{name}{i}" for i in range(len(self.blocks)) for name in ("keys", "values")]

    def empty_state(self) -> list[Tensor]:
        """Return the state of one person before the first frame, (1, heads, slots, features of a head) each."""
        return [torch.zeros(1, self.heads, self.slots, self.head_dim) for _ in self.state_names]

    def forward(
        self, token: Tensor, time: Tensor, token_index: Tensor, state: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Process one token per person; return network outputs (P, OUTPUTS), and `update` (P, 2 depth, H, K)."""
        cos, sin = rotary_phases(time[:, None], self.head_dim)
        rotary = RotaryFactors(torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1))
        attn_bias = torch.where(self._attention_mask(token_index), 0.0, -torch.inf)[:, None, None]
        x = self.embed(token)
        update: list[Tensor] = []
        for block, keys, values in zip(self.blocks, state[::2], state[1::2], strict=True):
            x, key, value = block(x, rotary, attn_bias, keys, values)
            update += [key, value]
        return self.head(self.norm(x)), torch.stack(update, dim=1)

    def _attention_mask(self, token_index: Tensor) -> Tensor:
        """Return a mask (P, S) of the slots to attend to, without empty slots and the frame's own."""
        pinned, now = self.window.pinned, token_index[:, None]
        slot = torch.arange(self.slots, device=token_index.device)
        newest = now - 1
        in_ring = newest - (newest - slot) % (self.slots - pinned)
        frame = torch.where(slot < pinned, slot, in_ring)
        exists = (frame >= torch.where(slot < pinned, 0, pinned)) & (frame < now)
        return exists & self.window.allows(now, frame)


class RotaryFactors(NamedTuple):
    """Rotary position encoding of vectors x = (a, b): straight * (a, b) + crossed * (b, a)."""

    straight: Tensor  # (P, 1, K) cosines of the phases
    crossed: Tensor  # (P, 1, K) sines of the phases, negative in the first half

    def __call__(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * self.straight + torch.cat([b, a], dim=-1) * self.crossed


class WindowedBlock(nn.Module):
    """One block of a `WindowedCore`, with one matrix product for queries (scaled by 1 / sqrt(K)), keys and values."""

    qkv_weight: Tensor
    qkv_bias: Tensor

    def __init__(self, block: Block) -> None:
        super().__init__()
        attention = cast(SoftmaxAttention, block.attention)
        self.heads, self.head_dim = attention.heads, attention.head_dim
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        scales = (self.head_dim**-0.5, 1.0, 1.0)
        with torch.no_grad():
            for name in ("weight", "bias"):
                parts = [getattr(p, name) * scale for p, scale in zip(projections, scales, strict=True)]
                self.register_buffer(f"qkv_{name}", torch.cat(parts))
        self.out_proj, self.ffn, self.post = attention.out_proj, block.ffn, block.post
        self.norm1, self.norm2 = block.norm1, block.norm2

    def forward(
        self, x: Tensor, rotary: RotaryFactors, attn_bias: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Apply the block to tokens (..., D), by default (P, D); return them, and the new keys and values (P, H, K)."""
        y, key, value = self._attend(x if self.post else self.norm1(x), rotary, attn_bias, keys, values)
        x = x + y
        if self.post:
            x = self.norm1(x)
            return self.norm2(x + self.ffn(x)), key, value
        return x + self.ffn(self.norm2(x)), key, value

    def _attend(
        self, x: Tensor, rotary: RotaryFactors, attn_bias: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        qkv = F.linear(x, self.qkv_weight, self.qkv_bias).unflatten(-1, (3 * self.heads, self.head_dim))
        query, key = rotary(qkv[:, : 2 * self.heads]).chunk(2, dim=1)
        value = qkv[:, 2 * self.heads :]
        before = query[:, :, None] @ keys.mT + attn_bias
        itself = (query * key).sum(dim=-1)[:, :, None, None]
        weights = torch.cat([before, itself], dim=-1).softmax(dim=-1)
        y = (weights[..., :-1] @ values)[:, :, 0] + weights[..., 0, -1:] * value
        return self.out_proj(y.flatten(1)), key, value
