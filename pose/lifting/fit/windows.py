"""The fit to 2D keypoints over a whole track, in overlapping, blended windows; noise and statistics.

The first window determines the bone lengths; later ones keep them.

The distance between projected lifted joints and keypoints has three parts: the error of the lifter across the viewing
direction, jitter of the keypoints, and lasting errors of the keypoints. Third differences over time isolate the jitter,
because motion hardly contributes to them. Lasting errors are the remainder beyond the usual error of the lifter.
Neighbouring frames do not average them out, so they count at least three times in the noise.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.lifting.fit.directions import BoneDirections
from pose.lifting.fit.motion import BONES, FitTarget, fitted
from pose.structures.camera import project
from pose.structures.refine import assembled
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17, get_skeleton, to_h36m17
from pose.structures.types import F64, Flags


@dataclass(slots=True)
class FitLog:
    """Statistics of fits."""

    # Tuple for each fitted window of a person: number of frames; median change in mm of the joints relative to the
    # pelvis; median distance in mm between 2D keypoints and lifted joints before the fit (NaN without keypoints).
    windows: list[tuple[int, float, float]] = field(default_factory=list)

    def add(self, before: NDArray[np.floating], after: NDArray[np.floating], distance: F64) -> None:
        """Add the statistics of one fitted window."""
        change = np.linalg.norm(after[:, 1:] - before[:, 1:], axis=-1)
        detected = distance[np.isfinite(distance)]
        distance_m = float(np.median(detected)) if len(detected) else np.nan
        self.windows.append((len(before), 1000 * float(np.median(change)), 1000 * distance_m))

    @property
    def line(self) -> str:
        """One line of text that summarises all windows; empty if nothing was fitted."""
        if not self.windows:
            return ""
        frames, change, distance = np.array(self.windows).T
        line = (
            f"fit to the 2D keypoints: {frames.sum():.0f} poses, "
            f"changed by {_median(change, frames):.1f} mm (median over joints)"
        )
        detected = np.isfinite(distance)
        if not detected.any():
            return line
        distance_mm = _median(distance[detected], frames[detected])
        return (
            f"{line}; before it, 2D keypoints and lifted joints were {distance_mm:.0f} mm apart "
            "(median, at the distance of the body)"
        )


def _median(values: F64, weights: F64) -> float:
    """Return the weighted median."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, cumulative[-1] / 2)])


WINDOW_S, OVERLAP_S = 10.0, 1.0  # s, length of a window and overlap of two
_KNOT_S = 0.1  # minimum distance of knots, s
_MIN_DURATION_S = 1.0  # s; the noise of shorter tracks cannot be estimated
_MIN_SCORE = 0.05  # minimum score of a keypoint
_MIN_DEPTH_M = 0.1  # minimum depth for projection, m
_DERIVED = [7, 8, 9, 10]  # joints that detectors define at other points (`pose.structures.skeletons`)
_MAX_SIGMA_REDUCTION = 0.15  # largest reduction of sigma, as a fraction
_HALF_REDUCTION_NOISE_M = 0.02  # noise that halves the reduction


def first_window(times: NDArray[np.float64], ended: bool) -> tuple[int, int] | None:
    """Return frames in the next window, and frames before the following one; None if more frames are needed."""
    end = int(np.searchsorted(times, times[0] + WINDOW_S, side="right"))
    if end == len(times):
        return (end, end) if ended else None
    return end, int(np.searchsorted(times, times[0] + WINDOW_S - OVERLAP_S))


def fit_motion(
    lifted: Sequence3D, observed: Sequence2D, log: FitLog | None = None, directions: BoneDirections | None = None
) -> Sequence3D:
    """Fit one person's motion to the 2D keypoints, with smooth corrections and constant bone lengths."""
    # Tracks shorter than a second are unchanged. Sigma becomes up to 15 % smaller, depending on the accuracy of the
    # keypoints.
    fit, parts, first = MotionFit(log, directions), [], 0
    while first < len(lifted) and (window := first_window(lifted.times[first:], ended=True)):
        end, final = window
        part = fit.window(_cut(lifted, first, first + end), observed[first : first + end], final)
        parts.append(_cut(part, 0, final))
        first += final
    joints, root, sigma = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("joints", "root", "sigma")
    )
    return Sequence3D(joints, root, sigma, lifted.times)


