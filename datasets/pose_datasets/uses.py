"""What commands do with a data set: the options of its subcommands, and what they need of it.

This module has no heavy imports.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.utils.options import REQUIRED, Options, option, overwrite_option, quiet_option

if TYPE_CHECKING:
    from pose.structures.labelled import LabelledSequence
    from pose.training.evaluation.results import Benchmark
    from pose.training.evaluation.scores import Averaging

Log = Callable[[str], None]
PREPARED_FOLDER = "the folder for the prepared files"
CLIPS_FILE = "file of clips to write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation(Options):
    """Options of a subcommand of `pose-prepare`, which converts one data set."""

    source: str = option(REQUIRED, "file or folder of the data set, as published")
    out: str = option(REQUIRED, "the file to write", metavar="FILE")
    overwrite: bool = overwrite_option("existing files")
    quiet: bool = quiet_option()

    @property
    def sources(self) -> list[Path]:
        """Paths of the input, which must exist."""
        return [Path(self.source)]

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes; by default `out`."""
        return [Path(self.out)]

    @abstractmethod
    def prepare(self, log: Log) -> None:
        """Convert the data set in `source`, which exists, to `out`, and `log` lines about the result."""


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """Data and protocol of an evaluation."""

    sequences: "list[LabelledSequence]"  # sequences with ground truth
    benchmark: "Benchmark"  # name and protocol of the evaluation, for the tables of results
    fps: float  # frame rate of the sequences, frames/s
    slug: str  # part of the default name of the results folder
    centred: bool = True  # whether the pelvis of predictions is moved to the origin before the errors are computed


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledEvaluation(Options):
    """Options of a subcommand of `pose-eval` that evaluates on sequences with ground truth."""

    @abstractmethod
    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""


def make_benchmark(
    name: str,
    protocol: str,
    input_2d: str,
    sequences: "list[LabelledSequence]",
    averaging: "Averaging",
    groups: tuple[str, ...],
) -> "Benchmark":
    """Describe a benchmark for the tables of results, with "actions" or "frames" as averaging."""
    from pose.training.evaluation.results import Benchmark
    from pose.training.evaluation.scores import MEASURES, THRESHOLD_MEASURES

    frames = sum(int(sequence.counted.sum()) for sequence in sequences)
    if not frames:
        raise PoseError(f"{name}: no frame has ground truth")
    actions = {sequence.action for sequence in sequences}
    subjects = ", ".join(dict.fromkeys(sequence.subject for sequence in sequences))
    actions_text = (
        f"{len(actions)} of {len(groups)} actions, " if averaging == "actions" and len(actions) < len(groups) else ""
    )
    measures = (
        (*MEASURES, *THRESHOLD_MEASURES) if averaging == "frames" else tuple(MEASURES)
    )  # only MPI-INF-3DHP uses PCK and AUC
    return Benchmark(
        name, protocol, input_2d, averaging, groups, measures, f"{subjects}; {actions_text}{frames:,} frames"
    )
