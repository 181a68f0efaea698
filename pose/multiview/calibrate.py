"""Calibration from people: initialisation from the 3D poses of each camera, then bundle adjustment in stages.

Each stage of `freedom` frees more camera parameters than the previous one.

A short recording is used completely. A long recording has three windows with much motion, one in each third, so that
the drift of clocks can be estimated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview import residuals as r
from pose.multiview.bundle import BodyUnknowns, BundleAdjustment, Freedom, Solution, start_body
from pose.multiview.initialise import Link
from pose.multiview.observations import Observed, knots_of, observe
from pose.multiview.residuals import Weights
from pose.multiview.sampling import BATCH_TIMES, sample
from pose.multiview.types import LIMB_POINTS, POINTS, CameraBatch, ViewCamera, ViewTrack
from pose.structures.types import F64, Flags

FOCAL_SIGMA = 0.25  # standard deviation of the logarithm of an assumed focal length
RADIAL_SIGMA = 0.03  # standard deviation of the prior of k1, whose mean is 0
OFFSET_SIGMA_S = 0.15  # s, standard deviation of an initial offset
DRIFT_SIGMA = 100e-6  # s/s, standard deviation of the prior of a drift, whose mean is 0
MIN_DRIFT_SPAN_S = 20.0  # s; minimum time from the first to the last frame for an estimate of drifts
CORRELATION_FACTOR = 3.0  # factor on standard deviations, because 2D errors last for many frames
STAGES = ((0, 5), (1, 15), (2, 15), (3, 15), (3, 15))  # (stage of `freedom`, iterations)
ROUGH_STAGES = ((0, 4), (1, 12), (2, 10))


@dataclass(frozen=True, slots=True)
class Known:
    """Description of the camera parameters that are given."""

    poses: bool = False  # whether the camera poses are given and fixed
    clocks: bool = False  # whether the clocks are given and fixed
    refine_poses: bool = False  # whether the given camera poses are initial values, to be refined
    # Whether clocks start from capture times, as for live cameras. Messages then do not suggest `--offsets`.
    capture_times: bool = False
    same_clock: frozenset[int] = frozenset()  # indices of cameras whose clock is that of the first one


def start_cameras(initial_cameras: Sequence[ViewCamera], links: Sequence[Link]) -> list[ViewCamera]:
    """Return the cameras with poses and clock offsets from ordered links; others unchanged."""
    cameras = list(initial_cameras)
    for link in links:
        base = cameras[link.first]
        cameras[link.second] = replace(
            cameras[link.second],
            rotation=link.rotation @ base.rotation,
            translation=link.rotation @ base.translation + link.translation,
            offset=link.lag * (1 + base.drift) + base.offset,
        )
    return cameras


def start_points(observed: Observed, cameras: CameraBatch, scale: float = 1.0) -> F64:
    """Return initial points (..., K, N, 3) m in the world: the mean of lifted points, interpolated in gaps."""
    weight = observed.present[..., None, None].astype(float)
    places = cameras.to_world(scale * (observed.limbs + observed.root[..., None, :]))
    total = weight.sum(axis=0)
    mean: F64 = (places * weight).sum(axis=0) / np.maximum(total, 1e-9)
    seen = total[..., 0, 0] > 0
    if not seen.all():
        for place in np.ndindex(seen.shape[:-1]):
            _interpolate(mean[place], seen[place])
    return mean


def _interpolate(points: F64, seen: Flags) -> None:
    """Replace points (K, N, 3) at unseen instants by linear interpolation between those seen (K,), in place."""
    rows, known = np.flatnonzero(~seen), np.flatnonzero(seen)
    if len(known):
        flat = points.reshape(len(points), -1)
        flat[rows] = np.stack([np.interp(rows, known, column[known]) for column in flat.T], axis=1)


def freedom(cameras: Sequence[ViewCamera], known: Known, stage: int, span: float) -> Freedom:
    """Return the free camera parameters of a calibration stage, 0 to 3, and their priors."""
    # Stage 1 frees rotation and translation, unless `known.poses`. Stage 2 frees the focal length where the intrinsics
    # are unknown, and the clock offset unless `known.clocks`. Stage 3 frees k1 where the intrinsics are unknown, and
    # the clock drift unless `known.clocks` or `span` is less than `MIN_DRIFT_SPAN_S`. Pose and clock of the first
    # camera are always fixed; they define the world and the common time.
    shape = (len(cameras), r.PARAMETERS)
    free, prior, precision = np.zeros(shape, bool), np.zeros(shape), np.zeros(shape)
    for index, camera in enumerate(cameras):
        moves = index > 0 and not known.poses and stage >= 1
        free[index, r.ROTATION] = free[index, r.TRANSLATION] = moves
        if not camera.known:
            free[index, r.FOCAL] = stage >= 2
            free[index, r.RADIAL] = stage >= 3
        if index > 0 and not known.clocks and index not in known.same_clock:
            free[index, r.OFFSET] = stage >= 2
            free[index, r.DRIFT] = stage >= 3 and span >= MIN_DRIFT_SPAN_S
    prior[:, r.FOCAL] = [np.log(camera.focal) for camera in cameras]
    prior[:, r.OFFSET] = [camera.offset for camera in cameras]
    precision[:, r.FOCAL], precision[:, r.RADIAL] = FOCAL_SIGMA**-2.0, RADIAL_SIGMA**-2.0
    precision[:, r.OFFSET], precision[:, r.DRIFT] = OFFSET_SIGMA_S**-2.0, DRIFT_SIGMA**-2.0
    return Freedom(free, prior, np.where(free, precision, 0.0))


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Result of `adjust`. Each body is one person in one window of time."""

    solution: Solution  # cameras and bodies. Each body is one person in one window of time
    seen: list[Observed]  # observations of each body
    owners: list[int]  # index of each body's person in the argument `people` of `adjust`


