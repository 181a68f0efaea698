"""Consecutive layers that share an attention map (SAN, Xiao et al., 2019).

The first layer of a group, the leader, computes the weights. The following layers apply these weights to their own
values and have no queries or keys.

Axes: B batch, H head, T time, S cache slot, D width, K feature of one head.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Context, KVCache, ring_slot
from pose.lifting.attention.softmax import SoftmaxAttention


def share_maps(layers: Sequence[Attention], group: int) -> list[Attention]:
    """Make groups of `group` consecutive layers use the attention map of their first layer; return the new layers.

    A `group` of 1 means no sharing.

    Raises:
        ValueError: If the mechanism has no attention map, or is causal and does not stream with a `KVCache`.
    """
    if group < 1:
        raise ValueError(f"shared_maps: a group needs at least 1 block, got {group}")
    return share_in_groups(layers, [len(layers[first : first + group]) for first in range(0, len(layers), group)])


def share_in_groups(layers: Sequence[Attention], groups: Sequence[int]) -> list[Attention]:
    """Make groups of consecutive layers, of the given sizes, use the map of their first layer; return new layers.

    ValueError if the mechanism has no attention map, or is causal and does not stream with a `KVCache`.
    """
    assert sum(groups) == len(layers)
    left, shared = iter(layers), list[Attention]()
    for size in groups:
        first, *others = (next(left) for _ in range(size))
        leader = MapLeader(first) if others else first
        shared += [leader, *(MapFollower(leader) for _ in others if isinstance(leader, MapLeader))]
    return shared


class MapLeader(Attention):
    """Layer that stores its attention map for the following layers of the same pass."""

    def __init__(self, inner: Attention) -> None:
        self.capabilities = inner.capabilities
        super().__init__(inner.dim, inner.heads, causal=inner.causal)
        name = type(inner).__name__
        if not inner.has_map:
            raise ValueError(f"shared_maps: {name} has no attention map to share")
        if inner.causal and inner.cache_fields != KVCache._fields:
            raise ValueError(
                f"shared_maps: {name} cannot share maps when streaming; use softmax, local, sparse or blocks"
            )
        self.inner, self.cache_fields = inner, inner.cache_fields

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.inner.begin_step(step, generator)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        return self._summed(context.store(self, self.inner.weights(x_BTD, context)), self._values(x_BTD))

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        return self.inner.weights(x_BTD, context)

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return self.inner.empty_cache(batch, device, dtype)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert isinstance(self.inner, SoftmaxAttention)
        kept, weights = self.inner.weights_step(x_B1D, context, KVCache(*cache))
        return self._summed(context.store(self, weights), kept.values), kept

    def _values(self, x_BTD: Tensor) -> Tensor:
        return self.split(self.inner.get_submodule("v_proj")(x_BTD))

    def _summed(self, weights: Tensor, values: Tensor) -> Tensor:
        y_BTD: Tensor = self.inner.get_submodule("out_proj")(self.merge(weights.to(values.dtype) @ values))
        return y_BTD


class ValueRing(NamedTuple):
    """Cached values of a `MapFollower`, in the slots of its leader, whose map it uses."""

    values: Tensor  # (B, H, S, K), in the slots in which the layer whose map is used (the leader) caches its own values
    frames: Tensor  # (B,) number of frames processed so far


class MapFollower(Attention):
    """Layer with its own values that reuses the attention map of an earlier layer (the leader)."""

    cache_fields = ValueRing._fields

    def __init__(self, leader: MapLeader) -> None:
        self.capabilities = leader.capabilities
        super().__init__(leader.dim, leader.heads, causal=leader.causal)
        self._leader = [leader]  # in a list, so that it is not a submodule of this layer
        self.v_proj, self.out_proj = nn.Linear(self.dim, self.dim), nn.Linear(self.dim, self.dim)

    @property
    def leader(self) -> MapLeader:
        """The layer whose attention map is used."""
        return self._leader[0]

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        return self._summed(self.weights(x_BTD, context), self.split(self.v_proj(x_BTD)))

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        return context.stored(self.leader)

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        like = KVCache(*self.leader.empty_cache(batch, device, dtype))
        return ValueRing(like.values, like.frames)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert isinstance(self.leader.inner, SoftmaxAttention)
        assert self.leader.inner.window is not None
        values, frames = cache
        v_BH1K = self.split(self.v_proj(x_B1D)).to(values.dtype)
        slot_B = ring_slot(frames, values.shape[2], self.leader.inner.window.pinned)
        values = values.scatter(2, slot_B[:, None, None, None].expand_as(v_BH1K), v_BH1K)
        return self._summed(context.stored(self.leader), values), ValueRing(values, frames + 1)

    def _summed(self, weights: Tensor, values: Tensor) -> Tensor:
        y_BTD: Tensor = self.out_proj(self.merge(weights.to(values.dtype) @ values))
        return y_BTD
