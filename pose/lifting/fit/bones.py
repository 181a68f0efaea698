"""Constant bone lengths as least-squares residuals: (length in a frame - length of the person) / sigma.

Axes: K frames, N points, B bones, G lengths, M unknowns that all frames share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64


@dataclass(frozen=True, slots=True)
class Bones:
    """B bones between N points, and the standard deviations of their lengths. K is the number of frames."""

    starts: NDArray[np.int64]  # (B,) index of the first point of each bone
    ends: NDArray[np.int64]  # (B,) index of the second point
    sigma: F64  # (B,) m, standard deviation of the length from frame to frame
    # (B,) index of each bone's length among the G lengths; the left and the right side may share one.
    group: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number G of different bone lengths."""
        return int(self.group.max()) + 1

    def measure(self, points: F64) -> tuple[F64, F64]:
        """Return lengths (..., B) m and directions (..., B, 3) of the bones between points (..., N, 3) m."""
        along = points.take(self.ends, axis=-2) - points.take(self.starts, axis=-2)
        length = np.sqrt((along * along).sum(axis=-1))
        return length, along / np.maximum(length, 1e-6)[..., None]

    def add(self, frames: F64, right: F64, points: F64, lengths: F64) -> None:
        """Add the bone lengths (G,) m to the points' normal equations (K, N, 3, N, 3) and (K, N, 3), in place."""
        length, along = self.measure(points)
        precision = self.sigma**-2.0
        blocks = precision[:, None, None] * along[..., :, None] * along[..., None, :]
        pull = (precision * (length - lengths[self.group]))[..., None] * along
        self.add_blocks(frames, right, blocks, pull)

    def add_blocks(self, frames: F64, right: F64, blocks: F64, pull: F64) -> None:
        """Add matrices (K, B, 3, 3) and right sides (K, B, 3) of bones' vectors to the points' equations, in place."""
        for bone, (a, b) in enumerate(zip(self.starts, self.ends, strict=True)):
            block = blocks[:, bone]
            frames[:, a, :, a] += block
            frames[:, b, :, b] += block
            frames[:, a, :, b] -= block
            frames[:, b, :, a] -= block
            right[:, a] += pull[:, bone]
            right[:, b] -= pull[:, bone]

    def add_lengths(self, cross: F64, border: F64, border_right: F64, points: F64, lengths: F64) -> None:
        """Add the unknown lengths, the last G of M shared unknowns, to the normal equations, in place."""
        length, along = self.measure(points)
        precision = self.sigma**-2.0
        columns = border.shape[0] - self.count + self.group
        for bone, (a, b) in enumerate(zip(self.starts, self.ends, strict=True)):
            cross[:, a, :, columns[bone]] += precision[bone] * along[:, bone]
            cross[:, b, :, columns[bone]] -= precision[bone] * along[:, bone]
        np.add.at(border, (columns, columns), precision * len(length))
        np.add.at(border_right, columns, (precision * (length - lengths[self.group])).sum(axis=0))
