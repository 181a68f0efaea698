"""Inertial sensors beside a video: whose they are, and the directions of bones that they measure in camera axes.

The first lifting of the video gives the time offset (`pose.body.imu.synchronise`), and from it the person who wears
the sensors. Then three things follow from the frames in which the person is seen, by least squares in turn:

- the rotation from the earth frame of the sensors to the camera axes of the first frame;
- each bone's direction in the axes of its sensor. The standing pose, if the recording begins with one, gives the same
  direction a second time: bones of legs and arms are then vertical;
- the heading of each sensor over time, which drifts, or which iron disturbs for seconds.

In frames in which the person is not seen, bones without a sensor get the directions that are usual beside the measured
ones and those seen up to 1 s away, in the heading of the pelvis, which turns as the sensors do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pose.body.imu.calibration import calibrate
from pose.body.imu.mounting import (
    CORRELATED_S,
    DEPTH_SIGMA,
    EARTH_UP,
    HEADING_LEFT,
    LAGS_S,
    OUTLIER,
    PLANE_SIGMA,
    MotionPrior,
    ObservedBones,
    calibrate_mounting,
    heading_axes,
    hinge_axis,
)
from pose.body.imu.recording import ImuRecording
from pose.body.imu.synchronise import video_offset
from pose.errors import PoseError
from pose.lifting.fit.directions import BoneDirections, WornSensors, nearest
from pose.results.run import FindWorn, FirstRun
from pose.structures.rotations import about, cross, dot, inverse, multiply, rotate, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

MEASURED_SIGMA = np.radians(2.5)  # of a direction about each axis: soft tissue, mounting, and heading
_LIFTED_SIGMA = np.radians(8.0)  # of a lifted direction, where it tells of a hidden one
# The bones that turn with each segment, by the joint at their end.
ENDS = {
    "pelvis": ("left_hip", "right_hip", "spine"),
    "trunk": ("thorax", "neck", "left_shoulder", "right_shoulder"),
    "head": ("head",),
    **{f"{side}_thigh": (f"{side}_knee",) for side in ("left", "right")},
    **{f"{side}_shank": (f"{side}_ankle",) for side in ("left", "right")},
    **{f"{side}_upper_arm": (f"{side}_elbow",) for side in ("left", "right")},
    **{f"{side}_forearm": (f"{side}_wrist",) for side in ("left", "right")},
}
_HANGING = ("thigh", "shank", "upper_arm", "forearm")  # segments whose bones point down in the standing pose
_STARTS, _BONE_ENDS = np.array(H36M17.edges).T
_SHIFTS, _OUTLIER_SHIFT = 3, np.radians(20.0)  # refinements of the offset, and Cauchy scale of their residuals
_MIN_DRIFT_S = 60.0  # shortest video for a drift of the sensors' clock
_MAX_DRIFT = 1e-3
_DRIFT_SIGMAS = 3.0  # least ratio of the drift to its sigma
_HEADING_S = 1.5  # standard deviation of the weights over time of a sensor's heading
_HEADING_SIGMA = np.radians(6.0)  # of a sensor's heading
_NEAR_S = 0.05  # between frames with the person that count as the same
_MIN_SEEN = 15  # frames that show the wearer
_MIN_SCORE = 0.05  # of a detected keypoint
_SAME_CORRELATION = 0.5  # of another track of the same person


@dataclass(frozen=True, slots=True)
class VideoMotion:
    """One person of the first lifting in T frames."""

    times: F64  # (T,) s
    joints: F64  # (T, 17, 3) m, from the camera in each frame, in the camera axes of the first frame
    seen: Flags  # (T,) whether 2D keypoints were detected

    @property
    def directions(self) -> F64:
        """Directions (T, 16, 3) of the bones."""
        return unit(self.joints[:, _BONE_ENDS] - self.joints[:, _STARTS])

    @property
    def planes(self) -> F64:
        """Unit normals (T, 16, 3) of the planes through the camera and the bones."""
        return unit(cross(self.joints[:, _STARTS], self.joints[:, _BONE_ENDS]))


def find_worn(recording: ImuRecording, offset: float | None = None) -> FindWorn:
    """Return the function that finds the wearer of sensors in the first results of a run (`pose.results.run`)."""

    def found(run: FirstRun) -> WornSensors:
        rows, times = dict[int, list[tuple[float, F64, bool]]](), list[float]()
        for result, turn in zip(run.results, run.turns, strict=True):
            times.append(result.time)
            places = (result.poses.joints + result.poses.root[:, None]) @ turn.T
            seen = (result.people.scores > _MIN_SCORE).any(axis=1) & ~result.people.interpolated
            for number, *row in zip(result.people.ids.tolist(), places.astype(np.float64), seen.tolist(), strict=True):
                rows.setdefault(number, []).append((result.time, *row))
        people = {number: VideoMotion(*map(np.array, zip(*row, strict=True))) for number, row in rows.items()}
        worn = worn_sensors(recording, people, np.array(times), offset, run.up)
        measured, hinges = worn.directions, worn.directions.hinges
        assert hinges is not None
        in_frames, hinges = (np.einsum("tba,tsb->tsa", run.turns, one) for one in (measured.directions, hinges))
        return replace(worn, directions=replace(measured, directions=in_frames, hinges=hinges))

    return found


def worn_sensors(
    recording: ImuRecording,
    people: Mapping[int, VideoMotion],
    times: F64,
    offset: float | None = None,
    up: F64 | None = None,
) -> WornSensors:
    """Find who wears the sensors, by track id, and what they measure at the times (T,) s of all frames of the video.

    `offset` s is to be added to the sensors' times; None finds it. `up` (3,) is against gravity in camera axes, if
    known. If the sensors fit no person, or too few frames show the person, a PoseError says so.
    """
    found, reasons = dict[int, tuple[float, float, float]](), list[str]()
    for number, motion in people.items():
        if motion.seen.sum() < _MIN_SEEN:
            continue
        try:
            best, correlation = video_offset(recording, motion.joints, motion.times, at=offset, seen=motion.seen)
        except PoseError as error:
            reasons.append(str(error))
            continue
        certainty = np.arctanh(min(correlation, 0.999)) * np.sqrt(motion.times[-1] - motion.times[0])
        found[number] = certainty, best, correlation
    if not found:
        raise PoseError(reasons[0] if reasons else f"{recording.source}: no person is in view for long enough")
    wearer = max(found, key=lambda number: found[number])
    _, best, correlation = found[wearer]
    same = [wearer, *_further_tracks(recording, people, wearer, best)]
    motion = _joined([people[number] for number in same])
    drift = 0.0
    for _ in range(_SHIFTS if offset is None else 0):
        change, rate = _clock(measured_directions(recording, motion, motion.times, best, up), motion)
        recording = recording.stretched(rate, float(motion.times.mean()) - best)
        best, drift = best + change, drift + rate
    directions = measured_directions(recording, motion, times, best, up)
    segments = tuple(one.segment for one in recording.sensors if one.segment in ENDS)
    return WornSensors(tuple(same), best, correlation, segments, directions, drift)


def _clock(measured: BoneDirections, motion: VideoMotion) -> tuple[float, float]:
    """Return the time in s to add to the sensors' times, at the mean time of the video, so that directions agree best.

    The second number is the change of it per second, 0 unless the video is long enough to show it.
    """
    usable = (motion.seen & np.isfinite(measured.sigma[:, measured.sensors]).all(axis=1))[:, None]
    directions = measured.directions[:, measured.sensors]
    speed = np.gradient(directions, motion.times, axis=0)
    off = motion.directions[:, measured.sensors] - directions
    square = dot(off, off) / _OUTLIER_SHIFT**2
    weight = usable / (1 + square)
    pull, moved = (-(weight * dot(speed, off)).sum(axis=1), (weight * dot(speed, speed)).sum(axis=1))
    shift = float(pull.sum() / max(moved.sum(), 1e-9))
    span = float(np.ptp(motion.times[moved > 0])) if (moved > 0).any() else 0.0
    if span < _MIN_DRIFT_S:
        return shift, 0.0
    terms = np.stack([np.ones(len(moved)), motion.times - motion.times.mean()], axis=1)
    inverse_information = np.linalg.inv(np.einsum("t,ti,tj->ij", moved, terms, terms) + 1e-9 * np.eye(2))
    both = inverse_information @ (pull @ terms)
    # Errors of neighbouring frames are alike, so the uncertainty comes from blocks of time (a sandwich estimator).
    block = ((motion.times - motion.times[0]) / CORRELATED_S).astype(int)
    rest = (pull - moved * (terms @ both))[:, None] * terms
    sums = np.stack([np.bincount(block, rest[:, column]) for column in range(2)], axis=1)
    spread = float(np.sqrt((inverse_information @ (sums.T @ sums) @ inverse_information)[1, 1]))
    certain = _DRIFT_SIGMAS * spread < abs(both[1]) < _MAX_DRIFT
    return (float(both[0]), float(both[1])) if certain else (shift, 0.0)


def _further_tracks(
    recording: ImuRecording, people: Mapping[int, VideoMotion], wearer: int, offset: float
) -> list[int]:
    """Return other tracks that do not overlap with that of the wearer and agree with the sensors, nearest first."""
    taken, further = [people[wearer].times[[0, -1]]], []
    for number, motion in sorted(people.items(), key=lambda one: abs(one[1].times[0] - people[wearer].times[-1])):
        start, end = motion.times[[0, -1]]
        if number == wearer or any(start <= last and first <= end for first, last in taken):
            continue
        try:
            _, correlation = video_offset(recording, motion.joints, motion.times, at=offset, seen=motion.seen)
        except PoseError:
            continue
        if correlation >= _SAME_CORRELATION:
            taken.append(motion.times[[0, -1]])
            further.append(number)
    return further


def _joined(motions: list[VideoMotion]) -> VideoMotion:
    ordered = sorted(motions, key=lambda motion: motion.times[0])
    return VideoMotion(*(np.concatenate([getattr(one, name) for one in ordered]) for name in VideoMotion.__slots__))


def measured_directions(
    recording: ImuRecording, motion: VideoMotion, times: F64, offset: float, up: F64 | None = None
) -> BoneDirections:
    """Return the directions that sensors measure at `times` (T,) s of the video, calibrated by the person's motion."""
    used = [(segment, bone) for segment, bone in _bones() if segment in {one.segment for one in recording.sensors}]
    first = max(sensor.times[0] for sensor in recording.sensors) + offset
    last = min(sensor.times[-1] for sensor in recording.sensors) + offset
    seen = np.flatnonzero(motion.seen & (motion.times >= first) & (motion.times <= last))
    if len(seen) < _MIN_SEEN:
        raise PoseError(f"{recording.source}: fewer than {_MIN_SEEN} frames show the person who wears the sensors")
    bones = np.array([bone for _, bone in used])
    raw = recording.orientations(motion.times[seen] - offset)
    turned = np.stack([raw[segment] for segment, _ in used], axis=1)  # (N, S, 4)
    standing = _standing(recording, used)
    to_camera, mounted = calibrate_mounting(
        ObservedBones(motion.times[seen], turned, motion.directions[seen][:, bones], motion.planes[seen][:, bones]),
        standing,
        up,
    )
    # From here, sensors turn in the earth's axes that the video confirms.
    in_earth, planes = (rotate(inverse(to_camera), one[seen]) for one in (motion.directions, motion.planes))

    own = rotate(turned, mounted)

    def headed(at: F64) -> F64:
        q = recording.orientations(np.clip(at, first, last) - offset)
        angles = _headings(used, own, in_earth[:, bones], planes[:, bones], motion.times[seen], at)
        return multiply(about(EARTH_UP, angles), np.stack([q[segment] for segment, _ in used], axis=1))

    directions = np.zeros((len(times), len(H36M17.edges), 3))
    sigma = np.full(directions.shape[:2], np.inf)
    inside = (times >= first) & (times <= last)
    if not inside.any():
        raise PoseError(f"{recording.source}: the recording does not overlap with the video")
    rows = np.flatnonzero(inside)
    directions[np.ix_(rows, bones)] = rotate(to_camera, rotate(headed(times[rows]), mounted))
    sigma[np.ix_(rows, bones)] = MEASURED_SIGMA
    # Directions of bones without a sensor, where the person is hidden: at each lag, sensors, and the video if it sees.
    near, known = nearest(motion.times[seen], times, _NEAR_S)
    rows = np.flatnonzero(inside & ~known)
    if len(rows):
        at = times[rows][:, None] + LAGS_S
        near, known = nearest(motion.times[seen], at.ravel(), _NEAR_S)
        around = in_earth[near].reshape(*at.shape, -1, 3)
        precision = np.where(known, _LIFTED_SIGMA**-2, 0.0).reshape(*at.shape, 1).repeat(len(H36M17.edges), axis=2)
        around[:, :, bones] = rotate(headed(at.ravel()), mounted).reshape(*at.shape, -1, 3)
        precision[:, :, bones] = MEASURED_SIGMA**-2
        headings = _pelvis_headings(recording, in_earth, motion.times[seen], times[rows], offset)
        left = np.stack([np.cos(headings), np.sin(headings), np.zeros(len(headings))], axis=-1)
        axes = heading_axes(left, EARTH_UP)
        found, spread = MotionPrior.shipped().expected(np.einsum("tca,tlba->tlbc", axes, around), precision)
        free = np.setdiff1d(np.arange(len(H36M17.edges)), bones)
        directions[np.ix_(rows, free)] = rotate(to_camera, np.einsum("tca,tbc->tba", axes, found[:, free]))
        sigma[np.ix_(rows, free)] = spread[:, free]
    sensors = np.isin(np.arange(len(H36M17.edges)), bones)
    hinges = np.zeros(directions.shape)
    rows = np.flatnonzero(inside)
    for place, (segment, bone) in enumerate(used):
        parent = next((b for b, (_, end) in enumerate(H36M17.edges) if end == H36M17.edges[bone][0]), None)
        if not segment.endswith("_shank") or parent is None:
            continue
        axis = hinge_axis(rotate(inverse(headed(motion.times[seen])[:, place]), in_earth[:, parent]), mounted[place])
        if axis is not None:
            hinges[rows, parent] = rotate(to_camera, rotate(headed(times[rows])[:, place], axis))
    return BoneDirections(times, directions, sigma, sensors, hinges)


