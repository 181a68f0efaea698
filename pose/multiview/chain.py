"""Symmetric positive definite systems of a chain of frames with a dense border, solved in time linear in the frames.

The unknowns of a frame are coupled to each other by any matrix, to those of the next two frames by a multiple of the
identity (which is what smoothness does), and to a few that all frames share, the border. Two frames make a block, so
that the chain is block tridiagonal.
"""

from dataclasses import dataclass

import numpy as np

from pose.types import F64


@dataclass(frozen=True, slots=True)
class Chain:
    """A factorised chain of B blocks of 2 D unknowns. inverse: (B, 2D, 2D) of the pivots. link: (B - 1, 2, 2)."""

    inverse: F64
    link: F64

    @classmethod
    def factorise(cls, frames: F64, next_one: F64, next_two: F64) -> "Chain":
        """frames: (K, D, D), K even. next_one: (K - 1,) and next_two: (K - 2,) multiples of the identity."""
        count, size = len(frames), frames.shape[1]
        blocks = count // 2
        pivots = np.zeros((blocks, 2, size, 2, size))
        pivots[:, 0, :, 0], pivots[:, 1, :, 1] = frames[::2], frames[1::2]
        eye = np.arange(size)
        pivots[:, 0, eye, 1, eye] = next_one[::2, None]
        pivots[:, 1, eye, 0, eye] = next_one[::2, None]
        link = np.zeros((max(blocks - 1, 0), 2, 2))
        link[:, 0, 0], link[:, 1, 1], link[:, 1, 0] = next_two[::2], next_two[1::2], next_one[1::2]
        inverse = np.empty((blocks, 2 * size, 2 * size))
        pivot = pivots[0].reshape(2 * size, 2 * size)
        for block in range(blocks):
            inverse[block] = np.linalg.inv(pivot)
            if block + 1 < blocks:
                grid = inverse[block].reshape(2, size, 2, size)
                pivot = pivots[block + 1].reshape(2 * size, 2 * size) - _between(link[block], grid)
        return cls(inverse, link)

    def solve(self, right: F64) -> F64:
        """(K, D, M) right sides -> the solutions, of the same shape."""
        count, size, sides = right.shape
        rows = right.reshape(count // 2, 2 * size, sides).copy()
        half = np.empty_like(rows)
        for block in range(len(rows)):
            if block:
                rows[block] -= _across(self.link[block - 1].T, half[block - 1])
            half[block] = self.inverse[block] @ rows[block]
        for block in range(len(rows) - 2, -1, -1):
            half[block] -= self.inverse[block] @ _across(self.link[block], half[block + 1])
        return half.reshape(count, size, sides)

    def variances(self) -> F64:
        """(K, D, D) the diagonal blocks of the inverse."""
        blocks, double = len(self.inverse), self.inverse.shape[1]
        size = double // 2
        whole = self.inverse[-1]
        out = np.empty((2 * blocks, size, size))
        for block in range(blocks - 1, -1, -1):
            if block + 1 < blocks:
                grid = whole.reshape(2, size, 2, size)
                own = self.inverse[block]
                whole = own + own @ _between(self.link[block].T, grid) @ own
            grid = whole.reshape(2, size, 2, size)
            out[2 * block], out[2 * block + 1] = grid[0, :, 0], grid[1, :, 1]
        return out


def _across(link: F64, rows: F64) -> F64:
    """(link x identity) @ rows, (2D, M)."""
    double, sides = rows.shape
    moved: F64 = (link @ rows.reshape(2, -1)).reshape(double, sides)
    return moved


def _between(link: F64, grid: F64) -> F64:
    """(link x identity)^T @ grid @ (link x identity), of a (2, D, 2, D) grid."""
    double = 2 * grid.shape[1]
    product: F64 = np.einsum("ai,axby,bj->ixjy", link, grid, link).reshape(double, double)
    return product
