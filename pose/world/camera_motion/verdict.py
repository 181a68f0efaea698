"""Classification of the camera motion of a run, with its extent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_vector
from pose.structures.types import F64, Background
from pose.world.camera_motion.parallax import MAX_FOCAL_RATIO, MAX_TESTED_FOCAL_RATIO, MIN_TRANSLATION_RAD
from pose.world.camera_motion.path import CameraPath

STATIC, SHAKING, ROTATING, ZOOMING, TRANSLATING, UNKNOWN, FIXED = (
    "static", "shaking", "rotating", "zooming", "translating", "unknown", "fixed",
)  # fmt: skip
_WORST = (UNKNOWN, TRANSLATING, ZOOMING, ROTATING, SHAKING, STATIC)
KINDS = (STATIC, SHAKING, ROTATING, ZOOMING, TRANSLATING, UNKNOWN, FIXED)

_MAX_STATIC_DEGREES = 0.15  # tolerance of a static camera, about 1 px; twice this for roll
_MAX_STATIC_ZOOM = 0.006  # tolerance of the relative zoom of a static camera
MIN_ZOOM = 0.02  # minimum relative zoom
MAX_SHAKE_DEGREES = 1.5  # degrees; maximum span of the slow rotation of a shaking camera
_SLOW_S = 1.0  # s; faster motion is shake
# Maximum duration in s, and maximum fraction, of frames with people whose view is unknown.
_MAX_UNKNOWN_S, _MAX_UNKNOWN_SHARE = 0.5, 0.02
# rad, limit for a zooming camera; forward motion has less parallax than sideways motion
_MAX_ZOOM_PARALLAX_RAD = 0.0025
_PARALLAX_PERCENTILE = 60  # percentile of the parallax tests that is compared with the threshold
# A short walk with the camera: duration in s, minimum number of tests in it, and threshold of their median in rad.
_WALK_S, _WALK_TESTS, _WALK_PARALLAX_RAD = 4.0, 5, 0.025
_MAX_UNTESTED_DEGREES = 5.0  # degrees; a larger rotation without a parallax test is unknown
# Relative standard deviation of a test's focal length: maximum, and lower bound.
_MAX_FOCAL_SIGMA, _MIN_FOCAL_SIGMA = 0.1, 0.03
_MAX_FOCAL_LOG = 0.12  # log; maximum ratio of the focal length of a rotation to the expected one
# attributes whose maximum over the scenes is reported
_MAX_OVER_SCENES = ("pan", "tilt", "roll", "shake", "zoom", "parallax", "sigma_degrees", "drift")
_MAX_FOCAL_SPREAD_LOG = 0.1  # log; maximum deviation of 75 % of the tests from their median
# The same of a focal length that is used, in log and relative to the log of its ratio. A telephoto lens: minimum number
# of tests, their maximum standard deviation, and maximum ratio.
_MAX_USED_SIGMA, _MAX_USED_SIGMA_SHARE = 0.05, 0.15
_MIN_TELEPHOTO_TESTS, _MAX_TELEPHOTO_SIGMA = 3, 0.03
_MAX_TELEPHOTO = 0.9 * MAX_TESTED_FOCAL_RATIO


@dataclass(frozen=True, slots=True)
class CameraMotion:
    """Motion of the camera in a run, estimated from the background. NaN where nothing was measured."""

    kind: str  # one of `KINDS`; 'fixed' is a setting, not an estimate
    known: float = float("nan")  # fraction of the frames with people in which the camera's orientation is known
    pan: float = float("nan")  # range of the rotation about the camera's vertical axis, degrees
    tilt: float = float("nan")  # range of the rotation about its horizontal axis, degrees
    roll: float = float("nan")  # range of the rotation about its viewing axis, degrees
    shake: float = float("nan")  # RMS of the rotation faster than 1 Hz, degrees
    zoom: float = float("nan")  # ratio of the longest to the shortest focal length
    # 60th percentile of the results of all parallax tests (`pose.world.camera_motion.parallax`), degrees; 0 without
    # any.
    parallax: float = float("nan")
    sigma_degrees: float = float("nan")  # median standard deviation of the orientations, degrees
    # Median over the parallax tests of a ratio: focal length for which a rotation explains the motion of the background
    # best, over that of the intrinsics. NaN if the camera rotated too little.
    focal_ratio: float = float("nan")
    # Spread of the logarithm of `focal_ratio`: 75th percentile of the tests' distances from the median.
    focal_sigma: float = float("nan")
    # Length of the camera's path in m; NaN if translation was not estimated (`pose.world.camera_motion.structure`).
    distance: float = float("nan")
    distance_sigma: float = float("nan")  # standard deviation of `distance`, m
    # Maximum over time windows of the apparent speed of the floor with the rotation compensated, m/s
    # (`pose.world.footing`). A translation up to this speed is not excluded. NaN without standing feet.
    drift: float = float("nan")
    # The scenes with people, in a clip with cuts; else empty. The other attributes then summarise the scenes with a
    # world, or all if none has one.
    scenes: tuple["SceneMotion", ...] = field(default=(), kw_only=True)

    @property
    def translation_known(self) -> bool:
        """Whether the translation of the camera was estimated, so that `distance` is not NaN."""
        return not np.isnan(self.distance)

    @property
    def excludes_translation(self) -> bool:
        """Whether the background proves that the camera did not translate.

        In front of a plane, translation looks like a rotation with a varying focal length, and translation towards the
        plane like a zoom (R. Hartley and A. Zisserman, Multiple View Geometry, 8.4 and 13). A small shake is not a
        translation.
        """
        if self.kind in (STATIC, FIXED, SHAKING):
            return True
        agrees = proves_rotation(self.focal_ratio, self.focal_sigma)
        return self.kind == ROTATING and self.zoom < 1 + MIN_ZOOM and agrees

    @property
    def moves(self) -> bool:
        """Whether frames differ in rotation, zoom or position, so that a path is needed to compare them."""
        return self.kind in (SHAKING, ROTATING, ZOOMING, TRANSLATING)


@dataclass(frozen=True, slots=True)
class SceneMotion:
    """Motion of the camera in one scene."""

    number: int  # number of the scene in the clip; 0 for the first one
    begin: float  # start of the scene, s
    end: float  # start of the next scene, or time of the last frame of the clip, s
    motion: CameraMotion
    frames: int = 0  # number of frames that count: those with people, or all frames of a clip without people
    world: bool = True  # whether people in the scene get world coordinates


def classify(path: CameraPath, measured: Sequence[tuple[int, Background]], peopled: NDArray[np.bool_]) -> CameraMotion:
    """Classify the motion of a path: the worst kind of its scenes, each classified separately."""
    # Many scenes therefore do not outvote one in which the camera is carried. If any frame has people, scenes and
    # unknown views without people are ignored.
    scene_motions = []
    for scene in np.unique(path.scenes).tolist():
        rows = np.flatnonzero(path.scenes == scene)
        first, end = int(rows[0]), int(rows[-1]) + 1
        if peopled.any() and not peopled[first:end].any():
            continue
        scene_path = CameraPath(
            path.times[rows], path.rotations[rows], path.zooms[rows], path.sigmas[rows], path.scenes[rows]
        )
        scene_frames = [(at - first, background) for at, background in measured if first <= at < end]
        begins, ends = float(path.times[first]), float(path.times[min(end, len(path.times) - 1)])
        motion = _classify_scene(scene_path, scene_frames, peopled[rows])
        scene_motions.append(SceneMotion(scene, begins, ends, motion, int(peopled[rows].sum() or len(rows))))
    if path.scenes[-1] == 0:
        return scene_motions[0].motion
    return summarise(_mark_unknown(scene_motions, float(np.median(np.diff(path.times)))))


def _mark_unknown(scenes: Sequence[SceneMotion], step: float) -> list[SceneMotion]:
    """Mark scenes in which views are missing as 'unknown', if too many are missing in all scenes together."""
    frames = sum(scene.frames for scene in scenes)
    missing = sum((1 - scene.motion.known) * scene.frames for scene in scenes)
    if missing <= _MAX_UNKNOWN_SHARE * frames or missing * step <= _MAX_UNKNOWN_S:
        return list(scenes)
    return [
        replace(scene, motion=replace(scene.motion, kind=UNKNOWN))
        if scene.motion.known < 1 - _MAX_UNKNOWN_SHARE
        else scene
        for scene in scenes
    ]


def summarise(found: Sequence[SceneMotion]) -> CameraMotion:
    """Summarise the motion in the scenes of a clip with cuts: the worst kind and the largest values."""
    # `known` is the mean over the frames, the focal length is the one that deviates most. Scenes without a world are
    # ignored, unless none has a world.
    chosen = [one for one in found if one.world] or found
    scenes = [one.motion for one in chosen]
    if len(scenes) == 1:
        return replace(scenes[0], scenes=tuple(found))
    kind = min((one.kind for one in scenes), key=_WORST.index)
    known = float(np.average([one.known for one in scenes], weights=[max(one.frames, 1) for one in chosen]))
    turning = [one for one in scenes if one.kind in (ROTATING, ZOOMING, TRANSLATING)] or list(scenes)
    focal = max(turning, key=lambda one: _focal_deviation(one.focal_ratio, one.focal_sigma))
    largest = {
        name: max(values)
        for name in _MAX_OVER_SCENES
        if (values := [value for one in scenes if not np.isnan(value := getattr(one, name))])
    }
    focal_length = {"focal_ratio": focal.focal_ratio, "focal_sigma": focal.focal_sigma}
    return CameraMotion(kind, known, **largest, **focal_length, scenes=tuple(found))


def _focal_deviation(focal_ratio: float, focal_sigma: float) -> float:
    """Return the deviation of the focal length from a pure rotation's, relative to its limits; infinite if unknown."""
    worst = max(abs(np.log(focal_ratio)) / _MAX_FOCAL_LOG, focal_sigma / _MAX_FOCAL_SPREAD_LOG)
    return float("inf") if np.isnan(focal_ratio) else float(worst)