def adjust(
    people: Sequence[Mapping[int, ViewTrack]],
    cameras: Sequence[ViewCamera],
    known: Known | None = None,
    weights: Weights | None = None,
    rough: bool = False,
    drifts: bool = True,
) -> Adjusted:
    """Calibrate the cameras from people, at least one seen by two cameras at once, by bundle adjustment in stages."""
    # Each stage frees more camera parameters (`freedom`) and samples the 2D keypoints again with the clock offsets of
    # the previous one. With `rough` there are fewer times and stages, and no distortion, drifts and deviations; without
    # `drifts` only the offsets of clocks are estimated.
    known = known or Known()
    windows = calibration_windows(people, cameras, MAX_ROUGH_KNOTS if rough else MAX_KNOTS)
    span = float(windows[-1][-1] - windows[0][0]) if drifts else 0.0
    jobs = [(row, grid) for row, tracks in enumerate(people) for grid in windows if is_shared(tracks, cameras, grid)]
    bodies: list[BodyUnknowns] | None = None
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
            bodies = [start_body(start_points(observed, CameraBatch.of(current))) for observed in seen]
        bundle = BundleAdjustment(seen, freedom(cameras, known, stage, span), weights)
        last = number == len(stages) - 1 and not rough
        solution = bundle.solve(current, bodies, iterations, tolerance=1e-3, covariance=last)
        current, bodies = solution.cameras, solution.bodies
    assert solution is not None
    return Adjusted(solution, seen, [row for row, _ in jobs])


def body_scale(bodies: Sequence[BodyUnknowns], observed: Sequence[Observed]) -> float:
    """Return the median ratio of the limb lengths of bodies to those of lifted bodies."""
    ratios = []
    for body, one in zip(bodies, observed, strict=True):
        for camera in range(len(one.limbs)):
            rows = one.present[camera]
            if rows.any():
                lifted = start_body(one.limbs[camera][rows]).bones[:8].sum()
                ratios.append(float(body.bones[:8].sum() / lifted))
    return float(np.median(ratios)) if ratios else 1.0


