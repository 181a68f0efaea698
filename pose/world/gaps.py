"""Interpolation of short gaps in which a person is missing."""

import numpy as np

from pose.structures.types import F64, Flags
from pose.world.person import Person
from pose.world.rules import GAPS


def fill_gaps(person: Person, frames: F64) -> tuple[Person, Flags]:
    """Fill the short gaps of a person.

    Joints and root are interpolated linearly; sigma is the larger of the two at the ends of the gap. Filled joints
    have score 0. Longer gaps, and the time before the first and after the last frame of the person, are not filled.

    Args:
        frames: (F,) s, times of the video's frames.

    Returns:
        The person in T' frames, including filled ones, and (T',) whether each frame was filled.
    """
    times = person.times
    after = np.searchsorted(times, frames)
    inside = (after > 0) & (after < len(times))
    missing = frames[inside & (times[np.minimum(after, len(times) - 1)] != frames)]
    after = np.searchsorted(times, missing)
    missing, after = (part[times[after] - times[after - 1] <= GAPS.max_gap_s] for part in (missing, after))
    if not len(missing):
        return person, np.zeros(len(times), bool)
    share = (missing - times[after - 1]) / (times[after] - times[after - 1])

    def between(values: F64) -> F64:
        part = share.reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(values[after - 1] * (1 - part) + values[after] * part)

    places = after  # indices at which the filled frames are inserted
    nothing = np.zeros((len(missing), *person.scores.shape[1:]))
    new = {
        "joints": between(person.joints),
        "root": between(person.root),
        "sigma": np.maximum(person.sigma[after - 1], person.sigma[after]),
        "times": missing,
        "rays": np.zeros((len(missing), *person.rays.shape[1:])),
        "scores": nothing,
    }
    filled = Person(**{name: np.insert(getattr(person, name), places, rows, axis=0) for name, rows in new.items()})
    return filled, np.insert(np.zeros(len(times), bool), places, True)


def stretches(times: F64) -> list[slice]:
    """Return the slices of frames between gaps that are too long to fill, for frames at `times` (T,) s."""
    cuts = (np.flatnonzero(np.diff(times) > GAPS.max_gap_s) + 1).tolist()
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)]
