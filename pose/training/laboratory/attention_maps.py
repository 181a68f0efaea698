"""Attention maps of a trained lifter's heads, and statistics of them.

Axes: L layer, B batch, H head, T query, S key.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from pose.lifting.blocks import Block
from pose.lifting.features import LifterInput
from pose.lifting.model import LifterNetwork
from pose.training.forms.reversible import ReversibleStack


def attention_maps(network: LifterNetwork, observations: LifterInput, times: Tensor) -> Tensor:
    """Compute maps (L, B, H, T, S) of L layers, H heads, T queries, S keys; ValueError without maps."""
    maps: list[Tensor] = []

    def keep(attention: torch.nn.Module, arguments: tuple[Tensor, object]) -> None:
        # With joint tokens, the heads of all joints are separate heads.
        weights = attention.weights(*arguments)  # type: ignore[operator]
        maps.append(weights.unflatten(0, (len(times), -1)).flatten(1, 2))

    stacks = (block.blocks if isinstance(block, ReversibleStack) else [block] for block in network.blocks)
    # A block that is applied several times has one map for each time.
    layers = dict.fromkeys(cast(Block, block).attention for stack in stacks for block in stack)
    handles = [layer.register_forward_pre_hook(keep) for layer in layers]
    try:
        with torch.inference_mode():
            network(observations, times)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack(maps)


@dataclass(frozen=True, slots=True)
class HeadMetrics:
    """Statistics of the attention maps of H heads in L layers, (L, H) each, averaged over queries and sequences."""

    entropy: Tensor  # entropy of a query's weights, bits
    seen: Tensor  # effective number of attended frames, 2^entropy
    reach: Tensor  # mean temporal distance of the attended frames from the query, weighted by attention, s
    near: Tensor  # fraction of the weights on frames at most `NEAR_S` (0.15) seconds from the query
    rank: Tensor  # number of largest singular values of the map whose sum reaches 90 % of the sum of all


NEAR_S = 0.15
RANK_FRACTION = 0.9


def head_metrics(maps: Tensor, times: Tensor) -> HeadMetrics:
    """Compute statistics of attention maps from the absolute values of the weights."""
    weights = _normalized(maps)
    entropy = -torch.special.xlogy(weights, weights).sum(dim=-1) / math.log(2)
    distances_s = (times[:, :, None] - times[:, None, :]).abs()[:, None].to(weights.dtype)
    near = (weights * (distances_s <= NEAR_S)).sum(dim=-1)
    values = torch.linalg.svdvals(maps.float())
    cumulative = values.cumsum(dim=-1) / values.sum(dim=-1, keepdim=True).clamp_min(1e-12)
    rank = 1 + (cumulative < RANK_FRACTION).sum(dim=-1)
    reach = (weights * distances_s).sum(dim=-1)
    entropy, seen, reach, near = (part.mean(dim=(1, 3)) for part in (entropy, entropy.exp2(), reach, near))
    return HeadMetrics(entropy, seen, reach, near, rank.float().mean(dim=1))


def next_layer_distances(maps: Tensor) -> Tensor:
    """Return the Jensen-Shannon distances (L - 1, H, H), 0 to 1, of heads (L, B, H, T, S) to the next layer's."""
    weights = _normalized(maps)
    return torch.stack([_jensen_shannon(one, other) for one, other in pairwise(weights)])


def layer_similarities(maps: Tensor) -> Tensor:
    """Return similarities (L, L), 0 to 1, of layers' maps (L, B, H, T, S) as in SAN (Xiao et al., 2019)."""
    # It is 1 minus the mean Jensen-Shannon divergence (base 2) between a query's weights in heads of the same index.
    weights = _normalized(maps)
    return torch.stack([1 - _divergence(weights, one[None]).mean(dim=(1, 2, 3)) for one in weights])


def _jensen_shannon(one_BHTS: Tensor, other_BHTS: Tensor) -> Tensor:
    """Return the Jensen-Shannon distance (H, H) of each pair of heads, averaged over queries and sequences."""
    return _divergence(one_BHTS[:, :, None], other_BHTS[:, None]).sqrt().mean(dim=(0, 3))


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    """Compute the Jensen-Shannon divergence along the last axis, base 2, from 0 to 1."""
    middle = (p + q) / 2

    def surprise(x: Tensor) -> Tensor:
        result: Tensor = (torch.special.xlogy(x, x) - torch.special.xlogy(x, middle)).sum(dim=-1)
        return result

    return ((surprise(p) + surprise(q)) / (2 * math.log(2))).clamp(0, 1)


def _normalized(maps: Tensor) -> Tensor:
    """Return the absolute values of weights, divided by their sum for each query; rows of zeros stay zero."""
    sizes = maps.abs()
    return sizes / sizes.sum(dim=-1, keepdim=True).clamp_min(1e-12)
