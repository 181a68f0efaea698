"""Base class of all attention mechanisms, their capabilities, the context of a batch, rotary time and caches.

Axes: B batch, T time, D feature, H head, K feature of one head, S cache slot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

Cache: TypeAlias = tuple[Tensor, ...]  # state of a stream: each (B, ...), in the order of `Attention.cache_fields`
Option: TypeAlias = int | float | str | None  # value of a mechanism's option in a recipe

SLOWEST_HZ = 0.1
FASTEST_HZ = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Features that a mechanism supports. `build_attention` raises an error if an unsupported one is requested."""

    # Whether invalid frames (missing frames and padding) have no influence. If False, they enter as zeros, so the
    # output depends on their number.
    padding: bool
    bidirectional: bool = True  # whether there is a form in which every frame sees all others
    causal: bool  # whether there is a form in which each frame attends only to itself and earlier frames
    streaming: bool  # whether the causal form can be stepped frame by frame with a cache of constant size
    # Whether the mechanism uses the rotary phases, and thus the seconds between frames. If False, the model adds the
    # time to the tokens, unless `own_time` is True.
    relative_time: bool
    own_time: bool = False  # whether the mechanism has its own time encoding, chosen by its options
    max_length: int | None = None  # longest sequence in frames; None for any
    # whether random numbers are used in training, so that outputs differ from those in evaluation mode
    random: bool = False
    cost: str  # time and memory of one layer, such as "O(T^2 D)"

    @property
    def knows_time(self) -> bool:
        """Whether the mechanism encodes time; otherwise the model adds the time to the tokens."""
        return self.relative_time or self.own_time


def rotary_phases(times_BT: Tensor, head_dim: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Compute the cosine and sine, (B, T, head_dim/2) each, of every frame's rotary angles, from times in seconds.

    Rotary embeddings: Su et al., 2021. The head_dim/2 frequencies are evenly spaced in logarithm from 0.1 Hz to 10 Hz.
    The period of the lowest covers the longest window. At 30 frames/s, higher frequencies would not be resolved. Times
    are float64 from any origin, so that the angles stay exact to 1e-7 rad for a month.
    """
    # No torch.logspace: exporters compute it in single precision, an error that grows with the time.
    steps, ratio = max(head_dim // 2 - 1, 1), FASTEST_HZ / SLOWEST_HZ
    omegas = [2 * math.pi * SLOWEST_HZ * ratio ** (k / steps) for k in range(head_dim // 2)]
    omega_K = torch.tensor(omegas, dtype=torch.float64, device=times_BT.device)
    angles_BTK = times_BT.to(torch.float64)[..., None] * omega_K
    return angles_BTK.cos().to(dtype), angles_BTK.sin().to(dtype)


@dataclass(frozen=True, slots=True)
class Context:
    """Data of one batch that all layers share, built once per forward pass. In a streaming step T is 1."""

    cos: Tensor  # (B, T, K/2) cosines from `rotary_phases`
    sin: Tensor  # (B, T, K/2) sines from `rotary_phases`
    # (B, T) bool, False for invalid frames (missing frames and padding); None if all frames are valid
    valid: Tensor | None = None
    # (B, T) float64 s, for mechanisms that need the times in addition to the phases; None if no layer needs times
    times: Tensor | None = None
    replay: bool = False  # whether this pass repeats an earlier one and must repeat its random choices (see `store`)
    _masks: dict[object, Tensor | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_times(
        cls, times_BT: Tensor, head_dim: int, valid_BT: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> "Context":
        """Build a context with rotary phases from times (B, T) s and, if some frames are invalid, (B, T) bool."""
        return cls(*rotary_phases(times_BT, head_dim, dtype), valid_BT, times_BT)

    @property
    def seconds(self) -> Tensor:
        """Frame times (B, T), float64 s; ValueError if the context was built without times."""
        if self.times is None:
            raise ValueError("this attention needs frame times: create its context with Context.from_times")
        return self.times

    def shared_mask(self, key: object, make: Callable[[], Tensor | None]) -> Tensor | None:
        """Return the mask that `make` builds, computed once for all layers with an equal `key`."""
        if key not in self._masks:
            self._masks[key] = make()
        return self._masks[key]

    def store(self, layer: object, value: Tensor) -> Tensor:
        """Store `value` as that of `layer`, and return it. Other layers read it with `stored(layer)`."""
        self._masks[layer] = value
        return value

    def stored(self, layer: object) -> Tensor:
        """Return the value that `layer` stored in this pass."""
        value = self.find_stored(layer)
        assert value is not None
        return value

    def find_stored(self, layer: object) -> Tensor | None:
        """Return the value that `layer` stored in this pass, or None if there is none."""
        return self._masks.get(layer)


def rotate(x_BHTK: Tensor, context: Context) -> Tensor:
    """Rotate each pair (i, i + K/2) of features by the frame's angle: products depend on time differences only."""
    cos, sin = context.cos[:, None], context.sin[:, None]
    a, b = x_BHTK.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x_BHTK.dtype)


