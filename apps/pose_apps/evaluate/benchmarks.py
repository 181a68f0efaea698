"""The benchmarks of `pose-eval`: their options and sequences.

To add one, write its reader in `pose_datasets`, add a class here, and list the class in `BENCHMARKS`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pose_datasets import human36m as h36m
from pose_datasets import mpi_inf_3dhp as mpi

from pose.errors import PoseError, UsageError
from pose.utils.options import REQUIRED, Options, option

if TYPE_CHECKING:
    from pose.structures.labelled import LabelledSequence
    from pose.training.evaluation.results import Benchmark
    from pose.training.evaluation.scores import Averaging


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """Data and protocol of an evaluation."""

    sequences: "list[LabelledSequence]"  # sequences with ground truth
    benchmark: "Benchmark"  # name and protocol of the evaluation, for the tables of results
    fps: float  # frame rate of the sequences, frames/s
    slug: str  # part of the default name of the results folder
    centred: bool = True  # whether the pelvis of predictions is moved to the origin before the errors are computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Options):
    """Options of a subcommand of `pose-eval` that evaluates on sequences with ground truth."""

    purpose: ClassVar[str]  # help text of the subcommand

    @abstractmethod
    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Human36m(Labelled):
    """Options for Human3.6M with the protocol of VideoPose3D (V) or MotionBERT (M); some apply to one only."""

    purpose = "Human3.6M, protocol V or M."

    protocol: str = option(REQUIRED, "V: metric camera space; M: 2.5D image space", choices=("V", "M"))
    input_2d: str | None = option(
        None, "protocol V: gt or cpn (default); protocol M has only its own 2D", metavar="2D", name="2d"
    )
    data: str = option(REQUIRED, "folder with the prepared files, see docs/reference/benchmark-data.md", metavar="DIR")
    subjects: str | None = option(None, "protocol V: test subjects; default: S9,S11")
    actions: str | None = option(None, "protocol V: some of the 15 actions, separated by commas")

    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""
        folder = Path(self.data)
        if self.protocol == "M":
            for name, value in (("2d", self.input_2d), ("subjects", self.subjects), ("actions", self.actions)):
                if value is not None:
                    raise UsageError(f"--{name} belongs to protocol V; protocol M has its own 2D, subjects and actions")
            from pose_datasets.human36m_motionbert import load_test

            return _human36m(load_test(folder), "M", "stacked hourglass")
        detections = self.input_2d or "cpn"
        subjects = _chosen("subjects", self.subjects, h36m.SUBJECTS) or h36m.TEST_SUBJECTS
        actions = _chosen("actions", self.actions, h36m.ACTIONS) or h36m.ACTIONS
        return _human36m(h36m.load_sequences(folder, detections, subjects, actions), "V", detections)


def _human36m(sequences: "list[LabelledSequence]", protocol: str, input_2d: str) -> EvaluationTask:
    benchmark = make_benchmark("Human3.6M", protocol, input_2d, sequences, "actions", h36m.ACTIONS)
    return EvaluationTask(sequences, benchmark, h36m.FPS, f"human36m-{protocol}-{input_2d.replace(' ', '-')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiInf3dhp(Labelled):
    """Options for the test set of MPI-INF-3DHP, with the 2D keypoints of the data set."""

    purpose = "The MPI-INF-3DHP test set."

    data: str = option(REQUIRED, "folder with TS1 ... TS6, see docs/reference/benchmark-data.md", metavar="DIR")
    truth: str = option(
        mpi.TRUTHS[0], "ground truth scaled to one body height (universal), or unscaled", choices=mpi.TRUTHS
    )
    fps: float = option(mpi.DEFAULT_FPS, "frame rate in frames/s; the files do not contain it")

    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""
        if not self.fps > 0:
            raise UsageError(f"--fps: expected a number above 0, got {self.fps}")
        sequences = mpi.load_sequences(Path(self.data), self.truth, self.fps)
        groups = mpi.SEQUENCES
        benchmark = make_benchmark("MPI-INF-3DHP", self.truth, "annotated", sequences, "frames", groups)
        return EvaluationTask(sequences, benchmark, self.fps, f"mpi-inf-3dhp-{self.truth}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnySequence(Labelled):
    """Options for sequences in files of the user, with 2D keypoints and 3D ground truth."""

    purpose = "2D keypoints with 3D ground truth."

    keypoints: str = option(REQUIRED, "an .npz in the format of pose-lift, or a folder of them")
    gt: str = option(
        REQUIRED, "an .npz with the ground truth, or a folder of them with the names of the keypoint files"
    )

    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""
        from pose_datasets.sequences import load_sequences

        keypoints, truth = Path(self.keypoints), Path(self.gt)
        sequences = load_sequences(keypoints, truth)
        actions = tuple(sequence.action for sequence in sequences)
        steps = np.concatenate([np.diff(sequence.observed.times) for sequence in sequences])
        fps = float(1 / np.median(steps)) if len(steps) else 1.0
        return EvaluationTask(
            sequences, make_benchmark(truth.name, "", "given", sequences, "frames", actions), fps, keypoints.stem
        )


BENCHMARKS: dict[str, type[Labelled]] = {
    "human36m": Human36m,
    "mpi-inf-3dhp": MpiInf3dhp,
    "sequence": AnySequence,
}


def _chosen(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if name not in known:
            raise UsageError(f"--{option}: unknown {name!r}; known: {', '.join(known)}")
    return names


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
