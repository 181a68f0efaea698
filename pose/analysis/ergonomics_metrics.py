"""Metrics of RULA and REBA: mean score, share of time in each level, and the worst second."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pose.analysis.ergonomics import REBA_LEVELS, RULA_LEVELS, Inputs, ergonomic_scores
from pose.analysis.metrics import Event, Metric, Series, worst
from pose.analysis.quality import quality
from pose.body.segments import Motion

SCORE_ERROR = 1  # with lifted poses, 85 % (RULA) and 81 % (REBA) of the frames have at most this error


def ergonomic_metrics(
    person: int, parts: Sequence[Motion], inputs: Inputs
) -> tuple[list[Metric], list[Event], list[Series]]:
    """Compute RULA and REBA metrics, the worst second as events, and the scores over time."""
    scores = [ergonomic_scores(segment, inputs) for segment in parts]
    start, end = float(parts[0].times[0]), float(parts[-1].times[-1])
    ratings = [quality(segment, float(segment.times[0]), float(segment.times[-1])) for segment in parts]
    flag, doubt = worst([item for item, _ in ratings]), "; ".join(dict.fromkeys(text for _, text in ratings if text))
    times = np.concatenate([segment.times for segment in parts])
    metrics: list[Metric] = []
    events: list[Event] = []
    series: list[Series] = []
    for name, values, levels in (
        ("RULA", [item.rula for item in scores], RULA_LEVELS),
        ("REBA", [item.reba for item in scores], REBA_LEVELS),
    ):
        joined = np.concatenate(values)
        metrics += [
            Metric(
                person, "ergonomics", f"{name}: {what}", *numbers, unit, flag, start, end, len(joined),
                inputs.note, doubt,
            )
            for what, unit, numbers in [
                ("mean score", "score", _mean(joined, levels[-1][0])),
                *((f"time {level}", "share", numbers) for level, numbers in _shares(joined, levels)),
            ]
        ]  # fmt: skip
        seconds = [_second_mean(item, segment.rate) for item, segment in zip(values, parts, strict=True)]
        moment = float(times[int(np.argmax(np.concatenate(seconds)))])
        events.append(Event(person, "ergonomics", f"{name} worst moment", "", moment))
        series.append(Series(person, "ergonomics", name, "score", tuple(times.tolist()), tuple(map(float, joined))))
    return metrics, events, series


def _mean(scores: NDArray[np.int64], max_score: int) -> tuple[float, float, float]:
    """Return the mean score, and its bounds for an error of `SCORE_ERROR` in every score."""
    bounds = [float(np.clip(scores + off, 1, max_score).mean()) for off in (-SCORE_ERROR, SCORE_ERROR)]
    return float(scores.mean()), bounds[0], bounds[1]


def _shares(
    scores: NDArray[np.int64], levels: Sequence[tuple[int, str]]
) -> Iterable[tuple[str, tuple[float, float, float]]]:
    """Return the share of frames in each level, and its bounds for an error of `SCORE_ERROR` in every score."""
    lower, last = 0, levels[-1][0]
    for upper, level in levels:
        # Scores below the lowest level and above the highest one do not exist.
        below, above = (-np.inf if lower == 0 else lower), (np.inf if upper == last else upper)
        share = float(((scores > below) & (scores <= above)).mean())
        near = float(((scores > below + SCORE_ERROR) & (scores <= above - SCORE_ERROR)).mean())
        far = float(((scores > below - SCORE_ERROR) & (scores <= above + SCORE_ERROR)).mean())
        yield level, (share, near, far)
        lower = upper


def _second_mean(values: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    width = max(min(round(rate), len(values)), 1)
    return np.convolve(values, np.ones(width) / width, mode="same")
