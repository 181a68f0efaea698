"""Selection of the parts of a recording for calibration.

A short recording is used completely. A long recording has three windows with much motion, one in each third, so that
the drift of clocks can be estimated.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pose.multiview.sampling import BATCH_TIMES, sample
from pose.multiview.types import LIMB_POINTS, POINTS, ViewCamera, ViewTrack
from pose.structures.types import F64

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
