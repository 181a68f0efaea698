"""Motions of people fused from all cameras, stored in temporary files that are mapped into memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pose.multiview.fuse import Fused
from pose.multiview.stored import BATCH_ROWS, stored_rows
from pose.structures.types import F32, U8
from pose.utils.row_file import Rows

RowType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class FusedMotion:
    """Motion of one person, fused from all cameras."""

    frames: np.ndarray  # (K,) indices on the time line, increasing
    joints: F32  # (K, 17, 3) m in the frame of the first camera
    sigma: F32  # (K, 17) mm, the radius that contains the true joint with probability 0.68
    seen_by: U8  # (K, 17), bit c is set if camera c detected the joint close to its fused position
    residual: F32  # (C, K) px, median reprojection error over joints, NaN where a camera does not see the person

    @classmethod
    def of(cls, rows: Rows) -> "FusedMotion":
        """Return the motion from a structured array of the type `row_type`, without copying."""
        return cls(rows["frames"], rows["joints"], rows["sigma"], rows["seen_by"], rows["residual"].T)


def row_type(cameras: int) -> RowType:
    """Return the structured NumPy type of one frame of a motion (about 0.3 kB), for a number of cameras."""
    return np.dtype(
        [
            ("frames", np.int64),
            ("joints", np.float32, (17, 3)),
            ("sigma", np.float32, (17,)),
            ("residual", np.float32, (cameras,)),
            ("seen_by", np.uint8, (17,)),
        ],
        align=True,
    )


def rows_of(fused: Fused, fps: float, kind: RowType) -> Rows:
    """Convert one person's fused joints to a structured array with one entry per frame."""
    rows = np.zeros(len(fused.instants), kind)
    rows["frames"] = np.rint(fused.instants * fps)
    rows["joints"], rows["sigma"], rows["residual"] = fused.joints, fused.sigma, fused.residual.T
    seen = fused.observed.astype(np.int64)
    rows["seen_by"] = (seen << np.arange(len(seen))[:, None, None]).sum(axis=0)
    return rows


def stored_motions(portions: Iterable[Rows], counts: Sequence[int], kind: RowType) -> list[FusedMotion]:
    """Store the motions of people, given by rows, in one temporary memory-mapped file; small ones in memory."""
    if not counts:
        return []
    rows = stored_rows(portions, kind, sum(counts))
    return [FusedMotion.of(part) for part in np.split(rows, np.cumsum(counts)[:-1])]


def scaled_motions(motions: Sequence[FusedMotion], factor: float) -> list[FusedMotion]:
    """Return motions with joints and sigma multiplied by a factor, stored as by `stored_motions`."""
    if not motions:
        return []
    kind = row_type(len(motions[0].residual))
    portions = (rows for motion in motions for rows in _scaled_rows(motion, factor, kind))
    return stored_motions(portions, [len(motion.frames) for motion in motions], kind)


def _scaled_rows(motion: FusedMotion, factor: float, kind: RowType) -> Iterator[Rows]:
    for first in range(0, len(motion.frames), BATCH_ROWS):
        part = slice(first, first + BATCH_ROWS)
        rows = np.zeros(len(motion.frames[part]), kind)
        rows["frames"], rows["residual"] = motion.frames[part], motion.residual[:, part].T
        rows["joints"], rows["sigma"] = motion.joints[part] * factor, motion.sigma[part] * factor
        rows["seen_by"] = motion.seen_by[part]
        yield rows