def _bones() -> list[tuple[str, int]]:
    ends = [H36M17.names[end] for _, end in H36M17.edges]
    return [(segment, ends.index(end)) for segment, names in ENDS.items() for end in names]


def _standing(recording: ImuRecording, used: list[tuple[str, int]]) -> F64:
    """Return the bones' directions (S, 3) in their sensors' axes by the standing pose; NaN where it says nothing."""
    result = np.full((len(used), 3), np.nan)
    times = recording.common_times(recording.rate)
    try:
        calibration = calibrate(recording.orientations(times), recording.rate, recording.source, 0.0)
    except PoseError:
        return result
    for at, (segment, _) in enumerate(used):
        if segment.split("_", 1)[-1] in _HANGING:
            result[at] = rotate(inverse(calibration.standing[segment]), np.array([0.0, 0.0, -1.0]))
    return result


def _headings(used: list[tuple[str, int]], measured: F64, seen: F64, planes: F64, times: F64, at: F64) -> F64:
    """Return the rotations (K, S) rad about the vertical at times `at` (K,) s that turn sensors to the video.

    `measured` and `seen` (N, S, 3) are directions by sensors and video, `planes` (N, S, 3) the normals of the planes
    through camera and bones, all in earth axes. The S directions in `used` of one sensor have one heading.
    """
    slope, off = cross(np.broadcast_to(EARTH_UP, measured.shape), measured), seen - measured
    axes = ((planes, PLANE_SIGMA**-2), (cross(planes, measured), DEPTH_SIGMA**-2))

    def weighed(one: F64, other: F64) -> F64:
        return np.asarray(sum(precision * dot(one, axis) * dot(other, axis) for axis, precision in axes))

    weight = 1 / (1 + weighed(off, off) / OUTLIER**2)
    top, bottom = weight * weighed(slope, off), weight * weighed(slope, slope)
    knots = np.linspace(times[0], times[-1], max(2, int((times[-1] - times[0]) / (_HEADING_S / 2)) + 1))
    kernel = np.exp(-0.5 * ((knots[:, None] - times) / _HEADING_S) ** 2)
    kernel *= min(1.0, float(np.median(np.diff(times))) / CORRELATED_S)
    top, bottom = kernel @ top, kernel @ bottom
    for segment in {segment for segment, _ in used}:
        same = [one for one, (other, _) in enumerate(used) if other == segment]
        top[:, same], bottom[:, same] = (values[:, same].sum(axis=1, keepdims=True) for values in (top, bottom))
    angles = top / (bottom + _HEADING_SIGMA**-2)
    return np.stack([np.interp(at, knots, angles[:, one]) for one in range(len(used))], axis=1)


def _pelvis_headings(recording: ImuRecording, in_earth: F64, seen_at: F64, times: F64, offset: float) -> F64:
    """Return the angles (K,) rad of the pelvis' left axis about the vertical, from the video and the sensors' turns."""
    ends = [end for _, end in H36M17.edges]
    left = in_earth[:, ends.index(HEADING_LEFT[0])] - in_earth[:, ends.index(HEADING_LEFT[1])]
    reference = recording.orientations(seen_at[[len(seen_at) // 2]] - offset)

    def turns(at: F64) -> F64:
        each = [
            multiply(q, inverse(reference[segment]))
            for segment, q in recording.orientations(at - offset).items()
            if segment.split("_", 1)[-1] not in ("forearm", "hand", "upper_arm", "head")
        ]
        if not each:
            return np.zeros(len(at))
        angles = np.unwrap([2 * np.arctan2(q[:, 3], q[:, 0]) for q in each], axis=1)
        return np.asarray(angles.mean(axis=0))

    own = np.unwrap(np.arctan2(left[:, 1], left[:, 0]) - turns(seen_at))
    return np.interp(times, seen_at, own) + turns(times)
