"""Clocks of calibrated cameras: one clock for all cameras, unless people contradict it significantly.

A calibration error moves the image of a walking person as a clock offset does. The estimated offset of a camera must
therefore differ from zero by `MIN_SIGNIFICANCE` standard deviations that allow for correlated residuals, or agree with
sound or a timecode that contradicts zero.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pose.multiview import residuals as r
from pose.multiview.calibrate import CORRELATION_FACTOR, Adjusted, Known, adjust, shared_span, start_cameras
from pose.multiview.clocks import DATE, ClockHint
from pose.multiview.identities import find_people, merge_tracks
from pose.multiview.initialise import Link
from pose.multiview.linking import MAX_AMBIGUOUS_COST_RATIO, MAX_EQUAL_LAG_S, MisfitError, find_links
from pose.multiview.types import ViewCamera, ViewTrack

MIN_SIGNIFICANCE = 3.0  # standard deviations
MIN_MATCHED_SHARE = 0.9  # least time with matched people at zero offset, relative to that at the offsets of the motion

People = list[dict[int, ViewTrack]]


@dataclass(frozen=True, slots=True)
class CommonClock:
    """Decision about the clocks of calibrated cameras."""

    cameras: list[ViewCamera]  # cameras with their offsets, zero where it is not contradicted
    same: frozenset[int]  # indices of the cameras with the first camera's clock
    sigma: dict[int, float]  # s, standard deviation of the offsets of these cameras
    links: list[Link]  # links by motion


def common_clock(
    tracks: Sequence[ViewTrack],
    cameras: Sequence[ViewCamera],
    names: Sequence[str],
    known: Known,
    hints: Sequence[ClockHint],
) -> CommonClock:
    """Compare the hypothesis of one clock with the offsets that motion, sound and time stamps give."""
    try:
        links = find_links(tracks, cameras, names, known, hints)
    except MisfitError:
        links = []
    timed = start_cameras(cameras, links)
    linked = [replace(camera, offset=new.offset) for camera, new in zip(cameras, timed, strict=True)]
    people, others = _shared(tracks, cameras), _shared(tracks, linked)
    if _seconds(people, cameras) < MIN_MATCHED_SHARE * _seconds(others, linked):
        best = adjust(others, linked, known, drifts=False)
    elif not people:
        return CommonClock(linked, frozenset(), {}, links)
    else:
        best = adjust(people, cameras, known, drifts=False)
        found = best.solution.cameras
        far = any(abs(a.offset - b.offset) > MAX_EQUAL_LAG_S for a, b in zip(found, linked, strict=True))
        if far and others:
            other = adjust(others, linked, known, drifts=False)
            if MAX_AMBIGUOUS_COST_RATIO * _cost(other) < _cost(best):
                best = other
    solution = best.solution
    sigma = {index: offset_sigma(best, index) for index in range(1, len(cameras))}
    chosen, same = [cameras[0]], set[int]()
    for index, one in sigma.items():
        offset, timed_offset = solution.cameras[index].offset, linked[index].offset
        told = _told_sigma(hints, index, linked, cameras)
        if abs(timed_offset - offset) < MIN_SIGNIFICANCE * max(one, told) < math.inf:
            share = told**-2.0 / (told**-2.0 + one**-2.0)
            offset = share * timed_offset + (1 - share) * offset
        elif abs(offset) < MIN_SIGNIFICANCE * one:
            offset = 0.0
            same.add(index)
        chosen.append(replace(cameras[index], offset=offset))
    return CommonClock(chosen, frozenset(same), {index: sigma[index] for index in same}, links)


def _told_sigma(
    hints: Sequence[ClockHint], index: int, linked: Sequence[ViewCamera], cameras: Sequence[ViewCamera]
) -> float:
    """Return the standard deviation (s) of sound or timecode that agree with the links and contradict one clock."""
    own = [hint for hint in hints if hint.source != DATE and index in (hint.first, hint.second)]
    agreeing = [hint.sigma for hint in own if hint.agrees(linked) and not hint.agrees(cameras)]
    return min(agreeing, default=math.inf)


def offset_sigma(adjusted: Adjusted, index: int) -> float:
    """Return the standard deviation of a camera's clock offset, s."""
    solution = adjusted.solution
    model = CORRELATION_FACTOR * solution.deviation[index, r.OFFSET]
    return max(float(model), float(solution.robust.wide(MIN_SIGNIFICANCE)[index, r.OFFSET]))


def _shared(tracks: Sequence[ViewTrack], cameras: Sequence[ViewCamera]) -> People:
    people = [merge_tracks(tracks, rows) for rows in find_people(tracks, cameras)]
    return [one for one in people if len(one) >= 2]


def _seconds(people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera]) -> float:
    """Return the total time for which two cameras may see each person, s."""
    spans = [span for one in people if (span := shared_span(one, cameras)) is not None]
    return sum(last - first for first, last in spans)


def _cost(adjusted: Adjusted) -> float:
    return adjusted.solution.cost / max(sum(int(one.seen.sum()) for one in adjusted.seen), 1)
