"""What `pose-train` feeds a lifter with: motion capture seen by virtual cameras."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datasets.mocap import Clip, load_clips, split
from datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches
from pose.types import LiftBatch


@dataclass(frozen=True, kw_only=True)
class MocapConfig:
    """mocap: the file that `pose-prepare mocap` wrote. batch: sequences a step. frames: of each sequence."""

    mocap: str = ""
    batch: int = 64
    frames: int = 81
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.frames < 3:
            raise ValueError(f"data: batch must be at least 1, frames at least 3, got {self.batch} and {self.frames}")


class MocapSource:
    """Training batches of the training subjects (a `pose.lifter.training.BatchSource`), and fixed evaluation sets."""

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._clips = load_clips(Path(config.mocap))
        self._synthesis = Synthesis(self.clips("train"), config=config.synthesis, seed=seed)

    def clips(self, part: str) -> list[Clip]:
        """The clips of "train", "validation" or "test"."""
        return split(self._clips, part)

    def batch(self, step: int) -> LiftBatch:
        """The training batch of one step; the same number gives the same batch."""
        return self._synthesis.batch(self._config.batch, self._config.frames, step)

    def evaluation(self, part: str) -> dict[str, Iterator[LiftBatch]]:
        """Fixed sets by name: `gt` (exact 2D), `detector` (a detector's skeleton and errors)."""
        return {
            condition: evaluation_batches(self.clips(part), condition=condition, config=self._config.synthesis)
            for condition in ("gt", "detector")
        }
