"""Training batches for `pose-train` from motion capture observed by virtual cameras."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pose.errors import UsageError
from pose.structures.sequences import LiftBatch
from pose_datasets.dialects import apply_dialect_to_batches, level
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
        """Return fixed evaluation batches of one part of the data, with about the same duration of each subject.

        Args:
            part: "train", "validation" or "test".

        Returns:
            Batches by source of the 2D joints: `gt` (exact), and `detector` (skeleton and errors of a detector).
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
