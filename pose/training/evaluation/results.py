"""Results of an evaluation as plain data (`results.json`), grouped into tables.

Each result records its benchmark: data set, protocol, 2D input and evaluated frames. A table contains only results of
the same benchmark.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from pose.errors import PoseError, UsageError
from pose.training.evaluation import calibration
from pose.training.evaluation.lifting import Evaluation
from pose.training.evaluation.scores import Averaging, SequenceScores, Summary, summarize
from pose.utils.json_values import check_type, read_text_file, strict_json
from pose.utils.shown import in_brief
from pose.utils.whole_file import write_whole

# One point of accuracy against latency: "lookahead" in frames, "latency_ms", and the average of each measure.
CurvePoint = dict[str, float | None]
FORMAT, VERSION = "pose-eval", 1
FILE = "results.json"
# Maximum number of points in a plot of error over time.
_TIME_POINTS = 400
_POINT = {"lookahead", "latency_ms", "mpjpe", "p_mpjpe", "mpjve", "accel"}  # required keys of `CurvePoint`


class BenchmarkFields(TypedDict):
    """A `Benchmark` as plain values."""

    name: str  # name of the data set
    protocol: str  # protocol of the data set; empty if there is only one
    input_2d: str  # source of the 2D keypoints
    averaging: Averaging  # averaging of errors: "actions" averages over each action first, "frames" over all frames
    groups: Sequence[str]  # names of the actions, in the order of the table columns
    measures: Sequence[str]  # names of the error measures that have tables
    selection: str  # subjects and frames that were evaluated


class OverTime(TypedDict):
    """The error over time of one sequence."""

    which: str  # "best", "median" or "worst"
    key: str  # key of the sequence
    frames_a_point: int  # number of frames averaged to one point
    mpjpe: list[float | None]  # MPJPE of each point in mm; None for a point without valid frames


class Speed(TypedDict):
    """Processing times of the lifter and of the metrics."""

    lifter_frames: int  # number of lifted frames
    lifter_seconds: float  # time spent in the lifter, s
    lifter_frames_per_second: float | None  # speed of the lifter; None if nothing was lifted or timed
    metrics_frames: int  # number of scored frames
    metrics_seconds: float  # time spent in the metrics, s
    metrics_frames_per_second: float | None  # speed of the metrics; None if nothing was scored or timed


class EvaluationResult(TypedDict):
    """The result of one method on one benchmark."""

    name: str  # name of the method
    sha256: str  # SHA-256 of the lifter's weights; empty if unknown
    fps: float  # frame rate of the sequences in frames/s
    benchmark: BenchmarkFields  # benchmark on which the method was evaluated
    variants: dict[str, Summary]  # averages by variant: "no flip", "flip" or "as given"
    # Calibration of the predicted sigma in the last variant; None without uncertainties.
    calibration: calibration.SigmaCalibration | None
    over_time: list[OverTime]  # error over time of the best, median and worst sequence in the last variant
    speed: Speed  # speed of the lifter and the metrics
    lookahead: list[CurvePoint]  # accuracy for several look-aheads; empty if they were not evaluated
    found: NotRequired[int]  # number of poses of the ground truth that the pipeline found; only for videos
    known: NotRequired[int]  # number of poses in the ground truth, over all people and frames; only for videos


class _File(TypedDict):
    format: str
    version: int
    results: list[EvaluationResult]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Data set, protocol and input of an evaluation. A table contains only results of equal benchmarks."""

    name: str  # name of the data set
    protocol: str  # protocol of the data set; empty if there is only one
    input_2d: str  # source of the 2D keypoints
    averaging: Averaging  # averaging of errors: "actions" averages over each action first, "frames" over all frames
    groups: tuple[str, ...]  # names of the actions, in the order of the table columns
    measures: tuple[str, ...]  # names of the error measures that have tables
    selection: str  # subjects and frames that were evaluated. A result on part of the data is a different benchmark

    @property
    def fields(self) -> BenchmarkFields:
        """The attributes as plain values for JSON."""
        return {
            "name": self.name,
            "protocol": self.protocol,
            "input_2d": self.input_2d,
            "averaging": self.averaging,
            "groups": self.groups,
            "measures": self.measures,
            "selection": self.selection,
        }

    @property
    def title(self) -> str:
        """Title of a table: data set, protocol, 2D input, selection and averaging."""
        protocol = f", protocol {self.protocol}" if self.protocol else ""
        mean = "each action's mean first" if self.averaging == "actions" else "mean over all frames"
        return f"{self.name}{protocol}, 2D: {self.input_2d} ({self.selection}; {mean})"


