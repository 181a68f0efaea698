"""Attention in blocks of time x joints: Image Transformer (Parmar et al., 2018) with joints as columns.

Axes: B batch, J joint, A neighbouring joint, H head, T time, K feature of one head, D width, S cache slot.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.attention.base import Attention, Cache, Context, KVCache
from pose.training.attention.blocks import BlockAttention


class NeighbourhoodAttention(Attention):
    """`BlockAttention` over frames of J tokens each: one softmax over visible frames and neighbouring joints.

    The input is (B J, T, D), with J consecutive entries for the joints of each of B sequences. The contexts have the
    same B J entries.

    Args:
        inner: Mechanism that has the parameters and determines the visible frames.
        visible_joints: Indices of the joints that each joint sees, including itself.
    """

    neighbours: Tensor  # (J, A) visible joints of each joint, padded with itself
    is_neighbour: Tensor  # (J, A) False for padding

    def __init__(self, inner: BlockAttention, visible_joints: Sequence[Sequence[int]]) -> None:
        self.capabilities = inner.capabilities
        super().__init__(inner.dim, inner.heads, causal=inner.causal)
        if not all(joint in seen for joint, seen in enumerate(visible_joints)):
            raise ValueError("visible_joints: expected one list per joint, each with the joint itself")
        self.inner, self.cache_fields = inner, inner.cache_fields
        max_neighbours = max(len(seen) for seen in visible_joints)
        neighbours = torch.tensor(
            [[*seen, *[joint] * (max_neighbours - len(seen))] for joint, seen in enumerate(visible_joints)]
        )
        is_neighbour = torch.tensor([[slot < len(seen) for slot in range(max_neighbours)] for seen in visible_joints])
        self.register_buffer("neighbours", neighbours, persistent=False)
        self.register_buffer("is_neighbour", is_neighbour, persistent=False)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k, v = self.inner.project(x_BTD, context)
        window, length = self.inner.window, q.shape[2]
        # Exported graphs have a dynamic length, so they cannot branch on it.
        if torch.compiler.is_compiling() or self.inner.is_short(length):
            seen = window.mask(length, context.valid, q.device)
            return self._attend_all(q, k, v, seen if seen.ndim == 4 else seen[None, None])
        seen = window.seen(window.band, length, context.valid, q.device)
        y = window.band.attended(
            self._by_joint(q), self._gather_neighbours(k), self._gather_neighbours(v), self._mask(seen)
        )
        return self._output(y)

    @property
    def has_map(self) -> bool:
        return False

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        raise ValueError("attention in blocks of time x joints has no map of frames")

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return self.inner.empty_cache(batch, device, dtype)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        kept, q, seen = self.inner.push(x_B1D, context, KVCache(*cache))
        return self._attend_all(q, *kept[:2], seen), kept

    def _attend_all(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """Attend to all frames of k and v, (B J, H, S, K), in one softmax; `seen` is (B J or 1, 1, T, S)."""
        keys, values = (self._gather_neighbours(x).unflatten(-1, (-1, self.head_dim)).flatten(2, 3) for x in (k, v))
        y = F.scaled_dot_product_attention(self._by_joint(q), keys, values, attn_mask=self._mask(seen))
        return self._output(y)

    def _by_joint(self, x_BHTK: Tensor) -> Tensor:
        """Reshape (B J, H, T, K) to (J, B H, T, K), so that all sequences and heads of a joint share a mask."""
        x_BJHTK: Tensor = x_BHTK.unflatten(0, (-1, len(self.neighbours)))
        return x_BJHTK.transpose(0, 1).flatten(1, 2)

    def _gather_neighbours(self, x_BHTK: Tensor) -> Tensor:
        """Gather the neighbours of each joint side by side: (B J, H, T, K) to (J, B H, T, A K)."""
        x_JAXTK: Tensor = self._by_joint(x_BHTK)[self.neighbours]
        return x_JAXTK.permute(0, 2, 3, 1, 4).flatten(3)

    def _mask(self, seen: Tensor) -> Tensor:
        """Extend a mask of frames (B J or 1, 1, T, S) to the neighbours of each joint: (J, B H or 1, T, S A)."""
        if seen.shape[0] > 1:
            seen = self._by_joint(seen.expand(-1, self.heads, -1, -1))
        return (seen[..., None] & self.is_neighbour[:, None, None, None]).flatten(3)

    def _output(self, y: Tensor) -> Tensor:
        """Reshape (J, B H, T, K) to (B J, T, D)."""
        y_BHTK = y.unflatten(1, (-1, self.heads)).transpose(0, 1).flatten(0, 1)
        y_BTD: Tensor = self.inner.out_proj(self.merge(y_BHTK))
        return y_BTD
