"""Time offset between inertial sensors and a video, from angular speeds."""

import numpy as np

from pose.body.imu.recording import ImuRecording
from pose.errors import PoseError
from pose.lifting.fit.directions import nearest
from pose.structures.rotations import angle_between, dot, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

# The bone of a video's skeleton that turns with each segment.
_BONES = {
    **{f"{side}_thigh": (f"{side}_hip", f"{side}_knee") for side in ("left", "right")},
    **{f"{side}_shank": (f"{side}_knee", f"{side}_ankle") for side in ("left", "right")},
    **{f"{side}_upper_arm": (f"{side}_shoulder", f"{side}_elbow") for side in ("left", "right")},
    **{f"{side}_forearm": (f"{side}_elbow", f"{side}_wrist") for side in ("left", "right")},
    "trunk": ("pelvis", "thorax"),
}
_RATE = 100.0  # Hz at which speeds are compared
_SMOOTH_SECONDS = 0.15
_MIN_OVERLAP_SECONDS = 2.0
_MIN_CORRELATION = 0.5
_NEAR_SECONDS = 0.1  # to a frame that shows the person


def video_offset(
    recording: ImuRecording,
    joints: F64,
    times: F64,
    max_offset: float = 60.0,
    at: float | None = None,
    seen: Flags | None = None,
) -> tuple[float, float]:
    """Return the time in s to add to the sensors' times so that they agree with a video, and the correlation.

    The angular speed of a bone in the video is at most that of its segment, since a bone's direction does not show
    rotation about itself; both have their peaks at the same times, which is what the correlation finds. `joints` (T,
    17, 3) are in any fixed axes; frames that are not `seen` do not count. With a known offset `at`, the correlation is
    that there.

    Raises:
        PoseError: No sensor is on a bone of the skeleton, or no offset up to `max_offset` s makes the motions similar.
    """
    grid = np.arange(times[0], times[-1], 1 / _RATE)
    own = recording.common_times(_RATE)
    rotated = recording.orientations(own)
    products = []
    for segment, (start, end) in _BONES.items():
        if segment in rotated:
            bone = unit(joints[:, H36M17.index(end)] - joints[:, H36M17.index(start)])
            products.append((_speed_of_rotation(rotated[segment]), _speed_of_bone(bone, times, grid)))
    if not products:
        raise PoseError(f"{recording.source}: no sensor is on a limb or the trunk, so the video cannot be aligned")
    visible = times if seen is None else times[seen]
    _, known = nearest(visible, grid, _NEAR_SECONDS)
    lags, overlap, score = _correlation(products, known.astype(np.float64))
    # A sample `lag` of the sensors' speeds is at the first time of the video.
    offsets = grid[0] - (own[0] + lags / _RATE)
    # Fisher's transform: the same correlation over a longer overlap is the more certain one, which matters for
    # periodic motion.
    certainty = np.arctanh(np.clip(score, -0.999, 0.999)) * np.sqrt(overlap)
    certainty[np.abs(offsets) > max_offset] = -np.inf
    if at is not None:
        certainty = -np.abs(offsets - at)
    best = int(certainty.argmax())
    if score[best] < _MIN_CORRELATION:
        raise PoseError(
            f"{recording.source}: the sensors' motion fits the video nowhere (correlation {score[best]:.2f}); "
            "are they of the same person and time?"
        )
    return float(offsets[best]), float(score[best])


def _speed_of_rotation(q: F64) -> F64:
    return _smoothed(np.append(angle_between(q[:-1], q[1:]) * _RATE, 0.0))


def _speed_of_bone(bone: F64, times: F64, grid: F64) -> F64:
    """Return the angular speed of a direction (T, 3) in rad/s at the times of the grid."""
    at = np.stack([np.interp(grid, times, bone[:, axis]) for axis in range(3)], axis=1)
    at = unit(at)
    steps = np.arccos(np.clip(dot(at[:-1], at[1:]), -1, 1)) * _RATE
    return _smoothed(np.append(steps, 0.0))


def _smoothed(values: F64) -> F64:
    width = max(int(_SMOOTH_SECONDS * _RATE) | 1, 3)
    kernel = np.hanning(width + 2)[1:-1]
    return np.convolve(values, kernel / kernel.sum(), mode="same")


def _correlation(pairs: list[tuple[F64, F64]], seen: F64) -> tuple[F64, F64, F64]:
    """Return shifts and overlaps in samples, and the mean correlation of the pairs of speeds at each shift."""
    long, short = len(pairs[0][0]), len(seen)
    size = 1 << (long + short).bit_length()
    lags = np.arange(1 - short, long)

    def sums(sensor: F64, video: F64) -> F64:
        product = np.fft.irfft(np.fft.rfft(sensor, size) * np.conj(np.fft.rfft(video, size)), size)
        return np.asarray(product[lags % size])

    count = np.round(sums(np.ones(long), seen))
    kept = count >= min(_MIN_OVERLAP_SECONDS * _RATE, long, float(seen.sum()))
    total, samples = np.zeros(len(lags)), np.maximum(count, 1)
    for sensor, video in pairs:
        sensor, video = sensor - sensor.mean(), seen * (video - video.mean())
        one, other = sums(sensor, seen), sums(np.ones(long), video)
        cross = sums(sensor, video) - one * other / samples
        spread = sums(sensor**2, seen) - one**2 / samples
        spread *= sums(np.ones(long), video**2) - other**2 / samples
        total += cross / np.sqrt(np.maximum(spread, 1e-12))
    return lags[kept].astype(np.float64), count[kept], total[kept] / len(pairs)
