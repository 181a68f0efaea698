"""What a forecaster gets and gives: people's last second in 3D, and where they will be.

Axes: P person, T past frame, Q query, J joint (17). 3D is metres in the camera frame, times are seconds. Everything is
NumPy; what computes it is behind `Forecaster`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pose.sequences import Sequence3D
from pose.types import F32, F64, Flags, check_shape

PAST_SECONDS = 1.0  # what a forecaster looks at; older frames change nothing
LONGEST_SECONDS = 1.0  # how far ahead forecasters are trained and measured


@dataclass(frozen=True, slots=True)
class Past:
    """What was seen of P people, newest frame last.

    joints: (P, T, 17, 3) m, relative to the pelvis. root: (P, T, 3) m. sigma: (P, T, 17) mm, as a lifter gives it; 0
    for what is known exactly. times: (P, T) s, increasing from one valid frame to the next, at any pace. valid: (P, T),
    False for padding and for frames in which the person was not seen: what such a frame holds, NaN included, has no
    effect. Everybody has at least one valid frame. Raises ValueError.
    """

    joints: F32
    root: F32
    sigma: F32
    times: F64
    valid: Flags

    def __post_init__(self) -> None:
        p, t = self.valid.shape
        check_shape(self, "joints", (p, t, 17, 3))
        check_shape(self, "root", (p, t, 3))
        check_shape(self, "sigma", (p, t, 17))
        check_shape(self, "times", (p, t))
        if not self.valid.any(axis=1).all():
            raise ValueError("Past.valid: a person has no valid frame")
        for times, valid in zip(self.times, self.valid, strict=True):
            if not np.isfinite(times[valid]).all() or not (np.diff(times[valid]) > 0).all():
                raise ValueError("Past.times: time stamps must increase strictly")
        for name in ("joints", "root", "sigma"):
            if not np.isfinite(getattr(self, name)[self.valid]).all():
                raise ValueError(f"Past.{name}: NaN or infinity in a valid frame")

    def __len__(self) -> int:
        return len(self.valid)

    @classmethod
    def of(cls, sequences: Sequence[Sequence3D]) -> Self:
        """The last second of some people, each with its own times; shorter ones are padded at their beginning."""
        recent = [np.flatnonzero(one.times >= one.times[-1] - PAST_SECONDS) for one in sequences]
        length = max(map(len, recent), default=1)
        frames = [np.concatenate([np.repeat(rows[:1], length - len(rows)), rows]) for rows in recent]
        pairs = list(zip(sequences, frames, strict=True))
        return cls(
            np.stack([one.joints[rows] for one, rows in pairs]),
            np.stack([one.root[rows] for one, rows in pairs]),
            np.stack([one.sigma[rows] for one, rows in pairs]),
            np.stack([one.times[rows] for one, rows in pairs]),
            np.arange(length) >= length - np.array([[len(rows)] for rows in recent]),
        )

    def last(self) -> NDArray[np.int64]:
        """(P,) the newest valid frame of everybody."""
        newest: NDArray[np.int64] = self.valid.shape[1] - 1 - np.argmax(self.valid[:, ::-1], axis=1)
        return newest


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where P people will be, at Q times each.

    joints: (P, Q, 17, 3) m, relative to the pelvis. root: (P, Q, 3) m. sigma: (P, Q, 17) mm, the radius that holds the
    true joint with probability 0.68; of the pelvis, which is the origin, next to nothing, as from a lifter. root_sigma:
    (P, Q) mm, the same of the pelvis' way since the last frame in which the person was seen. ahead: (P, Q) s from that
    frame to the time that was asked for: how far this is predicted; 0 for a time that is not after it.
    """

    joints: F32
    root: F32
    sigma: F32
    root_sigma: F32
    ahead: F64

    def __post_init__(self) -> None:
        p, q = self.ahead.shape
        check_shape(self, "joints", (p, q, 17, 3))
        check_shape(self, "root", (p, q, 3))
        check_shape(self, "sigma", (p, q, 17))
        check_shape(self, "root_sigma", (p, q))

    def __len__(self) -> int:
        return len(self.ahead)


@runtime_checkable
class Forecaster(Protocol):
    """Predicts everybody's motion from their last second."""

    name: str

    def predict(self, past: Past, times: F64) -> Forecast:
        """The people of `past` at `times` (P, Q) s, on the clock of `past.times`.

        For a time that is not after the last frame in which a person was seen, it is that frame as it was.
        """
        ...