@dataclass(frozen=True, slots=True)
class _Correction:
    """Corrections of T frames."""

    times: F64
    offsets: F64  # (T, 17, 3) m, corrections of the joints in the camera frame
    sigma_factor: F64  # (T, 17) factors by which sigma is multiplied

    def after(self, before: "_Correction") -> "_Correction":
        """Blend this correction with that of the previous window over the frames in both, and return the result."""
        shared = int(np.searchsorted(self.times, before.times[-1], side="right"))
        if not shared:
            return self
        fade = np.minimum((self.times[:shared] - self.times[0]) / OVERLAP_S, 1)[:, None]
        offsets, sigma_factor = self.offsets.copy(), self.sigma_factor.copy()
        offsets[:shared] += (1 - fade[..., None]) * (before.offsets[-shared:] - offsets[:shared])
        sigma_factor[:shared] += (1 - fade) * (before.sigma_factor[-shared:] - sigma_factor[:shared])
        return replace(self, offsets=offsets, sigma_factor=sigma_factor)


class MotionFit:
    """Fit of a person's motion to the 2D keypoints, one window after the other (see `fit_motion`)."""

    def __init__(self, log: FitLog | None = None, directions: BoneDirections | None = None) -> None:
        self._log, self._directions = log, directions
        self._lengths: F64 | None = None
        self._before: _Correction | None = None

    def window(self, lifted: Sequence3D, observed: Sequence2D, final: int | None = None) -> Sequence3D:
        """Fit the next window of the track and blend it with the previous one; log its first `final` frames."""
        fixed_lengths = self._lengths is not None
        if not fixed_lengths and lifted.times[-1] - lifted.times[0] < _MIN_DURATION_S:
            return lifted
        lengths = _lengths(lifted) if self._lengths is None else self._lengths
        correction, self._lengths, distance = _corrected(lifted, observed, lengths, fixed_lengths, self._directions)
        if self._before is not None:
            correction = correction.after(self._before)
        self._before = correction
        points = lifted.joints + lifted.root[:, None] + correction.offsets
        joints = assembled(points - points[:, :1], self._lengths[BONES.group])
        if self._log is not None:
            self._log.add(lifted.joints[:final], joints[:final], distance[:final])
        sigma = lifted.sigma * correction.sigma_factor
        if self._directions is not None:
            measured = self._directions.at(lifted.times, np.asarray(~(observed.scores > _MIN_SCORE).any(axis=1)))
            sigma = measured.joint_sigma(BONES, self._lengths[BONES.group], sigma)
        return Sequence3D(
            joints.astype(np.float32), points[:, 0].astype(np.float32), sigma.astype(np.float32), lifted.times
        )


def _corrected(
    lifted: Sequence3D,
    observed: Sequence2D,
    lengths: F64,
    fixed_lengths: bool,
    directions: BoneDirections | None,
) -> tuple[_Correction, F64, F64]:
    """Return a window's correction, bone lengths (G,) m, and distances (T, 17) m of keypoints from lifted joints."""
    skeleton, matrix = get_skeleton(observed.skeleton), observed.camera.matrix
    pixels, scores = to_h36m17(observed.keypoints, observed.scores, skeleton)
    detected = scores > _MIN_SCORE
    if skeleton.derived:
        detected[:, _DERIVED] = False
    points = lifted.joints.astype(np.float64) + lifted.root[:, None]
    points[..., 2] = np.maximum(points[..., 2], _MIN_DEPTH_M)
    residual = np.where(detected[..., None], pixels - project(points, matrix), 0.0)
    depth = points[:, :1, 2]
    metres = depth / np.sqrt(matrix[0, 0] * matrix[1, 1])  # size of a pixel at the body's depth
    noise = noise_of(residual * metres[..., None], detected, skeleton.derived)
    knots = _knots(lifted.times)
    mean, score = _knot_means(lifted.times, knots, residual, np.where(detected, scores, 0.0).astype(np.float64))
    spread = np.where(score > 0, noise / metres[knots] / np.sqrt(np.maximum(score, 1e-3)), np.inf)
    at_knots = None if directions is None else directions.at(lifted.times[knots], np.asarray(~(score > 0).any(axis=1)))
    places = project(points[knots], matrix) + mean
    target = FitTarget(lifted.times[knots], points[knots], places, spread, matrix, at_knots)
    corrections, lengths = fitted(target, lengths, fixed_lengths)
    sigma_factor = 1 - _MAX_SIGMA_REDUCTION / (1 + (noise / _HALF_REDUCTION_NOISE_M) ** 2)
    base = points
    if directions is not None:  # between knots, measured bones move as the sensors do
        base = directions.at(lifted.times, np.asarray(~detected.any(axis=1))).followed(BONES, points)
    corrections = corrections + points[knots] - base[knots]
    at_frames = base - points + _interpolated(lifted.times[knots], corrections, lifted.times)
    distance = np.where(detected, np.linalg.norm(residual, axis=-1) * metres, np.nan)
    return _Correction(lifted.times, at_frames, np.tile(sigma_factor, (len(at_frames), 1))), lengths, distance


def _lengths(lifted: Sequence3D) -> F64:
    """Return the length (G,) m of each group: the mean over its bones of the median over time."""
    length = np.median(BONES.measure(lifted.joints.astype(np.float64))[0], axis=0)
    return np.bincount(BONES.group, length) / np.bincount(BONES.group)


