"""The data sets, each registered once: what `pose-prepare`, `pose-eval` and `pose-train` can do with it.

A new data set is a file with its reader and its classes of options, and a line in `DATA_SETS`. Classes are named by
module and imported when a command needs them: a list of data sets needs neither NumPy nor the other data sets.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pose_datasets.uses import LabelledEvaluation, Preparation


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
