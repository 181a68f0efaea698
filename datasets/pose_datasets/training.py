"""What `pose-train` feeds a lifter with: motion capture seen by virtual cameras."""

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
    """mocap: the file that `pose-prepare` wrote, or several, separated by commas. frames: of each sequence; one of
    these numbers is drawn for each step, repeat one to draw it more often. batch_frames: frames of all sequences of a
    step together. without: training subjects to leave out, by name or pattern ("uiprmd-*"), to find out what somebody
    gets whose kind of motion was never trained on; validation and test subjects stay.

    Short sequences show more different people, poses and cameras for the same work; long ones teach the long view.
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
    """Training batches of the training subjects (a `pose.training.trainer.BatchSource`), and fixed evaluation sets."""

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._clips = [clip for path in config.mocap.split(",") for clip in load_clips(Path(path))]
        self._check_without()
        self._synthesis = Synthesis(self.clips("train"), config=config.synthesis, seed=seed)

    def clips(self, part: str) -> list[Clip]:
        """The clips of "train" (but of whom the configuration leaves out), "validation" or "test"."""
        clips = split(self._clips, part)
        if part != "train":
            return clips
        return [clip for clip in clips if not any(fnmatchcase(clip.subject, name) for name in self._config.without)]

    def _check_without(self) -> None:
        """UsageError for a name that leaves nobody out, as a misspelt one does, and for names that leave nobody."""
        subjects = sorted({clip.subject for clip in split(self._clips, "train")})
        for name in self._config.without:
            if not any(fnmatchcase(subject, name) for subject in subjects):
                raise UsageError(f"data.without: no training subject is named {name}; known: {', '.join(subjects)}")
        if not self.clips("train"):
            raise UsageError("data.without: leaves no training subject")

    def batch(self, step: int) -> LiftBatch:
        """The training batch of one step; the same number gives the same batch."""
        frames = random.Random(f"{self._seed}/{step}").choice(self._config.frames)
        return self._synthesis.batch(self._config.batch_frames // frames, frames, step)

    def evaluation(self, part: str) -> dict[str, Iterator[LiftBatch]]:
        """Fixed sets by name: `gt` (exact 2D), `detector` (a detector's skeleton and errors)."""
        return {
            condition: evaluation_batches(self.clips(part), condition=condition, config=self._config.synthesis)
            for condition in ("gt", "detector")
        }

    def calibration(self) -> list[Iterator[LiftBatch]]:
        """What sigma is calibrated on: validation subjects of the CMU database, seen exactly and by a detector, in a
        dialect that tells nothing of errors as well, and in unusual poses.

        UI-PRMD's people, who stand upright and face the camera more, are left out where there are others: better too
        modest about the easy than too sure about strangers.
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
    """Whether somebody of UI-PRMD moves there, and not of the CMU database."""
    return clip.subject.startswith("uiprmd-")
