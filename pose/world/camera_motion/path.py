"""The camera's rotation and zoom in every frame of a run, interpolated between measured frames.

Key frames are nodes and comparisons are edges of a graph. A camera that returns to an earlier view closes a loop. Least
squares then distributes the error over the loop, with edges weighted by their inverse variance (F. Lu and E. Milios,
Autonomous Robots 4, 1997).
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.types import F64, NO_LINK, Background, CameraView

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


_ITERATIONS = 4
_MIN_SIGMA_RAD = 5e-4  # rad, minimum standard deviation of a comparison


@dataclass(frozen=True, slots=True)
class FrameViews:
    """Views (rotation and zoom) of N measured frames of one scene, by connected component of key frames."""

    rotations: F64  # (N, 3, 3) rotations from each frame's camera axes to those of the first key frame of the component
    zooms: F64  # (N,) focal lengths relative to that of the first key frame of the component
    sigmas: F64  # (N,) rad, standard deviations of the rotations; NaN if the view is unknown
    components: NDArray[np.int64]  # (N,) numbers of the components; -1 if the view is unknown


@dataclass(frozen=True, slots=True)
class _Edge:
    """A comparison of two nodes."""

    one: int  # first node
    other: int  # second node
    rotation: F64  # (3, 3) rotation from the camera axes of `one` to those of `other`
    zoom: float  # logarithm of the ratio of the zoom of `one` to that of `other`
    sigma: float  # standard deviation of the rotation, rad


def solve_views(indices: Sequence[int], samples: Sequence[Background]) -> FrameViews:
    """Compute the views (rotation and zoom) of the frames `indices` with measured backgrounds."""
    keys = sorted({int(link[0]) for sample in samples for link in sample.links if link[0] != NO_LINK})
    node = {key: number for number, key in enumerate(keys)}
    edges = []
    for index, sample in zip(indices, samples, strict=True):
        links = [link for link in sample.links if link[0] != NO_LINK]
        seen = [(node[int(link[0])], to_matrix(link[1:4]), float(link[4]), float(link[5])) for link in links]
        if index in node:
            seen.append((node[index], np.eye(3), 0.0, 0.0))
        for one, other in itertools.pairwise(seen):
            if one[0] != other[0]:
                sigma = float(np.hypot(np.hypot(one[3], other[3]), _MIN_SIGMA_RAD))
                edges.append(_Edge(one[0], other[0], other[1] @ one[1].T, other[2] - one[2], sigma))
    rotations, zooms, sigmas, components = _solve(len(keys), edges)
    count = len(samples)
    placed = FrameViews(np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, np.nan), np.full(count, -1))
    for row, sample in enumerate(samples):
        key, link = sample.links[0, 0], sample.links[0]
        if key == NO_LINK:
            continue
        at = node[int(key)]
        placed.rotations[row] = rotations[at] @ to_matrix(link[1:4])
        placed.zooms[row] = np.exp(zooms[at] + link[4])
        placed.sigmas[row] = np.hypot(np.hypot(sigmas[at], link[5]), _MIN_SIGMA_RAD)
        placed.components[row] = components[at]
    return placed


def _solve(count: int, edges: list[_Edge]) -> tuple[F64, F64, F64, NDArray[np.int64]]:
    """Compute rotation (N, 3, 3), log zoom, sigma (rad) and component of each node: along edges, then least squares."""
    rotations, zooms, sigmas = np.tile(np.eye(3), (count, 1, 1)), np.zeros(count), np.zeros(count)
    components = np.full(count, -1)
    neighbours: list[list[tuple[int, F64, float]]] = [[] for _ in range(count)]
    for edge in edges:
        neighbours[edge.one].append((edge.other, edge.rotation.T, -edge.zoom))
        neighbours[edge.other].append((edge.one, edge.rotation, edge.zoom))
    for first in range(count):
        if components[first] >= 0:
            continue
        components[first] = number = int(components.max()) + 1
        queue = deque([first])
        while queue:
            at = queue.popleft()
            for other, rotation, zoom in neighbours[at]:
                if components[other] < 0:
                    rotations[other], zooms[other], components[other] = (
                        rotations[at] @ rotation,
                        zooms[at] + zoom,
                        number,
                    )
                    queue.append(other)
        nodes = np.flatnonzero(components == number)
        inside = [edge for edge in edges if components[edge.one] == number]
        if inside:
            _relax(nodes, inside, rotations, zooms, sigmas)
    return rotations, zooms, sigmas, components


def _relax(nodes: NDArray[np.int64], edges: list[_Edge], rotations: F64, zooms: F64, sigmas: F64) -> None:
    """Solve least squares over one component, in place. The first node of the component is fixed."""
    row = {int(node): number for number, node in enumerate(nodes)}
    incidence = np.zeros((len(edges), len(nodes)))
    for number, edge in enumerate(edges):
        incidence[number, row[edge.one]], incidence[number, row[edge.other]] = -1, 1
    weights = np.array([edge.sigma**-2 for edge in edges])
    information = incidence[:, 1:].T @ (weights[:, None] * incidence[:, 1:])
    covariance = np.linalg.inv(information)
    sigmas[nodes[1:]] = np.sqrt(np.diagonal(covariance))
    if len(edges) < len(nodes):
        return  # the graph is a tree, in which least squares changes nothing
    gain = covariance @ (incidence[:, 1:].T * weights)
    for _ in range(_ITERATIONS):
        # Residual rotation of each edge, in the axes of the component's first node.
        off = np.array([to_vector(rotations[e.one] @ e.rotation.T @ rotations[e.other].T) for e in edges])
        scale = np.array([zooms[e.one] - e.zoom - zooms[e.other] for e in edges])
        rotations[nodes[1:]] = to_matrix(gain @ off) @ rotations[nodes[1:]]
        zooms[nodes[1:]] += gain @ scale