def describe(name: str, evaluation: Evaluation, benchmark: Benchmark, fps: float, sha256: str = "") -> EvaluationResult:
    """Summarise the evaluation of one lifter, or of one file of predictions, as a result."""
    best = list(evaluation.scores)[-1]
    counts = [score.calibration for score in evaluation.scores[best] if score.calibration is not None]
    return {
        "name": name,
        "sha256": sha256,
        "fps": fps,
        "benchmark": benchmark.fields,
        "variants": {key: summarize(scores, benchmark.averaging) for key, scores in evaluation.scores.items()},
        "calibration": calibration.summarize(np.sum(counts, axis=0)) if counts and np.sum(counts) else None,
        "over_time": _over_time(evaluation.scores[best]),
        "speed": {
            "lifter_frames": evaluation.frames_lifted,
            "lifter_seconds": round(evaluation.lifter_seconds, 3),
            "lifter_frames_per_second": _rate(evaluation.frames_lifted, evaluation.lifter_seconds),
            "metrics_frames": evaluation.frames_measured,
            "metrics_seconds": round(evaluation.metrics_seconds, 3),
            "metrics_frames_per_second": _rate(evaluation.frames_measured, evaluation.metrics_seconds),
        },
        "lookahead": [],
    }


def curve_point(lookahead: int, fps: float, evaluation: Evaluation, benchmark: Benchmark) -> CurvePoint:
    """Return one point on the curve of accuracy against latency: look-ahead, latency in ms, and mean errors."""
    average = summarize(next(iter(evaluation.scores.values())), benchmark.averaging)["average"]
    return {"lookahead": lookahead, "latency_ms": 1000 * lookahead / fps, **average}


def latency_of(point: CurvePoint) -> tuple[int, float]:
    """Return the look-ahead in frames and the latency in ms of a point on the curve of accuracy against latency."""
    frames, milliseconds = point["lookahead"], point["latency_ms"]
    assert frames is not None
    assert milliseconds is not None
    return int(frames), milliseconds


def _rate(frames: int, seconds: float) -> float | None:
    return round(frames / seconds, 1) if frames and seconds else None


def _over_time(scores: Sequence[SequenceScores]) -> list[OverTime]:
    """Return the error over time of the best, median and worst sequence, averaged to at most `_TIME_POINTS` points."""
    known = [one for one in scores if one.frames]
    ranked = sorted(known, key=lambda one: float(np.nanmean(one.over_time)))
    if not ranked:
        return []
    chosen = {"best": ranked[0], "median": ranked[len(ranked) // 2], "worst": ranked[-1]}
    return [_thinned(which, one) for which, one in chosen.items()]


def _thinned(which: str, one: SequenceScores) -> OverTime:
    step = -(-len(one.over_time) // _TIME_POINTS)
    padded = np.pad(one.over_time, (0, -len(one.over_time) % step), constant_values=np.nan).reshape(-1, step)
    known = np.isfinite(padded)
    sums, counts = np.where(known, padded, 0).sum(axis=1), known.sum(axis=1)
    means = [float(total / count) if count else None for total, count in zip(sums, counts, strict=True)]
    return {"which": which, "key": one.key, "frames_a_point": step, "mpjpe": means}


def save_results(path: Path, results: Sequence[EvaluationResult]) -> None:
    """Write results as JSON to `path`, usually `results.json`."""
    content = {"format": FORMAT, "version": VERSION, "results": list(results)}
    write_whole(path, json.dumps(content, indent=1, allow_nan=False))


def load_results(path: Path) -> list[EvaluationResult]:
    """Read `results.json` of a file or folder; UsageError if missing, PoseError if invalid."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"{file}: no such file; expected a results.json of pose-eval")
    try:
        content = strict_json(read_text_file(file))
        if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
            raise TypeError(f"expected {FORMAT} version {VERSION}")
        check_type(content, _File)
    except (ValueError, TypeError) as error:
        raise PoseError(f"{file}: not a results.json of pose-eval: {in_brief(error)}") from error
    results: list[EvaluationResult] = list(content["results"])
    for result in results:
        if not result["fps"] > 0:
            raise PoseError(f"{file}: is not a results.json of pose-eval: fps {result['fps']}")
        for point in result["lookahead"]:
            if not point.keys() >= _POINT or None in (point["lookahead"], point["latency_ms"]):
                raise PoseError(f"{file}: is not a results.json of pose-eval: an entry of lookahead is incomplete")
    return results


def tables(results: Sequence[EvaluationResult]) -> list[list[EvaluationResult]]:
    """Group results by benchmark, in order of appearance."""
    groups: dict[str, list[EvaluationResult]] = {}
    for result in results:
        groups.setdefault(json.dumps(result["benchmark"], sort_keys=True), []).append(result)
    return list(groups.values())


def benchmark_of(result: EvaluationResult) -> Benchmark:
    """Return the benchmark of a result."""
    fields = result["benchmark"]
    return Benchmark(
        name=fields["name"],
        protocol=fields["protocol"],
        input_2d=fields["input_2d"],
        averaging=fields["averaging"],
        groups=tuple(fields["groups"]),
        measures=tuple(fields["measures"]),
        selection=fields["selection"],
    )
