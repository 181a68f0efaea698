"""Presence of a person over time, for formats that hide people in a scene."""

import numpy as np
from numpy.typing import NDArray

from pose.body.tracks import Track


def presence(track: Track, start: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return times (K,) s after `start`, and from each on 1 if the person is present, 0 if absent."""
    recording = track.recording
    steps: list[tuple[float, float]] = [(0.0, 0.0)] if track.times[0] > start else []
    steps.append((float(track.times[0]) - start, 1.0))
    for first, last in track.gaps:
        steps += [(float(track.times[first]) - start, 0.0), (float(track.times[last + 1]) - start, 1.0)]
    later = recording.timeline.times[track.first + len(track) :]
    if len(later):
        steps.append((float(later[0]) - start, 0.0))
    times, shown = np.array(steps, np.float32).T
    return times, shown
