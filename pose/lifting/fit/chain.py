"""Symmetric positive definite systems of a chain of frames with a dense border, solved in linear time.

The unknowns of a frame are coupled to each other by any matrix, and to those of the next one or two frames by a
multiple of the identity (a smoothness term). All frames share a few unknowns, the border. If frames are coupled to the
next two, two frames form a block, so that the chain is block tridiagonal.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64


@dataclass(frozen=True, slots=True)
class Chain:
    """Factorised block-tridiagonal matrix of B blocks. A block has f frames (1 or 2) of D unknowns each."""

    inverse: F64  # (B, f D, f D) inverses of the pivots, that is, of the diagonal blocks during elimination
    link: F64  # (B - 1, f, f) factors L of the coupling kron(L, identity) of each block with the next

    @classmethod
    def factorise(cls, frames: F64, next_one: F64, next_two: F64 | None = None) -> "Chain":
        """Factorise a positive definite matrix of blocks (K, D, D), coupled by factors to the next one and two."""
        blocks, link = (frames, next_one[:, None, None]) if next_two is None else _pairs(frames, next_one, next_two)
        inverse = np.empty_like(blocks)
        pivot = blocks[0]
        for block in range(len(blocks)):
            inverse[block] = np.linalg.inv(pivot)
            if block + 1 < len(blocks):
                pivot = blocks[block + 1] - _between(link[block], _grid(inverse[block], link))
        return cls(inverse, link)

    def solve(self, right: F64) -> F64:
        """Solve the factorised system for M right-hand sides (K, D, M); return M solutions (K, D, M)."""
        rows = right.reshape(len(self.inverse), -1, right.shape[-1]).copy()
        half = np.empty_like(rows)
        for block in range(len(rows)):
            if block:
                rows[block] -= _across(self.link[block - 1].T, half[block - 1])
            half[block] = self.inverse[block] @ rows[block]
        for block in range(len(rows) - 2, -1, -1):
            half[block] -= self.inverse[block] @ _across(self.link[block], half[block + 1])
        return half.reshape(right.shape)


def _pairs(frames: F64, next_one: F64, next_two: F64) -> tuple[F64, F64]:
    """Return blocks (K / 2, 2 D, 2 D) of two frames each, and their couplings (K / 2 - 1, 2, 2)."""
    blocks, size = len(frames) // 2, frames.shape[1]
    pivots = np.zeros((blocks, 2, size, 2, size))
    pivots[:, 0, :, 0], pivots[:, 1, :, 1] = frames[::2], frames[1::2]
    eye = np.arange(size)
    pivots[:, 0, eye, 1, eye] = next_one[::2, None]
    pivots[:, 1, eye, 0, eye] = next_one[::2, None]
    link = np.zeros((max(blocks - 1, 0), 2, 2))
    link[:, 0, 0], link[:, 1, 1], link[:, 1, 0] = next_two[::2], next_two[1::2], next_one[1::2]
    return pivots.reshape(blocks, 2 * size, 2 * size), link


def _grid(block: F64, link: F64) -> F64:
    """Reshape a block (f D, f D) to (f, D, f, D)."""
    count = link.shape[1]
    size = len(block) // count
    return block.reshape(count, size, count, size)


def _across(link: F64, rows: F64) -> F64:
    """Return kron(link, identity) @ rows, (f D, M)."""
    moved: F64 = (link @ rows.reshape(len(link), -1)).reshape(rows.shape)
    return moved


def _between(link: F64, grid: F64) -> F64:
    """Return kron(link, identity)^T @ grid @ kron(link, identity) for a matrix `grid` (f, D, f, D), as (f D, f D)."""
    size = grid.shape[0] * grid.shape[1]
    product: F64 = np.einsum("ai,axby,bj->ixjy", link, grid, link).reshape(size, size)
    return product
