"""Batches for `pose-train` from motion capture seen by virtual cameras."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pose.errors import UsageError
from pose.sequences import LiftBatch
from pose_datasets.dialects import in_dialect, level
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches, hard_batches


@dataclass(frozen=True, kw_only=True)
class MocapConfig:
    """Settings of the batches. Short sequences contain more people, poses and cameras at equal cost; long ones more
    context.

    Attributes:
        mocap: The file from `pose-prepare`, or several, separated by commas.
        frames: Possible lengths of a sequence; one is sampled per step. Repeat a value to sample it more often.
        batch_frames: Frames of all sequences of a step together.
        without: Training subjects to leave out, by name or pattern ("uiprmd-*"), to measure the error on kinds of
            motion that are not trained; validation and test subjects stay.
    """

    mocap: str = ""
    frames: tuple[int, ...] = (27, 27, 81)
    batch_frames: int = 1728
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
        """The clips of "train" (without excluded subjects), "validation" or "test"."""
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
        """The training batch of a step; equal steps give equal batches."""
        frames = random.Random(f"{self._seed}/{step}").choice(self._config.frames)
        return self._synthesis.batch(self._config.batch_frames // frames, frames, step)

    def evaluation(self, part: str) -> dict[str, Iterator[LiftBatch]]:
        """Fixed sets by name: `gt` (exact 2D), `detector` (a detector's skeleton and errors)."""
        return {
            condition: evaluation_batches(self.clips(part), condition=condition, config=self._config.synthesis)
            for condition in ("gt", "detector")
        }

    def calibration(self) -> list[Iterator[LiftBatch]]:
        """Sets for the calibration of sigma: validation subjects of the CMU database, with exact and detected 2D.

        Also with scores that do not reflect errors, and with unusual poses. UI-PRMD's subjects, who stand upright and
        face the camera more, are excluded if there are others: sigma should be too large for easy cases rather than too
        small for unseen subjects.
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
            in_dialect(level_only, level(1.0)),
            hard_batches(people, condition="gt", count=2, config=config),
        ]


def is_ui_prmd(clip: Clip) -> bool:
    """Whether the clip is from UI-PRMD."""
    return clip.subject.startswith("uiprmd-")
