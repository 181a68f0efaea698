"""The fit to 2D keypoints over a whole track, in overlapping, blended windows with bounded memory.

The first window determines the bone lengths; later ones keep them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.camera import project
from pose.fit.log import FitLog
from pose.fit.motion import BONES, FitTarget, fitted
from pose.fit.noise import noise_of
from pose.refine import assembled
from pose.sequences import Sequence2D, Sequence3D
from pose.skeletons import get_skeleton, to_h36m17
from pose.types import F64

SECONDS, OVERLAP = 10.0, 1.0  # s, length of a window and overlap of two
_KNOT = 0.1  # minimum distance of knots, s
_SHORTEST = 1.0  # s; the noise of shorter tracks cannot be estimated
_SEEN = 0.05  # minimum score of a keypoint
_NEAREST = 0.1  # minimum depth for projection, m
_DERIVED = [7, 8, 9, 10]  # joints that detectors define at other points (`pose.skeletons`)
_SURER, _HALF = 0.15, 0.02  # largest reduction of sigma (a fraction), and noise in m that halves the reduction


def first_window(times: NDArray[np.float64], ended: bool) -> tuple[int, int] | None:
    """Return how many frames the first window has, and how many of them come before the next window.

    Args:
        times: (T,) s, times of the frames that are not final; T is at least 1.
        ended: Whether the track has ended.

    Returns:
        Number of frames of the window, and number before the next window; None if the window may get more frames.
    """
    end = int(np.searchsorted(times, times[0] + SECONDS, side="right"))
    if end == len(times):
        return (end, end) if ended else None
    return end, int(np.searchsorted(times, times[0] + SECONDS - OVERLAP))


def fit_motion(lifted: Sequence3D, seen: Sequence2D, log: FitLog | None = None) -> Sequence3D:
    """Fit the motion of one person to the 2D keypoints from which it was lifted.

    The correction is smooth, and stronger where the keypoints are more accurate; bone lengths are constant. Tracks
    shorter than a second are unchanged.

    Args:
        lifted: Motion with constant bone lengths (`pose.refine.refine`).
        seen: 2D sequence of the same frames.
        log: Collector of statistics of the changes.

    Returns:
        The fitted motion. Its sigma is up to 15 % smaller, depending on the accuracy of the keypoints.
    """
    fit, parts, first = MotionFit(log), [], 0
    while first < len(lifted) and (window := first_window(lifted.times[first:], ended=True)):
        end, final = window
        part = fit.window(_cut(lifted, first, first + end), seen[first : first + end], final)
        parts.append(_cut(part, 0, final))
        first += final
    joints, root, sigma = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("joints", "root", "sigma")
    )
    return Sequence3D(joints, root, sigma, lifted.times)


@dataclass(frozen=True, slots=True)
class _Correction:
    """Corrections of T frames.

    Attributes:
        times: (T,) s.
        moves: (T, 17, 3) m, corrections of the joints in the camera frame.
        surer: (T, 17) factors by which sigma is multiplied.
    """

    times: F64
    moves: F64
    surer: F64

    def after(self, before: "_Correction") -> "_Correction":
        """Blend this correction with that of the previous window over the frames in both, and return the result."""
        shared = int(np.searchsorted(self.times, before.times[-1], side="right"))
        if not shared:
            return self
        fade = np.minimum((self.times[:shared] - self.times[0]) / OVERLAP, 1)[:, None]
        moves, surer = self.moves.copy(), self.surer.copy()
        moves[:shared] += (1 - fade[..., None]) * (before.moves[-shared:] - moves[:shared])
        surer[:shared] += (1 - fade) * (before.surer[-shared:] - surer[:shared])
        return replace(self, moves=moves, surer=surer)


class MotionFit:
    """Fit of a person's motion to the 2D keypoints, one window after the other (see `fit_motion`).

    Args:
        log: Collector of statistics of the changes.
    """

    def __init__(self, log: FitLog | None = None) -> None:
        self._log = log
        self._lengths: F64 | None = None
        self._before: _Correction | None = None

    def window(self, lifted: Sequence3D, seen: Sequence2D, final: int | None = None) -> Sequence3D:
        """Fit the next window, and return its fitted motion.

        The window may overlap the previous one; the frames in both are blended.

        Args:
            lifted: Motion of the person with constant bone lengths.
            seen: 2D sequence of the same frames.
            final: Number of frames before the next window; None for all. Only these frames are logged.
        """
        known = self._lengths is not None
        if not known and lifted.times[-1] - lifted.times[0] < _SHORTEST:
            return lifted
        lengths = _lengths(lifted) if self._lengths is None else self._lengths
        correction, self._lengths, distance = _corrected(lifted, seen, lengths, known)
        if self._before is not None:
            correction = correction.after(self._before)
        self._before = correction
        points = lifted.joints + lifted.root[:, None] + correction.moves
        joints = assembled(points - points[:, :1], self._lengths[BONES.group])
        if self._log is not None:
            self._log.add(lifted.joints[:final], joints[:final], distance[:final])
        return Sequence3D(
            joints.astype(np.float32),
            points[:, 0].astype(np.float32),
            (lifted.sigma * correction.surer).astype(np.float32),
            lifted.times,
        )


def _corrected(lifted: Sequence3D, seen: Sequence2D, lengths: F64, known: bool) -> tuple[_Correction, F64, F64]:
    """Return a window's correction, bone lengths (G,) m, and distances (T, 17) m of keypoints from lifted joints."""
    skeleton, matrix = get_skeleton(seen.skeleton), seen.camera.matrix
    pixels, scores = to_h36m17(seen.keypoints, seen.scores, skeleton)
    counts = scores > _SEEN
    if skeleton.derived:
        counts[:, _DERIVED] = False
    points = lifted.joints.astype(np.float64) + lifted.root[:, None]
    points[..., 2] = np.maximum(points[..., 2], _NEAREST)
    off = np.where(counts[..., None], pixels - project(points, matrix), 0.0)
    depth = points[:, :1, 2]
    metres = depth / np.sqrt(matrix[0, 0] * matrix[1, 1])  # size of a pixel at the body's depth
    noise = noise_of(off * metres[..., None], counts, skeleton.derived)
    knots = _knots(lifted.times)
    mean, score = _around(lifted.times, knots, off, np.where(counts, scores, 0.0).astype(np.float64))
    spread = np.where(score > 0, noise / metres[knots] / np.sqrt(np.maximum(score, 1e-3)), np.inf)
    target = FitTarget(lifted.times[knots], points[knots], project(points[knots], matrix) + mean, spread, matrix)
    moves, lengths = fitted(target, lengths, known)
    surer = 1 - _SURER / (1 + (noise / _HALF) ** 2)
    every = _interpolated(lifted.times[knots], moves, lifted.times)
    distance = np.where(counts, np.linalg.norm(off, axis=-1) * metres, np.nan)
    return _Correction(lifted.times, every, np.tile(surer, (len(every), 1))), lengths, distance


