"""Training batches for `pose-train` from motion capture observed by virtual cameras."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pose.errors import UsageError
from pose.sequences import LiftBatch
from pose_datasets.dialects import apply_dialect_to_batches, level
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches, hard_batches

FRAMES, BATCH_FRAMES = (27, 27, 81), 1728  # default lengths of a sequence, and frames of a batch


@dataclass(frozen=True, kw_only=True)
class MocapConfig:
    """Settings of the batches from motion capture.

    At equal cost, short sequences contain more people, poses and cameras; long sequences contain more context.

    Attributes:
        mocap: Path of the file from `pose-prepare`, or several paths separated by commas.
        frames: Possible lengths of a sequence; one is sampled per step. Repeat a value to sample it more often.
        batch_frames: Total number of frames of a batch.
        without: Training subjects to exclude, by name or pattern ("uiprmd-*"). This allows measurements on kinds of
            motion that are not in the training data. Validation and test subjects are not excluded.
        synthesis: Augmentation of the clips.
    """

    mocap: str = ""
    frames: tuple[int, ...] = FRAMES
    batch_frames: int = BATCH_FRAMES
    without: tuple[str, ...] = ()
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)

    def __post_init__(self) -> None:
        if not self.frames or min(self.frames) < 3 or max(self.frames) > self.batch_frames:
            raise ValueError(f"data.frames: must be from 3 to batch_frames ({self.batch_frames}), got {self.frames}")


class MocapSource:
    """Batches of the training subjects (a `pose.training.trainer.BatchSource`), and fixed evaluation sets."""

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._clips = [clip for path in config.mocap.split(",") for clip in load_clips(Path(path))]
        self._check_without()
        self._synthesis = Synthesis(self.clips("train"), config=config.synthesis, seed=seed)

    def clips(self, part: str) -> list[Clip]:
        """Return the clips of "train" (without excluded subjects), "validation" or "test"."""
        clips = split(self._clips, part)
        if part != "train":
            return clips
        return [clip for clip in clips if not any(fnmatchcase(clip.subject, name) for name in self._config.without)]

    def _check_without(self) -> None:
        """Check the excluded subjects.

        Raises:
            UsageError: If a name excludes no subject, for example a misspelt one, or no subject is left.
        """
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
        """Return fixed sets by name: `gt` with exact 2D, and `detector` with the skeleton and errors of a detector."""
        return {
            condition: evaluation_batches(self.clips(part), condition=condition, config=self._config.synthesis)
            for condition in ("gt", "detector")
        }

    def calibration(self) -> list[Iterator[LiftBatch]]:
        """Return sets of the validation subjects for the calibration of sigma.

        The four sets have exact 2D, detected 2D, detected 2D with scores that do not reflect errors, and unusual poses.
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


def is_ui_prmd(clip: Clip) -> bool:
    """Return whether the clip is from UI-PRMD."""
    return clip.subject.startswith("uiprmd-")
