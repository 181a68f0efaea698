"""Calibration from people: initialisation from each camera's own 3D, then bundle adjustment with more and more
unknowns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview import residuals as r
from pose.multiview.bundle import Body, Bundle, Freedom, Solution, start_body
from pose.multiview.initialise import Link
from pose.multiview.observations import Observed, knots_of, observe
from pose.multiview.residuals import Weights
from pose.multiview.types import ViewCamera, ViewTrack
from pose.multiview.windows import FEW_KNOTS, MOST_KNOTS, calibration_windows, is_shared
from pose.types import F64

FOCAL_SIGMA = 0.25  # standard deviation of the logarithm of an assumed focal length
RADIAL_SIGMA = 0.03  # of k1
OFFSET_SIGMA = 0.15  # s, standard deviation of an initial offset
DRIFT_SIGMA = 100e-6
DRIFT_SPAN = 20.0  # s; minimum overlap to estimate a drift
STAGES = ((0, 5), (1, 15), (2, 15), (3, 15), (3, 15))  # (stage of `freedom`, iterations)
ROUGH_STAGES = ((0, 4), (1, 12), (2, 10))


@dataclass(frozen=True, slots=True)
class Known:
    """Given camera parameters.

    Attributes:
        poses: Poses are fixed.
        clocks: Clocks are fixed.
        start: Poses are initial values; known intrinsics are fixed.
        captured: Clocks start from capture times, as live; messages do not suggest `--offsets`.
    """

    poses: bool = False
    clocks: bool = False
    start: bool = False
    captured: bool = False


def start_cameras(told: Sequence[ViewCamera], links: Sequence[Link]) -> list[ViewCamera]:
    """Set pose and clock offset of each linked camera relative to the camera that its link starts from.

    Args:
        told: Cameras with known intrinsics. Those without a link are returned unchanged.
        links: Links in an order in which the first camera of each is already placed.

    Returns:
        All cameras in the frame of the first one.
    """
    cameras = list(told)
    for link in links:
        base = cameras[link.first]
        cameras[link.second] = replace(
            cameras[link.second],
            rotation=link.rotation @ base.rotation,
            translation=link.rotation @ base.translation + link.translation,
            offset=link.lag * (1 + base.drift) + base.offset,
        )
    return cameras


def start_points(observed: Observed, cameras: Sequence[ViewCamera], scale: float = 1.0) -> F64:
    """Initial points (K, N, 3) m: the mean of the cameras' own 3D, interpolated linearly over time."""
    places, weight = [], observed.present[..., None, None].astype(float)
    for index, camera in enumerate(cameras):
        places.append(camera.to_world(scale * (observed.limbs[index] + observed.root[index][:, None])))
    total = weight.sum(axis=0)
    mean: F64 = (np.stack(places) * weight).sum(axis=0) / np.maximum(total, 1e-9)
    seen = np.flatnonzero(total[:, 0, 0])
    if len(seen) == len(mean):
        return mean
    flat = mean.reshape(len(mean), -1)
    rows = np.arange(len(mean))
    out = np.stack([np.interp(rows, seen, column[seen]) for column in flat.T], axis=1)
    return out.reshape(mean.shape)


def freedom(cameras: Sequence[ViewCamera], known: Known, stage: int, span: float) -> Freedom:
    """Unknowns of a stage: 0 nothing, 1 rotation and translation, 2 also focal lengths and offsets, 3 also k1 and
    drift.

    The first camera is fixed, and its clock is the common one.
    """
    shape = (len(cameras), r.PARAMETERS)
    free, prior, precision = np.zeros(shape, bool), np.zeros(shape), np.zeros(shape)
    for index, camera in enumerate(cameras):
        moves = index > 0 and not known.poses and stage >= 1
        free[index, r.TURN] = free[index, r.SHIFT] = moves
        if not camera.known:
            free[index, r.FOCAL] = stage >= 2
            free[index, r.RADIAL] = stage >= 3
        if index > 0 and not known.clocks:
            free[index, r.OFFSET] = stage >= 2
            free[index, r.DRIFT] = stage >= 3 and span >= DRIFT_SPAN
    prior[:, r.FOCAL] = [np.log(camera.focal) for camera in cameras]
    prior[:, r.OFFSET] = [camera.offset for camera in cameras]
    precision[:, r.FOCAL], precision[:, r.RADIAL] = FOCAL_SIGMA**-2.0, RADIAL_SIGMA**-2.0
    precision[:, r.OFFSET], precision[:, r.DRIFT] = OFFSET_SIGMA**-2.0, DRIFT_SIGMA**-2.0
    return Freedom(free, prior, np.where(free, precision, 0.0))


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Result of `adjust`.

    Attributes:
        solution: Cameras, and bodies of one person in one window each.
        seen: Observations of the bodies.
        owners: Index of each body's person.
    """

    solution: Solution
    seen: list[Observed]
    owners: list[int]


def adjust(
    people: Sequence[Mapping[int, ViewTrack]],
    cameras: Sequence[ViewCamera],
    known: Known | None = None,
    weights: Weights | None = None,
    rough: bool = False,
) -> Adjusted:
    """Bundle adjustment of people (tracks by camera) in stages; the 2D is resampled in each.

    Args:
        people: Matched people; at least one must be seen by two cameras at the same time.
        cameras: Initial cameras.
        known: Given parameters.
        weights: Weights of the residuals.
        rough: Use fewer knots and stages, without standard deviations.
    """
    known = known or Known()
    windows = calibration_windows(people, cameras, FEW_KNOTS if rough else MOST_KNOTS)
    span = float(windows[-1][-1] - windows[0][0])
    jobs = [(row, grid) for row, tracks in enumerate(people) for grid in windows if is_shared(tracks, cameras, grid)]
    bodies: list[Body] | None = None
    seen: list[Observed] = []
    solution: Solution | None = None
    current = list(cameras)
    stages = ROUGH_STAGES if rough else STAGES
    for number, (stage, iterations) in enumerate(stages):
        knots = [knots_of(people[row], current, grid) for row, grid in jobs]
        if bodies is None or any(len(k) != len(body.points) for k, body in zip(knots, bodies, strict=True)):
            bodies = None
        seen = [observe(people[row], current, k, width=0.03) for (row, _), k in zip(jobs, knots, strict=True)]
        if bodies is None:
            bodies = [start_body(start_points(one, current)) for one in seen]
        bundle = Bundle(seen, freedom(cameras, known, stage, span), weights)
        last = number == len(stages) - 1 and not rough
        solution = bundle.solve(current, bodies, iterations, tolerance=1e-3, covariance=last)
        current, bodies = solution.cameras, solution.bodies
    assert solution is not None
    return Adjusted(solution, seen, [row for row, _ in jobs])


def body_scale(bodies: Sequence[Body], observed: Sequence[Observed]) -> float:
    """Ratio of the bodies' sizes to lifted ones: the median ratio of limb lengths."""
    ratios = []
    for body, one in zip(bodies, observed, strict=True):
        for camera in range(len(one.limbs)):
            rows = one.present[camera]
            if rows.any():
                lifted = start_body(one.limbs[camera][rows]).bones[:8].sum()
                ratios.append(float(body.bones[:8].sum() / lifted))
    return float(np.median(ratios)) if ratios else 1.0
