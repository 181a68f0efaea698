"""What every attention mechanism shares: a batch's context, declared capabilities, rotary time, the module's frame.

Axes: B batch, T time, D feature, H head, K feature of one head, S cache slot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

Cache: TypeAlias = tuple[Tensor, ...]  # what a stream keeps: each (B, ...), in the order of `Attention.cache_fields`
Option: TypeAlias = int | float | str | None  # of a mechanism, in a recipe

SLOWEST_HZ = 0.1
FASTEST_HZ = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a mechanism can do. `build_attention` refuses whatever asks for more.

    padding: frames that are not valid count as absent; if False they take part as zeros, so the answer depends on how
    many there are. bidirectional: has a form in which every frame sees all others. causal: has a form in which frame t
    does not see frames after t. streaming: that form can also be stepped frame by frame with a cache of constant size.
    relative_time: reads the rotary phases, so it knows the seconds between frames; if False the model has to tell it
    the time in another way, unless own_time: then what it knows of time, if anything, was asked for. max_length: the
    longest sequence in frames, None for any. random: draws in training, so there it answers otherwise than out of it.
    cost: of one layer.
    """

    padding: bool
    bidirectional: bool = True
    causal: bool
    streaming: bool
    relative_time: bool
    own_time: bool = False
    max_length: int | None = None
    random: bool = False
    cost: str

    @property
    def knows_time(self) -> bool:
        """Whether the model need not tell it the time."""
        return self.relative_time or self.own_time