def _classify_scene(
    path: CameraPath, measured: Sequence[tuple[int, Background]], peopled: NDArray[np.bool_]
) -> CameraMotion:  # fmt: skip
    """Classify the motion of one scene, as `classify` does for a clip."""
    wanted = peopled if peopled.any() else np.ones(len(path.times), bool)
    seen = np.isfinite(path.sigmas)
    step = float(np.median(np.diff(path.times))) if len(path.times) > 1 else 0.0
    missing = int((wanted & ~seen).sum())
    known_share = 1 - missing / max(1, int(wanted.sum()))
    if not (seen & wanted).any():
        return CameraMotion(UNKNOWN, known_share)
    rows = np.flatnonzero(seen)
    middle = path.rotations[rows[len(rows) // 2]]
    views = np.degrees(to_vector(middle.T @ path.rotations[rows]))
    slow = _slow(path.times[rows], views)
    shake = float(np.sqrt(((views - slow) ** 2).sum(axis=1).mean()))
    spans = np.ptp(np.percentile(views, [0.5, 99.5], axis=0), axis=0)
    zoom = float(path.zooms[rows].max() / path.zooms[rows].min())
    slow_span = float(np.linalg.norm(np.ptp(slow, axis=0)))
    tests = np.array(
        [
            (path.times[at], background.parallax, background.focal_ratio, background.focal_sigma)
            for at, background in measured
            if not np.isnan(background.parallax)
        ]
    ).reshape(-1, 4)
    if _is_telephoto(tests[:, 2:]):  # parallax is measured at the expected focal length
        tests[:, 1] /= median_focal_ratio(tests[:, 2:])[0]
    apparent = float(np.degrees(np.percentile(tests[:, 1], _PARALLAX_PERCENTILE))) if len(tests) else 0.0
    sigma = float(np.degrees(np.median(path.sigmas[seen])))
    numbers = (
        known_share,
        spans[1],
        spans[0],
        spans[2],
        shake,
        zoom,
        apparent,
        sigma,
        *median_focal_ratio(tests[:, 2:]),
    )
    kind = _kind(numbers, missing * step, slow_span)
    if kind not in (STATIC, TRANSLATING, UNKNOWN):
        kind = _tested_kind(kind, tests, float(spans.max()))
    return CameraMotion(kind, *(float(number) for number in numbers))


def _kind(numbers: tuple[float, ...], missing: float, slow_span: float) -> str:
    known, pan, tilt, roll, _, zoom, apparent = numbers[:7]
    if known < 1 - _MAX_UNKNOWN_SHARE and missing > _MAX_UNKNOWN_S:
        return UNKNOWN
    if max(pan, tilt, roll / 2) < 2 * _MAX_STATIC_DEGREES and zoom < 1 + 2 * _MAX_STATIC_ZOOM:
        return STATIC
    if apparent > np.degrees(MIN_TRANSLATION_RAD):
        return TRANSLATING
    if zoom > 1 + MIN_ZOOM and max(pan, tilt) < MAX_SHAKE_DEGREES:
        return ZOOMING if apparent < np.degrees(_MAX_ZOOM_PARALLAX_RAD) else TRANSLATING
    return SHAKING if slow_span < MAX_SHAKE_DEGREES else ROTATING


def _tested_kind(kind: str, tests: F64, span: float) -> str:
    """Return the kind if no translation is plausible, else 'translating' or 'unknown'; `tests` is (N, 4)."""
    for time in tests[:, 0]:
        part = tests[(tests[:, 0] <= time) & (tests[:, 0] > time - _WALK_S), 1]
        if len(part) >= _WALK_TESTS and np.median(part) > _WALK_PARALLAX_RAD:
            return TRANSLATING
    if len(tests):
        return kind if np.median(tests[:, 2]) <= MAX_FOCAL_RATIO or _is_telephoto(tests[:, 2:]) else UNKNOWN
    return UNKNOWN if span > _MAX_UNTESTED_DEGREES else kind


def median_focal_ratio(tests: F64) -> tuple[float, float]:
    """Return the weighted median of focal length ratios (N, 2: ratio, sigma), and the spread of their logarithms."""
    # The spread is the 75th percentile of the distances from the median. Both are NaN if no certain test remains.
    tests = tests[tests[:, 1] < _MAX_FOCAL_SIGMA]
    if not len(tests):
        return float("nan"), float("nan")
    logs = np.log(tests[:, 0])
    order = np.argsort(logs)
    weight = np.cumsum(1 / (tests[order, 1] ** 2 + _MIN_FOCAL_SIGMA**2))
    middle = float(logs[order][np.searchsorted(weight, weight[-1] / 2)])
    return float(np.exp(middle)), float(np.percentile(np.abs(logs - middle), 75))


def agree_on_focal(focal_ratio: float, focal_sigma: float) -> bool:
    """Return whether parallax tests agree on a focal length well enough to use it instead of the assumed one."""
    return bool(focal_sigma < max(_MAX_USED_SIGMA, _MAX_USED_SIGMA_SHARE * abs(np.log(focal_ratio))))


def _is_telephoto(tests: F64) -> bool:
    """Return whether tests (N, 2: ratio, sigma) agree on a focal length that is longer than expected."""
    # A camera that translates before a plane looks alike, but its tests are less certain.
    sure = int((tests[:, 1] < _MAX_TELEPHOTO_SIGMA).sum())
    ratio, sigma = median_focal_ratio(tests)
    return sure >= _MIN_TELEPHOTO_TESTS and 1 < ratio < _MAX_TELEPHOTO and agree_on_focal(ratio, sigma)


def proves_rotation(focal_ratio: float, focal_sigma: float) -> bool:
    """Return whether the parallax tests agree on the expected focal length, as they do only for a rotation."""
    return bool(abs(np.log(focal_ratio)) < _MAX_FOCAL_LOG and focal_sigma < _MAX_FOCAL_SPREAD_LOG)


def _slow(times: F64, views: F64) -> F64:
    """Return the moving average (N, 3) of the views over `_SLOW_S`."""
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(views, axis=0)])
    first, end = np.searchsorted(times, times - _SLOW_S / 2), np.searchsorted(times, times + _SLOW_S / 2, side="right")
    return np.asarray((sums[end] - sums[first]) / (end - first)[:, None])
