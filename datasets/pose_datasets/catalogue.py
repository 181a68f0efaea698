"""The data sets, each registered once: what `pose-prepare`, `pose-eval` and `pose-train` can do with it.

A new data set is a file with its reader and its classes of options, and a line in `DATA_SETS`. Classes are named by
module and imported when a command needs them: a list of data sets needs neither NumPy nor the other data sets.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class ToPrepare:
    """A subcommand of `pose-prepare`."""

    purpose: str
    preparation: str  # subclass of `Preparation`, as "module:Class"

    def options(self) -> type[Preparation]:
        """Import the class of its options."""
        options: type[Preparation] = _load(self.preparation)
        assert issubclass(options, Preparation), self.preparation
        return options


@dataclass(frozen=True, slots=True)
class ToEvaluate:
    """A subcommand of `pose-eval`."""

    purpose: str
    evaluation: str  # subclass of `LabelledEvaluation`, as "module:Class"

    def options(self) -> type[LabelledEvaluation]:
        """Import the class of its options."""
        options: type[LabelledEvaluation] = _load(self.evaluation)
        assert issubclass(options, LabelledEvaluation), self.evaluation
        return options


@dataclass(frozen=True, slots=True)
class ToTrain:
    """Data for `pose-train lifter`, selected if one field of its configuration is not empty."""

    key: str  # name of the configuration, as in `--data.mocap`
    files: str  # name of the field with the files
    metavar: str  # placeholder of this field's value in the help, such as "FILE"
    purpose: str  # help text of this field
    config: str  # class of the configuration, as "module:Class"
    source: str  # class of the data, constructed with a configuration and a seed, as "module:Class"

    def config_class(self) -> type:
        """Import the class of its configuration."""
        return _load(self.config)

    def source_class(self) -> type:
        """Import the class of its data."""
        return _load(self.source)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The uses of a data set."""

    prepare: ToPrepare | None = None
    evaluate: ToEvaluate | None = None
    train: ToTrain | None = None


DATA_SETS: dict[str, DataSet] = {
    "human36m": DataSet(
        ToPrepare(
            "Human3.6M as in VideoPose3D (protocol V): 3D and ground-truth 2D from the raw release.",
            "human36m_release:Human36mPreparation",
        ),
        ToEvaluate("Human3.6M, protocol V or M.", "human36m_evaluation:Human36mEvaluation"),
        ToTrain(
            "human36m", "folder", "DIR", "Human3.6M instead (docs/reference/benchmark-data.md)",
            "human36m_training:Human36mConfig", "human36m_training:Human36mSource",
        ),
    ),
    "human36m-m": DataSet(
        ToPrepare(
            "Human3.6M as in MotionBERT (protocol M): its pickle, checked, as plain arrays.",
            "human36m_motionbert:MotionBertPreparation",
        )
    ),
    "mpi-inf-3dhp": DataSet(
        ToPrepare(
            "The annotations of the MPI-INF-3DHP test set, without its images.",
            "mpi_inf_3dhp:MpiInf3dhpPreparation",
        ),
        ToEvaluate("The MPI-INF-3DHP test set.", "mpi_inf_3dhp:MpiInf3dhpEvaluation"),
    ),
    "mocap": DataSet(
        ToPrepare("Motion capture for training the lifter.", "mocap:MocapPreparation"),
        train=ToTrain(
            "data", "mocap", "FILE", "motion capture, written by `pose-prepare mocap`",
            "training:MocapConfig", "training:MocapSource",
        ),
    ),
    "ui-prmd": DataSet(ToPrepare("Exercises of UI-PRMD, from optical markers.", "ui_prmd:UiPrmdPreparation")),
    "ui-prmd-kinect": DataSet(
        ToPrepare("Kinect recordings of UI-PRMD beside their markers, to train on.", "kinect:KinectPreparation")
    ),
    "snu": DataSet(
        ToPrepare("Basketball, table tennis, boxing and walking of SNU, from BVH files.", "snu:SnuPreparation")
    ),
    "markers": DataSet(
        ToPrepare(
            "Motion capture with optical markers of the full-body Plug-in-Gait set.",
            "marker_files:MarkerPreparation",
        )
    ),
    "sequence": DataSet(evaluate=ToEvaluate("2D keypoints with 3D ground truth.", "sequences:SequenceEvaluation")),
}  # fmt: skip


def preparations() -> dict[str, ToPrepare]:
    """Return what `pose-prepare` can convert, by name."""
    return {name: data.prepare for name, data in DATA_SETS.items() if data.prepare}


def evaluations() -> dict[str, ToEvaluate]:
    """Return what `pose-eval` can evaluate on, by name."""
    return {name: data.evaluate for name, data in DATA_SETS.items() if data.evaluate}


def training_data() -> dict[str, ToTrain]:
    """Return what `pose-train lifter` can train on, by name of the configuration. The first one with files is used."""
    return {data.train.key: data.train for data in DATA_SETS.values() if data.train}


def _load(name: str) -> type[Any]:
    module, _, attribute = name.partition(":")
    loaded: type[Any] = getattr(import_module(module if "." in module else f"pose_datasets.{module}"), attribute)
    return loaded
