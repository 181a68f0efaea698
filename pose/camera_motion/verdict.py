"""What a camera did in a run, in one word and with numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.parallax import CARRIED_PARALLAX, LONG_LENS
from pose.camera_motion.path import CameraPath
from pose.camera_motion.turns import to_vector
from pose.types import Background

F64 = NDArray[np.float64]

STATIC, SHAKING, ROTATING, ZOOMING, TRANSLATING, UNKNOWN, FIXED = (
    "static", "shaking", "rotating", "zooming", "translating", "unknown", "fixed",
)  # fmt: skip
KINDS = (STATIC, SHAKING, ROTATING, ZOOMING, TRANSLATING, UNKNOWN, FIXED)

_STILL = 0.15  # degrees from the middle of all views within which a camera is static; twice that of roll: about a px
_STILL_ZOOM = 0.006  # share
_ZOOMS = 0.02  # share from which on a camera zooms
_SHAKES = 1.5  # degrees that the slow part of a shaking camera's turn spans at most
_SLOW = 1.0  # s; what is faster is shake
_UNKNOWN_SECONDS, _UNKNOWN_SHARE = 0.5, 0.02  # of frames with people, whose view may be unknown
_ZOOM_PARALLAX = 0.0025  # rad, of a camera that zooms: one that moves forwards shows less than one that moves sideways
_PARALLAX_SHARE = 60  # per cent of the tests that must stay below
_WHILE, _WHILE_TESTS, _WHILE_PARALLAX = 4.0, 5, 0.025  # s, tests in them, and rad of their median, of a shorter walk
_TESTS_SPAN = 5.0  # degrees of turn that are not believed without any test
_LENS_SIGMA, _LENS_FLOOR = 0.1, 0.03  # of a test's focal length, relative: at most, and what residuals do not show
_LENS_OFF = 0.12  # log of the focal length of a rotation over the expected one
_LENS_SPREAD = 0.1  # log; 75 % of the tests must agree within


@dataclass(frozen=True, slots=True)
class CameraMotion:
    """kind: one of `KINDS`; 'fixed' was said, not measured. known: share of the frames with people whose view is known.
    pan, tilt, roll: degrees that the views span about the camera's vertical, horizontal and viewing axis. shake:
    degrees rms, of what is faster than a second. zoom: longest over shortest focal length. parallax: degrees by which
    depth moves the background, in 60 % of the comparisons less; 0 without any. sigma_degrees: of a view, in the median.
    focal_ratio: focal length under which the background's motion is a rotation, over that of the intrinsics, the
    median; NaN where the camera turned too little to tell. focal_sigma: of its logarithm, from the spread of the
    comparisons. NaN where nothing was measured.
    """

    kind: str
    known: float = float("nan")
    pan: float = float("nan")
    tilt: float = float("nan")
    roll: float = float("nan")
    shake: float = float("nan")
    zoom: float = float("nan")
    parallax: float = float("nan")
    sigma_degrees: float = float("nan")
    focal_ratio: float = float("nan")
    focal_sigma: float = float("nan")

    @property
    def certain(self) -> bool:
        """Whether the background tells that the camera kept its place.

        Before a plane, translation looks like a rotation with another focal length that changes from comparison to
        comparison, and translation towards the plane like a zoom (R. Hartley and A. Zisserman, Multiple View Geometry,
        8.4 and 13). A small shake moves nobody far.
        """
        if self.kind in (STATIC, FIXED, SHAKING):
            return True
        agrees = abs(np.log(self.focal_ratio)) < _LENS_OFF and self.focal_sigma < _LENS_SPREAD
        return self.kind == ROTATING and self.zoom < 1 + _ZOOMS and bool(agrees)

    @property
    def moves(self) -> bool:
        """Whether the path is needed to compare frames with each other."""
        return self.kind in (SHAKING, ROTATING, ZOOMING, TRANSLATING)


def judge(path: CameraPath, measured: Sequence[tuple[int, Background]], peopled: NDArray[np.bool_]) -> CameraMotion:
    """The motion of a path.

    measured: as in `find_path`. peopled: (F,) frames with people; the view of others matters to nobody.
    """
    wanted = peopled if peopled.any() else np.ones(len(path.times), bool)
    seen = np.isfinite(path.sigmas)
    step = float(np.median(np.diff(path.times))) if len(path.times) > 1 else 0.0
    missing = int((wanted & ~seen).sum())
    known = 1 - missing / max(1, int(wanted.sum()))
    if not (seen & wanted).any():
        return CameraMotion(UNKNOWN, known)
    spans, shake, zoom = np.zeros(3), 0.0, 1.0
    for scene in np.unique(path.scenes[seen]):
        rows = np.flatnonzero(seen & (path.scenes == scene))
        middle = path.turns[rows[len(rows) // 2]]
        views = np.degrees(to_vector(middle.T @ path.turns[rows]))
        slow = _slow(path.times[rows], views)
        shake = max(shake, float(np.sqrt(((views - slow) ** 2).sum(axis=1).mean())))
        spans = np.maximum(spans, np.ptp(np.percentile(views, [0.5, 99.5], axis=0), axis=0))
        zoom = max(zoom, float(path.zooms[rows].max() / path.zooms[rows].min()))
        slow_span = float(np.linalg.norm(np.ptp(slow, axis=0)))
    tests = np.array(
        [(path.times[at], one.parallax, one.lens, one.lens_sigma) for at, one in measured if not np.isnan(one.parallax)]
    ).reshape(-1, 4)
    apparent = float(np.degrees(np.percentile(tests[:, 1], _PARALLAX_SHARE))) if len(tests) else 0.0
    sigma = float(np.degrees(np.median(path.sigmas[seen])))
    numbers = (known, spans[1], spans[0], spans[2], shake, zoom, apparent, sigma, *_focal(tests))
    kind = _kind(numbers, missing * step, slow_span)
    if kind not in (STATIC, TRANSLATING, UNKNOWN):
        kind = _supported(kind, tests, float(spans.max()))
    return CameraMotion(kind, *(float(number) for number in numbers))


def _kind(numbers: tuple[float, ...], missing: float, slow_span: float) -> str:
    known, pan, tilt, roll, _, zoom, apparent = numbers[:7]
    if known < 1 - _UNKNOWN_SHARE and missing > _UNKNOWN_SECONDS:
        return UNKNOWN
    if max(pan, tilt, roll / 2) < 2 * _STILL and zoom < 1 + 2 * _STILL_ZOOM:
        return STATIC
    if apparent > np.degrees(CARRIED_PARALLAX):
        return TRANSLATING
    if zoom > 1 + _ZOOMS and max(pan, tilt) < _SHAKES:
        return ZOOMING if apparent < np.degrees(_ZOOM_PARALLAX) else TRANSLATING
    return SHAKING if slow_span < _SHAKES else ROTATING


def _supported(kind: str, tests: F64, span: float) -> str:
    """The kind, if a camera that keeps its place is plausible. tests: (N, 4) s, parallax, lens and its
    sigma. span: degrees.
    """
    for time in tests[:, 0]:
        part = tests[(tests[:, 0] <= time) & (tests[:, 0] > time - _WHILE), 1]
        if len(part) >= _WHILE_TESTS and np.median(part) > _WHILE_PARALLAX:
            return TRANSLATING
    if len(tests):
        return UNKNOWN if np.median(tests[:, 2]) > LONG_LENS else kind
    return UNKNOWN if span > _TESTS_SPAN else kind


def _focal(tests: F64) -> tuple[float, float]:
    """The focal length of a rotation over that of the intrinsics, and its spread (log); NaN where no test tells."""
    tests = tests[tests[:, 3] < _LENS_SIGMA]
    if not len(tests):
        return float("nan"), float("nan")
    lens = np.log(tests[:, 2])
    order = np.argsort(lens)
    weight = np.cumsum(1 / (tests[order, 3] ** 2 + _LENS_FLOOR**2))
    middle = float(lens[order][np.searchsorted(weight, weight[-1] / 2)])
    return float(np.exp(middle)), float(np.percentile(np.abs(lens - middle), 75))


def _slow(times: F64, views: F64) -> F64:
    """(N, 3) the mean of the views within half a `_SLOW` before and after each."""
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(views, axis=0)])
    first, end = np.searchsorted(times, times - _SLOW / 2), np.searchsorted(times, times + _SLOW / 2, side="right")
    return np.asarray((sums[end] - sums[first]) / (end - first)[:, None])
