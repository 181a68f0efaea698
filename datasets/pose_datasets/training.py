"""Training batches for `pose-train` from motion capture observed by virtual cameras.

A dialect maps scores (..., T, 17) in [0, 1] to other scores of the same joints. A score of 0 (not detected) stays 0.
These dialects are fixed, for evaluation; training uses random ones (`pose.training.trainer`).
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32
from pose_datasets.mocap import Clip, laboratory, load_clips, split
from pose_datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches, hard_batches

FRAMES, BATCH_FRAMES = (27, 27, 81), 1728  # default lengths of a sequence, and frames of a batch


@dataclass(frozen=True, kw_only=True)
class MocapConfig:
    """Settings of the batches from motion capture.

    At equal cost, short sequences contain more people, poses and cameras; long sequences contain more context.
    """

    mocap: str = ""  # path of the file from `pose-prepare`, or several paths separated by commas
    # Possible numbers of frames of a sequence; one is sampled per training step. Repeat a value to sample it more
    # often.
    frames: tuple[int, ...] = FRAMES
    batch_frames: int = BATCH_FRAMES  # number of frames of a batch, summed over its sequences
    # Training subjects to exclude, by name or pattern ("uiprmd-*"). This allows measurements on kinds of motion that
    # are not in the training data. Validation and test subjects are not excluded.
    without: tuple[str, ...] = ()
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)  # augmentation of the clips

    def __post_init__(self) -> None:
        if not self.frames or min(self.frames) < 3 or max(self.frames) > self.batch_frames:
            raise ValueError(f"data.frames: must be from 3 to batch_frames ({self.batch_frames}), got {self.frames}")


class MocapSource:
    """Batches of the training subjects (a `pose.training.batches.BatchSource`), and fixed evaluation sets."""

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._clips = [clip for path in config.mocap.split(",") for clip in load_clips(Path(path))]
        self._check_without()
        self._synthesis = Synthesis(self.clips("train"), config=config.synthesis, seed=seed)

    def clips(self, part: str) -> list[Clip]:
        """Return the clips of one part of the data: "train" (without excluded subjects), "validation" or "test"."""
        clips = split(self._clips, part)
        if part != "train":
            return clips
        return [clip for clip in clips if not any(fnmatchcase(clip.subject, name) for name in self._config.without)]

    def _check_without(self) -> None:
        """Check the excluded subjects."""
        subjects = sorted({clip.subject for clip in split(self._clips, "train")})
        for name in self._config.without:
            if not any(fnmatchcase(subject, name) for subject in subjects):
                raise UsageError(f"data.without: no training subject is named {name}; known: {', '.join(subjects)}")
        if not self.clips("train"):
            raise UsageError("data.without: excludes all training subjects")

    def batch(self, step: int) -> LiftBatch:
        """Return the training batch of a step. Equal steps give equal batches."""
        frames = random.Random(f"{self._seed}/{step}").choice(self._config.frames)
        return self._synthesis.batch(self._config.batch_frames // frames, frames, step)

    def evaluation(self, part: str) -> dict[str, Iterator[LiftBatch]]:
        """Return fixed batches of "train", "validation" or "test", with about the same duration of each subject.

        Their keys are the 2D: `gt` (exact), and `detector` (skeleton and errors of a detector).
        """
        clips = _minute_of_each(self.clips(part))
        return {
            condition: evaluation_batches(clips, condition=condition, config=self._config.synthesis)
            for condition in ("gt", "detector")
        }

    def calibration(self) -> list[Iterator[LiftBatch]]:
        """Return four sets of batches of the validation subjects, for the calibration of sigma, the uncertainty.

        In this order, they have exact 2D joints, detected ones, detected ones whose scores are all 1, and exact ones of
        unusual poses.

        Subjects of UI-PRMD are excluded if there are others, since they mostly stand upright and face the camera. With
        these easy cases, sigma would become too small for unseen subjects.
        """
        clips, config = self.clips("validation"), self._config.synthesis
        people = [clip for clip in clips if not is_ui_prmd(clip)] or clips
        exact, detected, level_only = (
            evaluation_batches(people, condition=condition, config=config)
            for condition in ("gt", "detector", "detector")
        )
        return [
            exact,
            detected,
            apply_dialect_to_batches(level_only, level(1.0)),
            hard_batches(people, condition="gt", count=2, config=config),
        ]


def _minute_of_each(clips: list[Clip]) -> list[Clip]:
    """Return evenly spaced clips of each subject, about a minute, so that no subject dominates a mean over frames."""
    chosen = []
    for subject in sorted({clip.subject for clip in clips}):
        own = [clip for clip in clips if clip.subject == subject]
        seconds = sum(clip.times[-1] - clip.times[0] for clip in own)
        chosen += own[:: max(1, round(seconds / 60))]
    return chosen


def is_ui_prmd(clip: Clip) -> bool:
    """Return whether the clip is from the data set UI-PRMD, by the name of its subject."""
    return laboratory(clip.subject) == "uiprmd"


Dialect = Callable[[F32], NDArray[np.floating]]

_MIN_SCORE = 0.01
# Scores at the cumulative fractions `_FRACTIONS` of the scores above 0. `_SIMULATED_SCORES` are those of
# `pose_datasets.errors` in training; the others were measured on three clips
# at commit aeebe8c6.
_FRACTIONS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_SIMULATED_SCORES = (0.02, 0.04, 0.08, 0.12, 0.58, 0.77, 0.86, 0.91, 0.93, 1.0)
_NETWORK_SCORES = {
    "BlazePose": (0.01, 0.04, 0.13, 0.68, 0.94, 0.989, 0.999, 1.0, 1.0, 1.0),
    "MoveNet": (0.25, 0.30, 0.37, 0.43, 0.57, 0.75, 0.84, 0.88, 0.91, 0.95),
    "YOLO-pose": (0.01, 0.012, 0.018, 0.53, 0.958, 0.977, 0.995, 0.995, 1.0, 1.0),
    # From papers and user reports, not measured here.
    "RTMPose-like": (0.15, 0.25, 0.35, 0.45, 0.6, 0.75, 0.85, 0.92, 0.95, 1.0),
    "OpenPose-like": (0.05, 0.12, 0.25, 0.4, 0.6, 0.75, 0.83, 0.88, 0.9, 0.95),
}


def level(value: float) -> Dialect:
    """Return a function that replaces all detector scores by the constant `value`."""
    return lambda scores: np.full_like(scores, value)


def power(gamma: float) -> Dialect:
    """Return a function that raises detector scores in [0, 1] to the power `gamma`."""
    return lambda scores: scores**gamma


def by_joint(seed: int) -> Dialect:
    """Return a function that multiplies scores (..., 17) by a factor of 0.4 to 1 per joint, equal for equal seeds."""
    factors = np.random.default_rng(seed).uniform(0.4, 1, 17)
    return lambda scores: scores * factors


def steps(count: int) -> Dialect:
    """Return a function that rounds detector scores in [0, 1] up to multiples of 1 / `count`."""
    return lambda scores: np.ceil(scores * count) / count


def noisy(seed: int) -> Dialect:
    """Return a function that multiplies each score by a factor of 0.5 to 1, equal for equal seeds."""
    return lambda scores: scores * np.random.default_rng(seed).uniform(0.5, 1, scores.shape)


def network(name: str) -> Dialect:
    """Return a function that replaces scores by those of the same rank of a network, such as "MoveNet"."""
    network_scores = _NETWORK_SCORES[name]
    return lambda scores: np.interp(np.interp(scores, _SIMULATED_SCORES, _FRACTIONS), _FRACTIONS, network_scores)


NETWORKS: dict[str, Dialect] = {name: network(name) for name in _NETWORK_SCORES} | {"all 1": level(1.0)}
CHANGES: dict[str, Dialect] = {
    **{f"level {value}": level(value) for value in (1.0, 0.95, 0.9, 0.7, 0.5, 0.4)},
    **{f"power {gamma}": power(gamma) for gamma in (0.3, 0.6, 1.7, 3.0)},
    "by joint": by_joint(0),
    "by joint, others": by_joint(1),
    "3 steps": steps(3),
    "noise": noisy(0),
}


def apply_dialect(dialect: Dialect, scores: F32) -> F32:
    """Change the scale of scores (..., T, 17): 0 (not detected) stays 0, others are clamped to [0.01, 1]."""
    return np.where(scores > 0, np.clip(dialect(scores), _MIN_SCORE, 1), 0).astype(np.float32)


def apply_dialect_to_batches(batches: Iterator[LiftBatch], dialect: Dialect) -> Iterator[LiftBatch]:
    """Yield the batches with scores changed by the function `dialect`, as by `apply_dialect`."""
    for batch in batches:
        yield replace(batch, scores=apply_dialect(dialect, batch.scores))
