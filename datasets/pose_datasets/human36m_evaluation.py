"""Evaluation on Human3.6M with the protocol of VideoPose3D (V) or MotionBERT (M)."""

from dataclasses import dataclass
from pathlib import Path

from pose.errors import UsageError
from pose.structures.labelled import LabelledSequence
from pose.utils.options import REQUIRED, option
from pose_datasets import human36m, human36m_motionbert
from pose_datasets.catalogue import EvaluationTask, LabelledEvaluation, make_benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class Human36mEvaluation(LabelledEvaluation):
    """Options of `pose-eval human36m`; some apply to one protocol only."""

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
            return _task(human36m_motionbert.load_test(folder), "M", "stacked hourglass")
        detections = self.input_2d or "cpn"
        subjects = _chosen("subjects", self.subjects, human36m.SUBJECTS) or human36m.TEST_SUBJECTS
        actions = _chosen("actions", self.actions, human36m.ACTIONS) or human36m.ACTIONS
        return _task(human36m.load_sequences(folder, detections, subjects, actions), "V", detections)


def _task(sequences: list[LabelledSequence], protocol: str, input_2d: str) -> EvaluationTask:
    benchmark = make_benchmark("Human3.6M", protocol, input_2d, sequences, "actions", human36m.ACTIONS)
    return EvaluationTask(sequences, benchmark, human36m.FPS, f"human36m-{protocol}-{input_2d.replace(' ', '-')}")


def _chosen(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if name not in known:
            raise UsageError(f"--{option}: unknown {name!r}; known: {', '.join(known)}")
    return names