def _lengths(lifted: Sequence3D) -> F64:
    """Return the length (G,) m of each group: the mean over its bones of the median over time."""
    length = np.median(BONES.measure(lifted.joints.astype(np.float64))[0], axis=0)
    return np.bincount(BONES.group, length) / np.bincount(BONES.group)


def _knots(times: F64) -> NDArray[np.int64]:
    """Return the indices (K,) of frames at least `_KNOT` seconds apart, including the last frame."""
    knots = [0]
    for frame, time in enumerate(times):
        if time > times[knots[-1]] + _KNOT - 1e-3:
            knots.append(frame)
    if knots[-1] != len(times) - 1:
        knots.append(len(times) - 1)
    return np.array(knots)


def _around(times: F64, knots: NDArray[np.int64], off: F64, scores: F64) -> tuple[F64, F64]:
    """Return the weighted mean (K, 17, 2) px of `off` (T, 17, 2) px around each knot, and the mean score (K, 17).

    The weights are the scores (T, 17), and decrease with the distance in time.
    """
    reach = np.abs(times[:, None] - times[knots]) / _KNOT
    weight = np.maximum(1 - reach, 0.0).T  # (K, T)
    total = weight @ scores
    mean = np.einsum("kt,tj,tjc->kjc", weight, scores, off, optimize=True) / np.maximum(total, 1e-9)[..., None]
    return mean, total / weight.sum(axis=1, keepdims=True)


def _interpolated(knots: F64, values: F64, times: F64) -> F64:
    """Interpolate values (K, ...) at `knots` (K,) s linearly to `times` (T,) s."""
    if len(knots) == 1:
        return np.repeat(values, len(times), axis=0)
    row = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(knots) - 2)
    share = ((times - knots[row]) / (knots[row + 1] - knots[row])).reshape(-1, *(1,) * (values.ndim - 1))
    result: F64 = values[row] + share * (values[row + 1] - values[row])
    return result


def _cut(sequence: Sequence3D, first: int, end: int) -> Sequence3D:
    return Sequence3D(
        sequence.joints[first:end], sequence.root[first:end], sequence.sigma[first:end], sequence.times[first:end]
    )