class KVCache(NamedTuple):
    """Keys and values of a stream, in S slots.

    The first `pinned` slots hold the first frames of the stream; the remaining slots are a ring buffer. To restart one
    row of the batch, set its position to -1 and its frames to 0.
    """

    keys: Tensor  # (B, H, S, K), rotated by time; may have more features than the values
    values: Tensor  # (B, H, S, K)
    position: Tensor  # (B, S) number of the frame in each slot, from the start of its stream; -1 for an empty slot
    frames: Tensor  # (B,) number of frames processed so far

    @classmethod
    def empty(
        cls,
        batch: int,
        heads: int,
        slots: int,
        head_dim: int,
        device: torch.device | str,
        dtype: torch.dtype,
        *,
        value_dim: int | None = None,
    ) -> "KVCache":
        """Create an empty cache of `batch` streams; values have the width of keys unless `value_dim` is given."""
        return cls(
            torch.zeros(batch, heads, slots, head_dim, device=device, dtype=dtype),
            torch.zeros(batch, heads, slots, value_dim or head_dim, device=device, dtype=dtype),
            torch.full((batch, slots), -1, device=device),
            torch.zeros(batch, dtype=torch.int64, device=device),
        )

    def push(self, k_BH1K: Tensor, v_BH1K: Tensor, valid_B1: Tensor | None, pinned: int = 0) -> "KVCache":
        """Return a cache with one more frame, in the slot of the oldest that is not pinned."""
        slot_B = ring_slot(self.frames, self.keys.shape[2], pinned)
        position_B1 = self.frames[:, None]
        if valid_B1 is not None:
            position_B1 = torch.where(valid_B1, position_B1, -1)
        slot_B111 = slot_B[:, None, None, None]
        return KVCache(
            self.keys.scatter(2, slot_B111.expand_as(k_BH1K), k_BH1K.to(self.keys.dtype)),
            self.values.scatter(2, slot_B111.expand_as(v_BH1K), v_BH1K.to(self.values.dtype)),
            self.position.scatter(1, slot_B[:, None], position_B1),
            self.frames + 1,
        )


def ring_slot(frame_B: Tensor, slots: int, pinned: int) -> Tensor:
    """Return the slot (B,) of each frame number, of `slots`: fixed for the first `pinned` frames, then a ring."""
    slot_B = pinned + (frame_B - pinned) % (slots - pinned)
    return torch.where(frame_B < pinned, frame_B, slot_B) if pinned else slot_B


class TimedCache(NamedTuple):
    """A `KVCache` that also has the `times` (B, S) of the frames in its slots, float64 s."""

    keys: Tensor
    values: Tensor
    position: Tensor
    frames: Tensor
    times: Tensor

    @classmethod
    def of(cls, empty: KVCache) -> "TimedCache":
        """Add times to an empty cache."""
        position = empty.position
        return cls(*empty, torch.zeros(position.shape, device=position.device, dtype=torch.float64))

    def push(self, k_BH1K: Tensor, v_BH1K: Tensor, seconds_B1: Tensor, valid_B1: Tensor | None) -> "TimedCache":
        """Return a cache with one more frame and its time; see `KVCache.push`."""
        slot_B = ring_slot(self.frames, self.times.shape[1], 0)
        times = self.times.scatter(1, slot_B[:, None], seconds_B1)
        return TimedCache(*KVCache(*self[:4]).push(k_BH1K, v_BH1K, valid_B1), times)


