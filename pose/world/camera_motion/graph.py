"""The camera's orientation in each frame, from the comparisons of all frames with key frames.

Key frames are nodes and comparisons are edges of a graph. A camera that returns to an earlier view closes a loop. Least
squares then distributes the error over the loop, with edges weighted by their inverse variance (F. Lu and E. Milios,
Autonomous Robots 4, 1997).
"""

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.types import F64, NO_LINK, Background

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