def rotary_phases(times_BT: Tensor, head_dim: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every frame's rotary angles (Su et al., 2021), with time in seconds for the position.

    times_BT: seconds, any origin; use float64, in which the angles are right to 1e-7 rad for a month. The head_dim/2
    frequencies are spaced evenly in logarithm from 0.1 Hz, whose period covers the longest window, to 10 Hz, beyond
    which 30 frames a second say nothing. Returns two (B, T, head_dim/2) tensors of `dtype`.
    """
    omega_K = torch.logspace(
        math.log10(2 * math.pi * SLOWEST_HZ),
        math.log10(2 * math.pi * FASTEST_HZ),
        head_dim // 2,
        dtype=torch.float64,
        device=times_BT.device,
    )
    angles_BTK = times_BT.to(torch.float64)[..., None] * omega_K
    return angles_BTK.cos().to(dtype), angles_BTK.sin().to(dtype)


@dataclass(frozen=True, slots=True)
class Context:
    """What all layers share for one batch; built once a forward pass.

    cos, sin: (B, T, K/2) from `rotary_phases`. valid: (B, T) bool, False for a frame that is missing or padding; None
    says that all are there. times: (B, T) float64 s, for mechanisms that need more than phases; None where there are
    none such. replay: a pass that repeats an earlier one, and has to choose what that chose (see `keep`). For a
    streaming step T is 1.
    """

    cos: Tensor
    sin: Tensor
    valid: Tensor | None = None
    times: Tensor | None = None
    replay: bool = False
    _masks: dict[object, Tensor | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_times(
        cls, times_BT: Tensor, head_dim: int, valid_BT: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> "Context":
        """times_BT: (B, T) seconds, float64. valid_BT: (B, T) bool or None. dtype: of the rotary phases."""
        return cls(*rotary_phases(times_BT, head_dim, dtype), valid_BT, times_BT)

    @property
    def seconds(self) -> Tensor:
        """`times`. Raises ValueError where the context was made without them."""
        if self.times is None:
            raise ValueError("this attention needs frame times: create its context with Context.from_times")
        return self.times

    def shared_mask(self, key: object, make: Callable[[], Tensor | None]) -> Tensor | None:
        """The mask that `make()` returns, made once for all layers that ask with an equal `key`."""
        if key not in self._masks:
            self._masks[key] = make()
        return self._masks[key]

    def keep(self, layer: object, value: Tensor) -> Tensor:
        """`value`, which later layers of this pass find under `kept(layer)`."""
        self._masks[layer] = value
        return value

    def kept(self, layer: object) -> Tensor:
        """What `layer` kept in this pass."""
        value = self.find(layer)
        assert value is not None
        return value

    def find(self, layer: object) -> Tensor | None:
        """The same, None where it kept nothing."""
        return self._masks.get(layer)


def rotate(x_BHTK: Tensor, context: Context) -> Tensor:
    """Turn each pair (i, i + K/2) of features by its frame's angle; the products of two such vectors then know only
    the time between them."""
    cos, sin = context.cos[:, None], context.sin[:, None]
    a, b = x_BHTK.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x_BHTK.dtype)


class KVCache(NamedTuple):
    """The keys and values that a stream still sees: `pinned` slots for its first frames, then a ring for the rest.

    keys, values: (B, H, S, K), keys as they are compared (already rotated), which may be wider than values. position:
    (B, S) number of the frame in each slot, counted from the start of its stream, -1 where there is none. frames: (B,)
    seen so far. To restart one row of the batch, set its position to -1 and its frames to 0.
    """

    keys: Tensor
    values: Tensor
    position: Tensor
    frames: Tensor

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
        """head_dim: of keys, and of values unless they have a `value_dim` of their own."""
        return cls(
            torch.zeros(batch, heads, slots, head_dim, device=device, dtype=dtype),
            torch.zeros(batch, heads, slots, value_dim or head_dim, device=device, dtype=dtype),
            torch.full((batch, slots), -1, device=device),
            torch.zeros(batch, dtype=torch.int64, device=device),
        )

    def push(self, k_BH1K: Tensor, v_BH1K: Tensor, valid_B1: Tensor | None, pinned: int = 0) -> "KVCache":
        """The cache with one more frame in it, in the slot of the oldest that is not pinned."""
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
    """(B,) which slot a frame number takes: the first `pinned` keep theirs, the others take turns."""
    slot_B = pinned + (frame_B - pinned) % (slots - pinned)
    return torch.where(frame_B < pinned, frame_B, slot_B) if pinned else slot_B


class TimedCache(NamedTuple):
    """A `KVCache`, and when each frame in it was: (B, S) float64 s."""

    keys: Tensor
    values: Tensor
    position: Tensor
    frames: Tensor
    times: Tensor

    @classmethod
    def of(cls, empty: KVCache) -> "TimedCache":
        """As empty as that."""
        position = empty.position
        return cls(*empty, torch.zeros(position.shape, device=position.device, dtype=torch.float64))

    def push(self, k_BH1K: Tensor, v_BH1K: Tensor, seconds_B1: Tensor, valid_B1: Tensor | None) -> "TimedCache":
        """As `KVCache.push`."""
        slot_B = ring_slot(self.frames, self.times.shape[1], 0)
        times = self.times.scatter(1, slot_B[:, None], seconds_B1)
        return TimedCache(*KVCache(*self[:4]).push(k_BH1K, v_BH1K, valid_B1), times)


class Attention(nn.Module):
    """Mixes the frames of a sequence. Subclasses write `mix`, and those that stream `empty_cache` and `mix_step`.

    dim: features of a token. heads: divides dim. causal: frame t sees no frame after t. cache_fields: the names of what
    a stream keeps, in the order of its cache.
    """

    capabilities: Capabilities
    cache_fields: tuple[str, ...] = ()

    def __init__(self, dim: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        if heads < 1 or dim < heads or dim % heads:
            raise ValueError(f"dim must be a multiple of heads, got dim {dim} and {heads} heads")
        if self.capabilities.relative_time and dim // heads % 2:
            raise ValueError(f"rotary time needs an even number of features a head, got {dim} / {heads}")
        if causal and not self.capabilities.causal:
            raise ValueError(f"{type(self).__name__} has no causal form: each output frame depends on all frames")
        if not causal and not self.capabilities.bidirectional:
            raise ValueError(f"{type(self).__name__} has only a causal form: build it with causal=True")
        self.dim, self.heads, self.head_dim, self.causal = dim, heads, dim // heads, causal

    @classmethod
    def build_layers(cls, depth: int, dim: int, heads: int, **options: Option) -> "list[Attention]":
        """The attention of a stack of blocks; a mechanism whose layers share something overrides this."""
        build: Callable[..., Attention] = cls  # whose keywords are each mechanism's own; `build_attentions` checks them
        return [build(dim, heads, **options) for _ in range(depth)]

    def forward(self, x_BTD: Tensor, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D). What frames that are not valid hold, NaN included, has no effect; they return 0."""
        limit = self.capabilities.max_length
        if limit is not None and x_BTD.shape[1] > limit:
            raise ValueError(f"{type(self).__name__} was built for at most {limit} frames, got {x_BTD.shape[1]}")
        if context.valid is None:
            return self.mix(x_BTD, context)
        valid_BT1 = context.valid[..., None]
        return self.mix(x_BTD.where(valid_BT1, 0), context).where(valid_BT1, 0)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        """Called before each training step. A mechanism with random parts samples them here, from `generator`, which
        depends on the run's seed, the step and the layer only: so a resumed run is the same run."""

    def penalty(self) -> Tensor | None:
        """What training adds to its loss for this layer, in the loss's own unit; None for nothing."""
        return None

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """The cache of `batch` streams that have seen nothing."""
        if not (self.causal and self.capabilities.streaming):
            raise ValueError(f"{type(self).__name__} built with causal={self.causal} cannot stream")
        return self.empty_cache(batch, device, dtype)

    def step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """The next frame of every stream, (B, 1, D), with a context of T = 1: what the causal `forward` returns for it,
        and the cache that follows; `cache` itself is not changed."""
        if context.valid is None:
            return self.mix_step(x_B1D, context, cache)
        valid_B11 = context.valid[..., None]
        y_B1D, cache = self.mix_step(x_B1D.where(valid_B11, 0), context, cache)
        return y_B1D.where(valid_B11, 0), cache

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        """The mechanism itself; x is 0 in frames that are not valid, and what it returns there is dropped."""
        raise NotImplementedError

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        """(B, H, T, T): what each frame (row) takes of each other, where `mix` is the output projection of such a sum
        of values. Raises ValueError for a mechanism that answers otherwise."""
        raise ValueError(f"{type(self).__name__} has no attention map: its output is not a weighted sum of values")

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Make the state of `batch` streams before their first frame."""
        raise NotImplementedError

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process the next frame (B, 1, D) of each stream; return its output (B, 1, D) and the new state."""
        raise NotImplementedError

    def split(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, K)."""
        x_BTHK: Tensor = x_BTD.unflatten(-1, (self.heads, self.head_dim))
        return x_BTHK.transpose(1, 2)

    def merge(self, x_BHTK: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D)."""
        return x_BHTK.transpose(1, 2).flatten(2)


def layer_penalty(network: nn.Module) -> Tensor | None:
    """The sum of `Attention.penalty` over a network's layers, each once; None where none has any."""
    layers = (module.penalty() for module in network.modules() if isinstance(module, Attention))
    penalties = [penalty for penalty in layers if penalty is not None]
    return torch.stack(penalties).sum() if penalties else None