class Attention(nn.Module):
    """Base class of mechanisms that mix the frames of a sequence.

    Subclasses implement `mix`. Those that support streaming also implement `empty_cache` and `mix_step`. Their
    docstrings describe only the arguments that they add to those below.

    Args:
        dim: Number of features of a token.
        heads: Number of heads; must divide `dim`.
        causal: Whether each frame attends only to itself and earlier frames.
    """

    capabilities: Capabilities  # features that the mechanism supports
    cache_fields: tuple[str, ...] = ()  # names of the parts of a stream's cache, in order

    def __init__(self, dim: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        if heads < 1 or dim < heads or dim % heads:
            raise ValueError(f"dim must be a multiple of heads, got dim {dim} and {heads} heads")
        if self.capabilities.relative_time and dim // heads % 2:
            raise ValueError(f"rotary time needs an even number of features per head, got {dim} / {heads}")
        if causal and not self.capabilities.causal:
            raise ValueError(f"{type(self).__name__} has no causal form: each output frame depends on all frames")
        if not causal and not self.capabilities.bidirectional:
            raise ValueError(f"{type(self).__name__} has only a causal form: build it with causal=True")
        self.dim, self.heads, self.head_dim, self.causal = dim, heads, dim // heads, causal

    @classmethod
    def build_layers(cls, depth: int, dim: int, heads: int, **options: Option) -> "list[Attention]":
        """Build the attention layers for a stack of blocks, which may share parameters."""
        build: Callable[..., Attention] = cls  # keywords depend on the mechanism; `build_attentions` checks them
        return [build(dim, heads, **options) for _ in range(depth)]

    def forward(self, x_BTD: Tensor, context: Context) -> Tensor:
        """Mix the tokens (B, T, D) over time; invalid frames have no effect and output 0. ValueError if too long."""
        limit = self.capabilities.max_length
        if limit is not None and x_BTD.shape[1] > limit:
            raise ValueError(f"{type(self).__name__} was built for at most {limit} frames, got {x_BTD.shape[1]}")
        if context.valid is None:
            return self.mix(x_BTD, context)
        valid_BT1 = context.valid[..., None]
        return self.mix(x_BTD.where(valid_BT1, 0), context).where(valid_BT1, 0)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        """Prepare for a training step; random parts are sampled from `generator`, which a resumed run repeats."""

    def penalty(self) -> Tensor | None:
        """Return the term that training adds to the loss for this layer, or None for no term."""
        return None

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Create the empty cache for `batch` streams; ValueError if the layer cannot stream."""
        if not (self.causal and self.capabilities.streaming):
            raise ValueError(f"{type(self).__name__} built with causal={self.causal} cannot stream")
        return self.empty_cache(batch, device, dtype)

    def step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process the next frame (B, 1, D) of every stream, with a context of T = 1.

        Returns the output, equal to that of the causal `forward`, and the new cache; the given one is not modified.
        """
        if context.valid is None:
            return self.mix_step(x_B1D, context, cache)
        valid_B11 = context.valid[..., None]
        y_B1D, cache = self.mix_step(x_B1D.where(valid_B11, 0), context, cache)
        return y_B1D.where(valid_B11, 0), cache

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        """Compute the output (B, T, D) of tokens that are 0 in invalid frames, whose output is discarded."""
        raise NotImplementedError

    @property
    def has_map(self) -> bool:
        """Whether `weights` returns an attention map."""
        return type(self).weights is not Attention.weights

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        """Compute the attention map (B, H, T, T): the weight of each value (column) in the output of each frame (row).

        Raises:
            ValueError: If the output of the mechanism is not a weighted sum of values.
        """
        raise ValueError(f"{type(self).__name__} has no attention map: its output is not a weighted sum of values")

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Make the state of `batch` streams before their first frame."""
        raise NotImplementedError

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process the next frame (B, 1, D) of each stream; return its output (B, 1, D) and the new state."""
        raise NotImplementedError

    def split(self, x_BTD: Tensor) -> Tensor:
        """Reshape (B, T, D) to (B, H, T, K), one slice of features per head."""
        x_BTHK: Tensor = x_BTD.unflatten(-1, (self.heads, self.head_dim))
        return x_BTHK.transpose(1, 2)

    def merge(self, x_BHTK: Tensor) -> Tensor:
        """Reshape (B, H, T, K) to (B, T, D), the inverse of `split`."""
        return x_BHTK.transpose(1, 2).flatten(2)


def layer_penalty(network: nn.Module) -> Tensor | None:
    """Sum `Attention.penalty` over the distinct layers of a network; None if no layer has a penalty."""
    layers = (module.penalty() for module in network.modules() if isinstance(module, Attention))
    penalties = [penalty for penalty in layers if penalty is not None]
    return torch.stack(penalties).sum() if penalties else None
