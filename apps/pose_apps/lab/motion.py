"""Motion capture data for experiments, read from files (see `pose.training.laboratory.trial.MotionData`)."""

import functools
import random
from collections.abc import Callable, Iterator

import numpy as np
from pose_datasets.mapping import POINTS
from pose_datasets.mocap import Clip, laboratory
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource

from pose.errors import UsageError
from pose.structures.sequences import LiftBatch
from pose.training.laboratory.trial import GroupedBatches

CACHED_BATCHES = 1000  # cached batches: 130 MB for 300 frames
SPEEDS = {"still": 0.2, "slow": 0.6, "brisk": 1.5, "fast": np.inf}  # upper limits of the mean joint speed, m/s
_BODY = [("pelvis", "thorax"), ("thorax", "head"), ("right_hip", "right_knee"), ("right_knee", "right_ankle")]
BODY = [tuple(map(POINTS.index, bone)) for bone in _BODY]


class MocapMotion:
    """Motion capture data from files of `pose-prepare mocap` (implements `MotionData`)."""

    def __init__(self, files: str) -> None:
        self._files = files
        self._clips = MocapSource(MocapConfig(mocap=files), 0)
        # Several trials of an experiment train on the same batches, one after another.
        self._training = functools.lru_cache(4)(self._batches)

    def training(
        self, frames: int, sequences: int, seed: int, subject_fraction: float = 1.0, without: str = "",
        laboratories: tuple[str, ...] = (),
    ) -> Callable[[int], LiftBatch]:  # fmt: skip
        """Return a function from a training step to its batch, of some of the subjects (see `MotionData`)."""
        return self._training(frames, sequences, seed, subject_fraction, without, laboratories)

    def _batches(
        self, frames: int, sequences: int, seed: int, subject_fraction: float, without: str,
        laboratories: tuple[str, ...],
    ) -> Callable[[int], LiftBatch]:  # fmt: skip
        subjects = sorted({clip.subject for clip in self._clips.clips("train")})
        random.Random(seed).shuffle(subjects)
        left_out = (*subjects[max(1, round(subject_fraction * len(subjects))) :], *([without] if without else []))
        if unknown := set(laboratories) - set(map(laboratory, subjects)):
            raise UsageError(f"--mocap: contains no training subject of the laboratory {min(unknown)}")
        if laboratories:
            left_out += tuple(name for name in subjects if laboratory(name) not in laboratories)
        config = MocapConfig(
            mocap=self._files, frames=(frames,), batch_frames=frames * sequences, without=left_out,
            synthesis=SynthesisConfig(equal_laboratories=bool(laboratories)),
        )  # fmt: skip
        return functools.lru_cache(CACHED_BATCHES)(MocapSource(config, seed).batch)

    def evaluation(self, part: str, condition: str, frames: int) -> Iterator[LiftBatch]:
        """Yield fixed batches of a part, "train" or "validation", in sequences of at most `frames` frames.

        The 2D, `condition`, is "gt" (exact), "noisy" (with errors) or "detector" (skeleton and errors of a detector).
        """
        return evaluation_batches(self._clips.clips(part), condition=condition, frames=frames)

    def of_subject(self, name: str, condition: str, frames: int) -> Iterator[LiftBatch]:
        """Yield fixed batches of one training subject; 2D is "gt", "noisy" or "detector"."""
        clips = [clip for clip in self._clips.clips("train") if clip.subject == name]
        if not clips:
            raise UsageError(f"--mocap: no training subject is named {name}")
        return evaluation_batches(clips, condition=condition, frames=frames)

    def groups(self, by: str, condition: str, frames: int) -> Iterator[GroupedBatches]:
        """Yield fixed batches of the validation subjects, grouped by a property of the clips; see `evaluation`.

        It is "subject", "body" (laboratory and subject), "exercise" (of UI-PRMD), "size" or "speed" (mean of the
        joints).
        """
        name_of = GROUPINGS[by]
        members: dict[str, list[Clip]] = {}
        for clip in self._clips.clips("validation"):
            members.setdefault(name_of(clip), []).append(clip)
        for group in sorted(members):
            yield GroupedBatches(group, evaluation_batches(members[group], condition=condition, frames=frames))


def _exercise(clip: Clip) -> str:
    """Return the exercise of a UI-PRMD clip, m01 to m10, or `CMU` for other clips."""
    parts = clip.name.split("_")
    return parts[1] if clip.subject.startswith("uiprmd-") else "CMU"


def _size(clip: Clip) -> str:
    """Return the body size of a clip, such as "1.65 m": head, trunk, thigh and shank, rounded to 5 cm."""
    bones = [np.linalg.norm(clip.points[:, a] - clip.points[:, b], axis=-1) for a, b in BODY]
    return f"{round(float(np.median(np.sum(bones, axis=0))) * 20) / 20:.2f} m"


def _speed(clip: Clip) -> str:
    """Return the speed class of a clip by its mean joint speed, such as "2 slow"."""
    moved = np.linalg.norm(np.diff(clip.points, axis=0), axis=-1).mean(axis=-1) / np.diff(clip.times)
    number, name = next(
        (i, name) for i, (name, below) in enumerate(SPEEDS.items(), start=1) if float(moved.mean()) < below
    )
    return f"{number} {name}"


GROUPINGS: dict[str, Callable[[Clip], str]] = {
    "subject": lambda clip: clip.subject,
    "body": lambda clip: f"{laboratory(clip.subject)} {clip.subject}",
    "exercise": _exercise,
    "size": _size,
    "speed": _speed,
}