MAX_KNOTS = 240  # maximum knots of all people together
MAX_ROUGH_KNOTS = 90  # maximum knots for a rough result
KNOT_RATES = (8.0, 25.0)  # minimum and maximum knots/s
WINDOWS = 3  # number of windows of a long recording
RATE = 4.0  # samples/s for the selection
MAX_SPEED_MPS = 2.0  # m/s, upper bound of joint speeds
MIN_SPEED_MPS = 0.1  # m/s, lower bound for a static person


def shared_span(tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera]) -> tuple[float, float] | None:
    """Return the common times (first, last) s at which two cameras may see a person; None if there are none."""
    ends = [
        (float(cameras[c].common_time(track.times[[0]])[0]), float(cameras[c].common_time(track.times[[-1]])[0]))
        for c, track in tracks.items()
    ]
    if len(ends) < 2:
        return None
    first, last = sorted(first for first, _ in ends)[1], sorted(last for _, last in ends)[-2]
    return (first, last) if last > first else None


def is_shared(tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], grid: F64) -> bool:
    """Return whether two cameras may see the person at two or more instants of a grid."""
    span = shared_span(tracks, cameras)
    return span is not None and bool(((grid >= span[0]) & (grid <= span[1])).sum() >= 2)


def calibration_windows(
    people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera], max_knots: int = MAX_KNOTS
) -> list[F64]:
    """Choose windows for the calibration, and return evenly spaced common times (K,) s of each."""
    spans = [span for tracks in people if (span := shared_span(tracks, cameras)) is not None]
    if not spans:
        return [np.zeros(0)]
    begin, end = min(first for first, _ in spans), max(last for _, last in spans)
    total = sum(last - first for first, last in spans)
    if total * KNOT_RATES[0] <= max_knots:
        rate = float(np.clip(max_knots / max(total, 1e-3), *KNOT_RATES))
        return [np.arange(begin, max(end, begin + 2 / rate), 1 / rate)]
    rate = KNOT_RATES[0]
    mean_people = total / (end - begin)  # mean number of people
    length = max(max_knots / rate / WINDOWS / max(mean_people, 1.0), 1.0)
    instants = np.arange(begin, end, 1 / RATE)
    information = _information(people, cameras, instants)
    windows = []
    for rows in np.array_split(np.arange(len(instants)), WINDOWS):
        count = min(max(int(length * RATE), 1), len(rows))
        totals = np.convolve(information[rows], np.ones(count), mode="valid")
        first = float(instants[rows[int(np.argmax(totals))]])
        windows.append(np.arange(first, min(first + length, end), 1 / rate))
    return windows


def _information(people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera], instants: F64) -> F64:
    """Return how useful each time is for calibration, (K,): cameras beyond one, times the people's speed."""
    information = np.zeros(len(instants))
    for tracks in people:
        seen, speed = np.zeros(len(instants)), np.zeros(len(instants))
        for camera, track in tracks.items():
            for begin in range(0, len(instants), BATCH_TIMES):
                end = min(begin + BATCH_TIMES, len(instants))
                low, high = max(begin - 1, 0), min(end + 1, len(instants))  # the neighbours, for the derivative
                if high - low < 2:
                    continue
                found = sample(track, cameras[camera].own_time(instants[low:high]))
                joints = found.joints[:, POINTS[LIMB_POINTS]] + found.root[:, None]
                moved = np.linalg.norm(np.gradient(joints, axis=0), axis=-1).mean(axis=1) * RATE
                inside = slice(begin - low, end - low)
                seen[begin:end] += found.present[inside]
                speed[begin:end] += found.present[inside] * np.minimum(moved[inside], MAX_SPEED_MPS)
        information += np.maximum(seen - 1, 0) * (MIN_SPEED_MPS + speed / np.maximum(seen, 1))
    return information
