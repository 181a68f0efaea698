"""Errors of each sequence, and mean errors by action, joint and camera.

For each sequence and joint, the sum of errors over frames is stored. The mean over any group of sequences is therefore
an exact mean over frames.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from pose.structures.labelled import LabelledSequence
from pose.structures.skeletons import H36M_NAMES
from pose.structures.types import F32, F64
from pose.training.evaluation import calibration, metrics


class Measure(NamedTuple):
    """An error measure."""

    frames: int  # number of consecutive frames that one error needs
    errors: Callable[..., F64]  # function from predicted and true poses to errors in the unit of `heading`
    heading: str  # heading in tables, with the unit
    decimals: int  # number of decimals in tables


MEASURES = {
    "mpjpe": Measure(1, metrics.position_errors, "MPJPE (mm)", 1),
    "p_mpjpe": Measure(1, metrics.aligned_errors, "P-MPJPE (mm)", 1),
    "n_mpjpe": Measure(1, metrics.scaled_errors, "N-MPJPE (mm)", 1),
    "mpjve": Measure(2, metrics.velocity_errors, "MPJVE (mm/frame)", 2),
    "accel": Measure(3, metrics.acceleration_errors, "Accel (mm/frame²)", 2),
}
# Percentages that are computed from the errors of "mpjpe": name -> heading, decimals.
THRESHOLD_MEASURES = {"pck": ("PCK@150 (%)", 1), "auc": ("AUC (%)", 1)}
_MAX_MEASURE_FRAMES = max(measure.frames for measure in MEASURES.values())
# Frames scored at once, so that intermediate arrays fit into the processor's cache.
_BLOCK_FRAMES = 1024
# The joints of the test script of MPI-INF-3DHP: without pelvis, spine and neck / nose.
PCK_JOINTS = [joint for joint, name in enumerate(H36M_NAMES) if name not in ("pelvis", "spine", "neck")]
# "actions": mean over each action, then over the actions. "frames": mean over all frames.
Averaging = Literal["actions", "frames"]


@dataclass(frozen=True, slots=True)
class SequenceScores:
    """Errors of one sequence."""

    key: str  # key of the sequence
    subject: str  # subject of the sequence
    action: str  # action of the sequence
    camera: str  # camera of the sequence
    frames: int  # number of valid frames
    sums: dict[str, F64]  # sum of the errors of each joint (17,) by measure, in its unit
    counts: dict[str, int]  # number of summed errors per joint, by measure
    below: NDArray[np.int64]  # number of errors of `PCK_JOINTS` below each threshold of 0, 5, ..., 150 mm, (31,)
    over_time: F32  # MPJPE of each frame (T,) in mm; NaN in invalid frames
    calibration: NDArray[np.int64] | None = None  # histogram returned by `pose.training.evaluation.calibration.count`


def score(
    sequence: LabelledSequence, poses: NDArray[np.floating], sigma: F32 | None = None, *, centred: bool = True
) -> SequenceScores:
    """Compute the errors of predicted poses for one sequence, after moving their pelvis to the origin if `centred`."""
    joints = len(H36M_NAMES)
    sums = {name: np.zeros(joints) for name in MEASURES}
    counts = dict.fromkeys(MEASURES, 0)
    below = np.zeros(len(metrics.AUC_THRESHOLDS_MM), np.int64)
    over_time = np.full(len(sequence), np.nan, np.float32)
    calibrated = calibration.count(np.zeros(0), np.zeros(0))
    for start in range(0, len(sequence), _BLOCK_FRAMES):
        block = slice(start, start + _BLOCK_FRAMES)
        for name, errors in _block_errors(sequence, poses, start, centred):
            sums[name] += errors.sum(axis=0)
            counts[name] += len(errors)
            if name == "mpjpe":
                counted = sequence.counted[block]
                over_time[block][counted] = errors.mean(axis=1)
                below += metrics.counts_below(errors[:, PCK_JOINTS])
                if sigma is not None:
                    # The root-relative pelvis has no error and would distort the calibration.
                    calibrated += calibration.count(errors[:, 1:], sigma[block][counted, 1:])
    return SequenceScores(
        sequence.key,
        sequence.subject,
        sequence.action,
        sequence.camera,
        counts["mpjpe"],
        sums,
        counts,
        below,
        over_time,
        None if sigma is None else calibrated,
    )


def _block_errors(
    sequence: LabelledSequence, poses: NDArray[np.floating], start: int, centred: bool
) -> Iterator[tuple[str, F64]]:
    """Yield the errors of each measure for the frames of a block, and for runs of frames that end in the block."""
    first = max(start - _MAX_MEASURE_FRAMES + 1, 0)
    rows = slice(first, start + _BLOCK_FRAMES)
    pred: F64 = poses[rows].astype(np.float64)
    if centred:
        pred = metrics.root_relative(pred)
    true: F64 = metrics.root_relative(sequence.truth[rows].astype(np.float64))
    counted = sequence.counted[rows]
    for name, measure in MEASURES.items():
        skip = max(start - first - measure.frames + 1, 0)
        yield name, _errors(measure.errors, measure.frames, pred[skip:], true[skip:], counted[skip:])


def _errors(measure: Callable[..., F64], needed: int, pred: F64, true: F64, counted: NDArray[np.bool_]) -> F64:
    """Return the errors (N, 17) of a measure, one row per valid frame or per run of `needed` valid frames."""
    if counted.all():
        return measure(pred, true)
    if needed == 1:
        return measure(pred[counted], true[counted])
    return measure(pred, true)[metrics.consecutive(counted, needed)]


class Summary(TypedDict):
    """Averages of an evaluation in the unit of each measure; None without valid frames."""

    frames: int  # number of valid frames
    sequences: int
    average: dict[str, float | None]  # overall average by measure
    actions: dict[str, dict[str, float | None]]  # averages by action and measure
    joints: dict[str, dict[str, float | None]]  # averages by joint and measure
    cameras: dict[str, dict[str, float | None]]  # averages by camera and measure
    subjects: dict[str, dict[str, float | None]]  # averages by subject and measure


def summarize(scores: Sequence[SequenceScores], averaging: Averaging) -> Summary:
    """Average the errors of all sequences: overall, and by action, joint, camera and subject; None if empty."""
    actions = _groups(scores, "action")
    return {
        "frames": sum(one.frames for one in scores),
        "sequences": len(scores),
        "average": _average(scores, averaging),
        "actions": {name: {**_pooled(group), "frames": _frames(group)} for name, group in actions.items()},
        "joints": _by_joint(scores, averaging),
        "cameras": {name: _average(group, averaging) for name, group in _groups(scores, "camera").items()},
        "subjects": {name: _average(group, averaging) for name, group in _groups(scores, "subject").items()},
    }


def _groups(scores: Iterable[SequenceScores], field: str) -> dict[str, list[SequenceScores]]:
    groups: dict[str, list[SequenceScores]] = {}
    for one in scores:
        groups.setdefault(getattr(one, field), []).append(one)
    return groups


def _frames(scores: Iterable[SequenceScores]) -> int:
    return sum(one.frames for one in scores)


def _joint_means(scores: Sequence[SequenceScores], name: str) -> F64:
    """Return the mean error of each joint (17,) over all frames of the sequences; NaN without frames."""
    count = sum(one.counts[name] for one in scores)
    total = np.sum([one.sums[name] for one in scores], axis=0)
    return total / count if count else np.full(len(H36M_NAMES), np.nan)


def _pooled(scores: Sequence[SequenceScores]) -> dict[str, float | None]:
    values = {name: float(_joint_means(scores, name).mean()) for name in MEASURES}
    below = np.sum([one.below for one in scores], axis=0)
    errors = _frames(scores) * len(PCK_JOINTS)
    values |= {"pck": metrics.pck(below, errors), "auc": metrics.auc(below, errors)}
    return {name: _number(value) for name, value in values.items()}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _average(scores: Sequence[SequenceScores], averaging: Averaging) -> dict[str, float | None]:
    if averaging == "frames":
        return _pooled(scores)
    parts = [_pooled(group) for group in _groups(scores, "action").values()]
    return {name: _mean(part[name] for part in parts) for name in (*MEASURES, *THRESHOLD_MEASURES)}


def _by_joint(scores: Sequence[SequenceScores], averaging: Averaging) -> dict[str, dict[str, float | None]]:
    groups = [scores] if averaging == "frames" else list(_groups(scores, "action").values())
    means = {name: [_joint_means(group, name) for group in groups] for name in MEASURES}
    return {
        joint: {name: _mean(_number(part[index]) for part in parts) for name, parts in means.items()}
        for index, joint in enumerate(H36M_NAMES)
    }
