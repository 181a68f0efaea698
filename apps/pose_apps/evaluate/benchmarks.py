"""The benchmarks of `pose-eval`: their options, and the sequences that these describe.

A new one is its reader in `pose_datasets`, two functions here and a line in `BENCHMARKS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jsonargparse import ArgumentParser, Namespace
from pose_datasets import human36m as h36m
from pose_datasets import mpi_inf_3dhp as mpi

from pose.errors import UsageError

if TYPE_CHECKING:
    from pose.evaluation.results import Benchmark
    from pose.evaluation.scores import Averaging
    from pose.labelled import LabelledSequence


@dataclass(frozen=True, slots=True)
class Task:
    """What to evaluate on. slug: names the folder of the results. fps: of the sequences."""

    sequences: "list[LabelledSequence]"
    benchmark: "Benchmark"
    fps: float
    slug: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """Sequences with ground truth as a subcommand: what it is for, its own options, and the task they describe."""

    purpose: str
    add: Callable[[ArgumentParser], None]
    load: Callable[[Namespace], Task]


def add_human36m(command: ArgumentParser) -> None:
    """The options of Human3.6M."""
    add = command.add_argument
    add("--protocol", type=str, required=True, choices=("V", "M"), help="V: metric camera space; M: 2.5D image space")
    add("--2d", dest="input_2d", type=str, help="protocol V: gt or cpn (default); protocol M has one 2D, its own")
    add("--data", type=str, required=True, metavar="DIR", help="folder with the prepared files, see docs/data.md")
    add("--subjects", type=str, help="protocol V: test subjects, by default S9,S11")
    add("--actions", type=str, help="protocol V: some of the 15 actions, separated by commas")


def human36m(options: Namespace) -> Task:
    """Protocol V or M. Raises UsageError for an option of the other one."""
    folder = Path(options.data)
    if options.protocol == "M":
        for name, value in (("2d", options.input_2d), ("subjects", options.subjects), ("actions", options.actions)):
            if value is not None:
                raise UsageError(f"--{name} belongs to protocol V; protocol M has its own 2D, subjects and actions")
        from pose_datasets.human36m_motionbert import load_test

        return _human36m(load_test(folder), "M", "stacked hourglass")
    detections = options.input_2d or "cpn"
    subjects = _chosen("subjects", options.subjects, h36m.SUBJECTS) or h36m.TEST_SUBJECTS
    actions = _chosen("actions", options.actions, h36m.ACTIONS) or h36m.ACTIONS
    return _human36m(h36m.load_sequences(folder, detections, subjects, actions), "V", detections)


def _human36m(sequences: "list[LabelledSequence]", protocol: str, input_2d: str) -> Task:
    benchmark = _benchmark("Human3.6M", protocol, input_2d, sequences, "actions", h36m.ACTIONS)
    return Task(sequences, benchmark, h36m.FPS, f"human36m-{protocol}-{input_2d.replace(' ', '-')}")


def add_mpi_inf_3dhp(command: ArgumentParser) -> None:
    """The options of MPI-INF-3DHP."""
    add = command.add_argument
    add("--data", type=str, required=True, metavar="DIR", help="folder with TS1 ... TS6, see docs/data.md")
    add("--truth", type=str, default=mpi.TRUTHS[0], choices=mpi.TRUTHS, help="people of one height, or of their own")
    add("--fps", type=float, default=mpi.DEFAULT_FPS, help="frames a second; the files do not say")


def mpi_inf_3dhp(options: Namespace) -> Task:
    """The test set of MPI-INF-3DHP, with its own 2D."""
    if not options.fps > 0:
        raise UsageError(f"--fps: expected a number above 0, got {options.fps}")
    sequences = mpi.load_sequences(Path(options.data), options.truth, options.fps)
    groups = mpi.SEQUENCES
    benchmark = _benchmark("MPI-INF-3DHP", options.truth, "annotated", sequences, "frames", groups)
    return Task(sequences, benchmark, options.fps, f"mpi-inf-3dhp-{options.truth}")


def add_sequence(command: ArgumentParser) -> None:
    """The options of sequences from anywhere."""
    add = command.add_argument
    add("--keypoints", type=str, required=True, help="an .npz as pose-lift takes it, or a folder of them")
    add("--gt", type=str, required=True, help="the .npz with its ground truth, or a folder of the same names")


def sequence(options: Namespace) -> Task:
    """Any sequence with ground truth."""
    from pose_datasets.sequences import load_sequences

    sequences = load_sequences(Path(options.keypoints), Path(options.gt))
    benchmark = _benchmark(
        str(Path(options.gt).name), "", "given", sequences, "frames", tuple(one.action for one in sequences)
    )
    steps = np.concatenate([np.diff(one.observed.times) for one in sequences])
    return Task(sequences, benchmark, float(1 / np.median(steps)) if len(steps) else 1.0, Path(options.keypoints).stem)


BENCHMARKS = {
    "human36m": Labelled("Human3.6M, protocol V or M.", add_human36m, human36m),
    "mpi-inf-3dhp": Labelled("The MPI-INF-3DHP test set.", add_mpi_inf_3dhp, mpi_inf_3dhp),
    "sequence": Labelled("Keypoints as pose-lift takes them, with ground truth.", add_sequence, sequence),
}


def _chosen(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if name not in known:
            raise UsageError(f"--{option}: unknown {name!r}; known: {', '.join(known)}")
    return names


def _benchmark(
    name: str,
    protocol: str,
    input_2d: str,
    sequences: "list[LabelledSequence]",
    averaging: "Averaging",
    groups: tuple[str, ...],
) -> "Benchmark":
    from pose.evaluation.results import Benchmark
    from pose.evaluation.table import COLUMNS

    frames = sum(int(one.counted.sum()) for one in sequences)
    actions = {one.action for one in sequences}
    subjects = ", ".join(dict.fromkeys(one.subject for one in sequences))
    part = f"{len(actions)} of {len(groups)} actions, " if averaging == "actions" and len(actions) < len(groups) else ""
    # PCK and AUC are measures of MPI-INF-3DHP; no Human3.6M table has them.
    measures = tuple(one for one in COLUMNS if averaging == "frames" or one not in ("pck", "auc"))
    return Benchmark(name, protocol, input_2d, averaging, groups, measures, f"{subjects}; {part}{frames:,} frames")
