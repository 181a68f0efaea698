"""The camera's view in every frame of a run, from the frames that were measured."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.graph import place_frames
from pose.camera_motion.turns import to_matrix, to_vector
from pose.types import Background, CameraView

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

BRIDGE = 0.5  # s without a measured view that are bridged
_AHEAD = 0.1  # s for which a camera goes on as it did
_HELD = 10.0  # s that are bridged where the camera looks the same before and after
_SAME, _SAME_ZOOM = np.radians(0.3), 0.01  # rad and share: it looks the same
_UNSURE = np.radians(3.0)  # rad per s, by which a bridged view may err


@dataclass(frozen=True, slots=True, eq=False)
class CameraPath:
    """Where a camera looked, F frames.

    times: (F,) s. turns: (F, 3, 3), from each frame's camera axes to those of the first frame of its scene. zooms:
    (F,), focal length over that frame's. sigmas: (F,) rad, NaN where the view is not known. scenes: (F,) 0, 1, ...
    """

    times: F64
    turns: F64
    zooms: F64
    sigmas: F64
    scenes: NDArray[np.int64]

    def view(self, time: float) -> CameraView:
        """Of the frame at this time."""
        row = int(self.rows(np.array([time]))[0])
        return CameraView(self.turns[row], float(self.zooms[row]), float(np.degrees(self.sigmas[row])))

    def rows(self, times: F64) -> NDArray[np.int64]:
        """The rows of frames at these times."""
        return np.searchsorted(self.times, times).clip(max=len(self.times) - 1)


def find_path(
    times: F64, indices: Sequence[int], cuts: Sequence[int], measured: Sequence[tuple[int, Background]]
) -> CameraPath:
    """The path of a run.

    times: (F,) s of the frames, and indices: their own, by which links name them. cuts: positions of those that begin
    another scene. measured: position and background of each frame that was measured, in order.
    """
    count = len(times)
    turns, zooms, sigmas = np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, np.nan)
    scenes = np.zeros(count, np.int64)
    for number, (first, end) in enumerate(_spans(cuts, count)):
        scenes[first:end] = number
        part = [(at, background) for at, background in measured if first <= at < end]
        if not part:
            continue
        placed = place_frames([indices[at] for at, _ in part], [background for _, background in part])
        if placed.stretches.max() < 0:
            continue
        known = placed.stretches == np.bincount(placed.stretches[placed.stretches >= 0]).argmax()
        at = np.array([at for at, _ in part])[known]
        begin = placed.turns[known][0].T
        _fill(
            times, first, end, at, begin @ placed.turns[known], placed.zooms[known] / placed.zooms[known][0],
            placed.sigmas[known], (turns, zooms, sigmas),
        )  # fmt: skip
    return CameraPath(times, turns, zooms, sigmas, scenes)


def _spans(cuts: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    borders = [0, *(cut for cut in cuts if 0 < cut < count), count]
    return itertools.pairwise(borders)


def _fill(
    times: F64, first: int, end: int, at: NDArray[np.int64], turns: F64, zooms: F64, sigmas: F64,
    out: tuple[F64, F64, F64],
) -> None:  # fmt: skip
    """Put the views of frames `at` into `out`, and those of the frames from `first` to `end` between them."""
    all_turns, all_zooms, all_sigmas = out
    all_turns[at], all_zooms[at], all_sigmas[at] = turns, zooms, sigmas
    speeds = _speeds(times[at], turns)
    for edge, outer in ((0, range(first, at[0])), (-1, range(at[-1] + 1, end))):
        for row in outer:  # before the first and after the last
            away = times[row] - times[at[edge]]
            ahead = np.clip(away, -_AHEAD, _AHEAD) * speeds[edge]
            all_turns[row], all_zooms[row] = turns[edge] @ to_matrix(ahead), zooms[edge]
            if abs(away) <= BRIDGE:
                all_sigmas[row] = sigmas[edge] + _UNSURE * max(0.0, abs(away) - _AHEAD)
    for left in range(len(at) - 1):
        rows = np.arange(at[left] + 1, at[left + 1])
        if not len(rows):
            continue
        begin, gap = times[at[left]], times[at[left + 1]] - times[at[left]]
        share = (times[rows] - begin) / gap
        between = to_vector(turns[left].T @ turns[left + 1])
        all_turns[rows] = turns[left] @ to_matrix(_hermite(share, between, speeds[left] * gap, speeds[left + 1] * gap))
        all_zooms[rows] = zooms[left] ** (1 - share) * zooms[left + 1] ** share
        change = abs(float(np.log(zooms[left + 1] / zooms[left])))
        same = float(np.linalg.norm(between)) < _SAME and change < _SAME_ZOOM
        if gap <= BRIDGE or (same and gap <= _HELD):
            unsure = 0.0 if same else _UNSURE * gap * share * (1 - share) * (gap > 0.15)
            all_sigmas[rows] = np.maximum(sigmas[left], sigmas[left + 1]) + unsure


def _speeds(times: F64, turns: F64) -> F64:
    """(N, 3) rad/s about the axes of each frame: across its two neighbours, where they are near; at the ends those of
    the nearest two frames.
    """
    speeds = np.zeros((len(times), 3))
    if len(times) < 2:
        return speeds
    steps = np.diff(times)
    rates = to_vector(np.swapaxes(turns[:-1], 1, 2) @ turns[1:]) / steps[:, None]
    speeds[1:-1] = (rates[:-1] * steps[1:, None] + rates[1:] * steps[:-1, None]) / (steps[1:] + steps[:-1])[:, None]
    speeds[1:-1][(steps[1:] > BRIDGE) | (steps[:-1] > BRIDGE)] = 0
    for end, step, rate in ((0, steps[0], rates[0]), (-1, steps[-1], rates[-1])):
        speeds[end] = rate if step <= BRIDGE else 0.0
    return speeds


def _hermite(share: F64, between: F64, leaves: F64, arrives: F64) -> F64:
    """(N, 3) rotation vectors from 0 to `between`, with these speeds at the ends."""
    s = share[:, None]
    return np.asarray((s**3 - 2 * s**2 + s) * leaves + (3 * s**2 - 2 * s**3) * between + (s**3 - s**2) * arrives)
