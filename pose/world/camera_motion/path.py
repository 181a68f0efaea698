"""The camera's rotation and zoom in every frame of a run, interpolated between measured frames."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.types import F64, Background, CameraView
from pose.world.camera_motion.graph import solve_views

MAX_BRIDGED_S = 0.5  # s; longest gap that is interpolated
_EXTRAPOLATED_S = 0.1  # s of extrapolation
_MAX_HELD_S = 10.0  # s; longest gap that is interpolated if the views before and after are equal
_MAX_EQUAL_RAD, _MAX_EQUAL_ZOOM = np.radians(0.3), 0.01  # tolerances of equal views: rad, and relative zoom
_BRIDGED_SIGMA_RAD = np.radians(3.0)  # rad/s, uncertainty of an interpolated view


@dataclass(frozen=True, slots=True, eq=False)
class CameraPath:
    """Orientation, zoom and position of a camera in F frames; positions have an arbitrary unit until people give it."""

    times: F64  # (F,) s
    rotations: F64  # (F, 3, 3), from each frame's camera axes to those of the first frame of its scene
    zooms: F64  # (F,) ratio of the focal length to that of the intrinsics
    sigmas: F64  # (F,) rad, standard deviation of the rotation; NaN if the view is unknown
    scenes: NDArray[np.int64]  # (F,) number of the scene, counted from 0
    positions: F64 | None = None  # (F, 3) m, camera centre in the axes of the first frame; None without translation
    position_sigmas: F64 | None = None  # (F,) standard deviation of the positions; None if unknown
    metric: bool = False  # whether positions are in m as measured, so that people do not scale them

    def view(self, time: float) -> CameraView:
        """Return the view of the frame at `time` (s)."""
        row = int(self.rows(np.array([time]))[0])
        position = None if self.positions is None else self.positions[row]
        sigma = np.nan if self.position_sigmas is None else float(self.position_sigmas[row])
        turned = float(np.degrees(self.sigmas[row]))
        return CameraView(self.rotations[row], float(self.zooms[row]), turned, position, sigma)

    def unknown_in(self, spans: Iterable[tuple[float, float]]) -> "CameraPath":
        """Return a copy in which views in time spans [begin, end) s are unknown: identity, zoom 1, position 0."""
        path = self
        for begin, end in spans:
            rows = (path.times >= begin) & (path.times < end)
            positions = None if path.positions is None else np.where(rows[:, None], 0.0, path.positions)
            path = CameraPath(
                path.times, np.where(rows[:, None, None], np.eye(3), path.rotations), np.where(rows, 1.0, path.zooms),
                np.where(rows, np.nan, path.sigmas), path.scenes, positions, path.position_sigmas, path.metric,
            )  # fmt: skip
        return path

    def rows(self, times: F64) -> NDArray[np.int64]:
        """Return the indices (N,) in the arrays of the path for frames at `times` (N,) s."""
        return np.searchsorted(self.times, times).clip(max=len(self.times) - 1)


def scene_numbers(begins: F64 | Sequence[float], times: F64) -> NDArray[np.int64]:
    """Return the scene number (N,), from 0, of each of the times (N,) s; scenes start at `begins` (s)."""
    return np.maximum(np.searchsorted(begins, times, side="right") - 1, 0)


def static_path(frames: F64, begins: F64) -> CameraPath:
    """Return a path without motion, for a static camera in each scene."""
    rotations = np.tile(np.eye(3), (len(frames), 1, 1))
    return CameraPath(frames, rotations, np.ones(len(frames)), np.zeros(len(frames)), scene_numbers(begins, frames))


def find_path(
    times: F64, indices: Sequence[int], cuts: Sequence[int], measured: Sequence[tuple[int, Background]]
) -> CameraPath:
    """Interpolate the camera path of a run from its measured frames; frame numbers count from the first of F."""
    count = len(times)
    rotations, zooms, sigmas = np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, np.nan)
    scenes = np.zeros(count, np.int64)
    for number, (first, end) in enumerate(_spans(cuts, count)):
        scenes[first:end] = number
        chosen = [(at, background) for at, background in measured if first <= at < end]
        if not chosen:
            continue
        placed = solve_views([indices[at] for at, _ in chosen], [background for _, background in chosen])
        if placed.components.max() < 0:
            continue
        kept = placed.components == np.bincount(placed.components[placed.components >= 0]).argmax()
        at = np.array([at for at, _ in chosen])[kept]
        begin = placed.rotations[kept][0].T
        _fill(
            times, first, end, at, begin @ placed.rotations[kept], placed.zooms[kept] / placed.zooms[kept][0],
            placed.sigmas[kept], (rotations, zooms, sigmas),
        )  # fmt: skip
    return CameraPath(times, rotations, zooms, sigmas, scenes)


def _spans(cuts: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    borders = [0, *(cut for cut in cuts if 0 < cut < count), count]
    return itertools.pairwise(borders)


def _fill(
    times: F64, first: int, end: int, at: NDArray[np.int64], rotations: F64, zooms: F64, sigmas: F64,
    out: tuple[F64, F64, F64],
) -> None:  # fmt: skip
    """Write the measured views of the frames `at` to `out`, and interpolate the other frames from `first` to `end`."""
    all_rotations, all_zooms, all_sigmas = out
    all_rotations[at], all_zooms[at], all_sigmas[at] = rotations, zooms, sigmas
    speeds = _speeds(times[at], rotations)
    for edge, outer in ((0, range(first, at[0])), (-1, range(at[-1] + 1, end))):
        for row in outer:  # before the first and after the last measured frame
            away = times[row] - times[at[edge]]
            ahead = np.clip(away, -_EXTRAPOLATED_S, _EXTRAPOLATED_S) * speeds[edge]
            all_rotations[row], all_zooms[row] = rotations[edge] @ to_matrix(ahead), zooms[edge]
            if abs(away) <= MAX_BRIDGED_S:
                all_sigmas[row] = sigmas[edge] + _BRIDGED_SIGMA_RAD * max(0.0, abs(away) - _EXTRAPOLATED_S)
    for left in range(len(at) - 1):
        rows = np.arange(at[left] + 1, at[left + 1])
        if not len(rows):
            continue
        begin, gap = times[at[left]], times[at[left + 1]] - times[at[left]]
        share = (times[rows] - begin) / gap
        between = to_vector(rotations[left].T @ rotations[left + 1])
        all_rotations[rows] = rotations[left] @ to_matrix(
            _hermite(share, between, speeds[left] * gap, speeds[left + 1] * gap)
        )
        all_zooms[rows] = zooms[left] ** (1 - share) * zooms[left + 1] ** share
        change = abs(float(np.log(zooms[left + 1] / zooms[left])))
        same = float(np.linalg.norm(between)) < _MAX_EQUAL_RAD and change < _MAX_EQUAL_ZOOM
        if gap <= MAX_BRIDGED_S or (same and gap <= _MAX_HELD_S):
            added_sigma = 0.0 if same else _BRIDGED_SIGMA_RAD * gap * share * (1 - share) * (gap > 0.15)
            all_sigmas[rows] = np.maximum(sigmas[left], sigmas[left + 1]) + added_sigma


def _speeds(times: F64, rotations: F64) -> F64:
    """Return the angular velocity (N, 3) rad/s about the axes of each frame; 0 next to gaps."""
    speeds = np.zeros((len(times), 3))
    if len(times) < 2:
        return speeds
    steps = np.diff(times)
    rates = to_vector(np.swapaxes(rotations[:-1], 1, 2) @ rotations[1:]) / steps[:, None]
    speeds[1:-1] = (rates[:-1] * steps[1:, None] + rates[1:] * steps[:-1, None]) / (steps[1:] + steps[:-1])[:, None]
    speeds[1:-1][(steps[1:] > MAX_BRIDGED_S) | (steps[:-1] > MAX_BRIDGED_S)] = 0
    for end, step, rate in ((0, steps[0], rates[0]), (-1, steps[-1], rates[-1])):
        speeds[end] = rate if step <= MAX_BRIDGED_S else 0.0
    return speeds


def _hermite(share: F64, between: F64, start_velocity: F64, end_velocity: F64) -> F64:
    """Interpolate a rotation vector (N, 3) rad from 0 to `between` with a cubic Hermite spline."""
    s = share[:, None]
    return np.asarray(
        (s**3 - 2 * s**2 + s) * start_velocity + (3 * s**2 - 2 * s**3) * between + (s**3 - s**2) * end_velocity
    )