def _knots(times: F64) -> NDArray[np.int64]:
    """Return the indices (K,) of frames at least `_KNOT_S` seconds apart, including the last frame."""
    knots = [0]
    for frame, time in enumerate(times):
        if time > times[knots[-1]] + _KNOT_S - 1e-3:
            knots.append(frame)
    if knots[-1] != len(times) - 1:
        knots.append(len(times) - 1)
    return np.array(knots)


def _knot_means(times: F64, knots: NDArray[np.int64], residual: F64, scores: F64) -> tuple[F64, F64]:
    """Return weighted means (K, 17, 2) px of residuals (T, 17, 2) px near knots, and mean scores (K, 17)."""
    reach = np.abs(times[:, None] - times[knots]) / _KNOT_S
    weight = np.maximum(1 - reach, 0.0).T  # (K, T)
    total = weight @ scores
    mean = np.einsum("kt,tj,tjc->kjc", weight, scores, residual, optimize=True) / np.maximum(total, 1e-9)[..., None]
    return mean, total / weight.sum(axis=1, keepdims=True)


def _interpolated(knots: F64, values: F64, times: F64) -> F64:
    """Interpolate values (K, ...) at `knots` (K,) s linearly to `times` (T,) s."""
    if len(knots) == 1:
        return np.repeat(values, len(times), axis=0)
    row = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(knots) - 2)
    fraction = ((times - knots[row]) / (knots[row + 1] - knots[row])).reshape(-1, *(1,) * (values.ndim - 1))
    result: F64 = values[row] + fraction * (values[row + 1] - values[row])
    return result


def _cut(sequence: Sequence3D, first: int, end: int) -> Sequence3D:
    return Sequence3D(
        sequence.joints[first:end], sequence.root[first:end], sequence.sigma[first:end], sequence.times[first:end]
    )


# Median distance of lifted joints from exact keypoints, across the viewing direction, m (on validation subjects).
_LIFTER_ERROR_M = 0.010
_MIN_NOISE_M = 0.006  # m, standard deviation for exact keypoints, because knots are 0.1 s apart
_BIAS_FACTOR = 3.0  # factor of lasting errors, which successive frames repeat
# m; lasting errors above this value count even more, since the lifter has used the same keypoints. The second value is
# for detectors, whose hips and shoulders differ from those of Human3.6M.
_BIAS_SCALE_M, _BIAS_SCALE_DERIVED_M = 0.03, 0.02
_MEDIAN_PER_SIGMA = 1.177  # median distance in two dimensions, in standard deviations of a coordinate
_DIFFERENCE_SIGMA = np.sqrt(20.0)  # standard deviation of the third difference of independent unit values
_JOINT_WEIGHT = 0.5  # weight of a joint's own variance relative to that of all limb joints
_UNDETECTED_M = 1.0  # m, for joints that are never detected
_TRUNK = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_LIMBS = [joint for joint in range(len(H36M17)) if joint not in _TRUNK]


def noise_of(residual: F64, detected: Flags, derived: bool = False) -> F64:
    """Return the noise (17,) m of one track's 2D keypoints in x, and in y, from residuals (T, 17, 2) m."""
    distance = np.where(detected, np.linalg.norm(residual, axis=-1), np.nan)
    total = _spread(distance)
    steps = np.diff(np.where(detected[..., None], residual, np.nan), n=3, axis=0)
    jitter = np.minimum(_spread(np.linalg.norm(steps, axis=-1) / _DIFFERENCE_SIGMA), total)
    bias = np.sqrt(np.maximum(total**2 - jitter**2 - (_LIFTER_ERROR_M / _MEDIAN_PER_SIGMA) ** 2, 0))
    bias *= _BIAS_FACTOR * (1 + (bias / (_BIAS_SCALE_DERIVED_M if derived else _BIAS_SCALE_M)) ** 4)
    noise: F64 = np.sqrt(_MIN_NOISE_M**2 + bias**2 + jitter**2)
    return noise


def _spread(distance: F64) -> F64:
    """Estimate standard deviations (17,), mixed with that of limb joints, from distances (T, 17), NaN undetected."""
    limbs = distance[:, _LIMBS]
    track = float(np.median(limbs[np.isfinite(limbs)])) if np.isfinite(limbs).any() else _UNDETECTED_M
    own = np.full(distance.shape[1], track)
    for joint, column in enumerate(distance.T):
        distances = column[np.isfinite(column)]
        if len(distances):
            own[joint] = np.median(distances)
    spread: F64 = np.sqrt(_JOINT_WEIGHT * own**2 + (1 - _JOINT_WEIGHT) * track**2) / _MEDIAN_PER_SIGMA
    return spread
