"""Links from the first camera to all others by motion, sound and time stamps, and the evidence for each clock."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from pose.errors import PoseError
from pose.multiview.calibrate import Known, adjust, start_cameras
from pose.multiview.clocks import DATE, GIVEN, MOTION, SYNCHRONOUS, ClockHint
from pose.multiview.initialise import Link, all_speeds, link_cameras, reverse, spanning_links
from pose.multiview.synchronise import Speeds
from pose.multiview.types import ViewCamera, ViewTrack

MOTION_REMEDY = "let people clap, wave or walk about in view of all cameras"
DATE_TOLERANCE_S = 4.0  # s; tolerance around dates within which a weak match of the motion is accepted
MIN_RELATIVE_QUALITY = 0.5  # minimum quality of other links to try, relative to the best link
MAX_EQUAL_LAG_S = 0.1  # s; maximum difference of two lags that count as equal
CLOCK_SEARCH_S = 0.6  # s; search range of the motion around a given clock
MAX_TRIED_LAGS = 5  # maximum lags that are tried per pair of cameras
MAX_AMBIGUOUS_COST_RATIO = 1.1  # maximum ratio of costs, another lag over the best one, at which both are possible
MIN_SIGNIFICANCE = 3.0  # standard deviations from chance above which motion alone supports a lag


class MisfitError(PoseError):
    """A camera that does not fit the others; `camera` is its index. The others may be calibrated without it."""

    def __init__(self, message: str, camera: int) -> None:
        super().__init__(message)
        self.camera = camera


def find_links(
    tracks: Sequence[ViewTrack],
    initial_cameras: Sequence[ViewCamera],
    names: Sequence[str],
    known: Known,
    hints: Sequence[ClockHint] = (),
) -> list[Link]:
    """Find links from connected to new cameras that connect all cameras to the first one."""
    speeds = all_speeds(tracks)
    hypotheses: dict[tuple[int, int], list[Link]] = {}
    for second in range(len(initial_cameras)):
        for first in range(second):
            pair_hints = [hint for hint in hints if (hint.first, hint.second) == (first, second)]
            if known.clocks:
                links = link_cameras(
                    tracks, first, second, speeds, initial_cameras[second].offset - initial_cameras[first].offset
                )
            else:
                links = _links(tracks, first, second, speeds, pair_hints)
            if links:
                hypotheses[first, second] = links
    for index in _unlinked(hypotheses, len(names)):
        wrong = f"{names[index]}: its motion matches no other camera's; {same_scene(known)}? {remedy(known)}"
        raise MisfitError(wrong, index)
    chosen = spanning_links([links[0] for links in hypotheses.values()], len(initial_cameras))
    return [_best(tracks, initial_cameras, link, hypotheses[_key(link)]) for link in chosen]


def _unlinked(pairs: Collection[tuple[int, int]], cameras: int) -> list[int]:
    """Return the cameras outside the largest group that pairs connect, of equal groups that of the first camera."""
    groups: list[set[int]] = [{index} for index in range(cameras)]
    for pair in pairs:
        joined = [group for group in groups if group.intersection(pair)]
        groups = [set[int]().union(*joined), *(group for group in groups if group not in joined)]
    order = [(-len(group), min(group)) for group in groups]
    return sorted(set(range(cameras)) - groups[order.index(min(order))])


def remedy(known: Known) -> str:
    """Return advice about cameras that do not match, for an error message; `known` says what the user gave."""
    return MOTION_REMEDY if known.capture_times else f"{MOTION_REMEDY}, or give the start times with --offsets"


def same_scene(known: Known) -> str:
    """Return the question whether all cameras show the same people (live: moment), for an error message."""
    return "do the cameras show the same people" if known.capture_times else "are these videos of the same moment"


def _key(link: Link) -> tuple[int, int]:
    return min(link.first, link.second), max(link.first, link.second)


def _links(
    tracks: Sequence[ViewTrack], first: int, second: int, speeds: dict[int, Speeds], hints: Sequence[ClockHint]
) -> list[Link]:
    """Return the links of two cameras, best first: by sound or timecode, else motion, else near the recording date."""
    moved = link_cameras(tracks, first, second, speeds)
    for hint in hints:
        if hint.source == DATE:
            continue
        links = link_cameras(tracks, first, second, speeds, hint.seconds)
        if links and (not moved or links[0].quality > MIN_RELATIVE_QUALITY * moved[0].quality):
            return links
    for hint in hints:
        if not moved and hint.source == DATE:
            moved = link_cameras(tracks, first, second, speeds, near=(hint.seconds, DATE_TOLERANCE_S))
    return [link for link in moved if link.quality > MIN_RELATIVE_QUALITY * moved[0].quality][:MAX_TRIED_LAGS]


def _best(
    tracks: Sequence[ViewTrack], initial_cameras: Sequence[ViewCamera], chosen: Link, links: Sequence[Link]
) -> Link:
    """Choose the link with the lowest cost of a bundle adjustment of its two cameras."""
    # If the overlap is large, motions agree almost equally well for several lags; the reprojection error decides.
    if len(links) == 1:
        return chosen
    costs = [_cost(tracks, initial_cameras, link) for link in links]
    order = sorted(range(len(links)), key=costs.__getitem__)
    best = links[order[0]]
    if costs[order[1]] < MAX_AMBIGUOUS_COST_RATIO * costs[order[0]]:
        best = replace(best, other_lag=links[order[1]].lag)
    return best if best.first == chosen.first else reverse(best)


def _cost(tracks: Sequence[ViewTrack], initial_cameras: Sequence[ViewCamera], link: Link) -> float:
    """Return the cost per observed point of a rough bundle adjustment of the two cameras of a link."""
    pair = (link.first, link.second)
    people = [{side: replace(tracks[row], camera=side) for side, row in enumerate(rows)} for rows in link.pairs]
    turned = replace(link, first=0, second=1)
    cameras = start_cameras([initial_cameras[index] for index in pair], [turned])
    cameras = [replace(cameras[0], offset=0.0, drift=0.0), replace(cameras[1], offset=link.lag)]
    adjusted = adjust(people, cameras, rough=True)
    return adjusted.solution.cost / max(sum(int(one.seen.sum()) for one in adjusted.seen), 1)


def clock_sources(
    cameras: Sequence[ViewCamera], tracks: Sequence[ViewTrack], known: Known, hints: Sequence[ClockHint]
) -> list[tuple[str, ...]]:
    """Return the evidence for each camera's clock: ('given',), or 'motion' and agreeing sources of hints."""
    # It is empty for the first camera, whose clock defines the common time.
    if known.clocks:
        return [(), *[(GIVEN,)] * (len(cameras) - 1)]
    speeds = all_speeds(tracks)
    sources: list[tuple[str, ...]] = [()]
    for index in range(1, len(cameras)):
        hint_sources = [hint.source for hint in hints if index in (hint.first, hint.second) and hint.agrees(cameras)]
        moved = [MOTION] if _by_motion(cameras, index, tracks, speeds) else []
        same = [SYNCHRONOUS] if index in known.same_clock else moved
        sources.append((*same, *sorted(set(hint_sources))))
    return sources


def given_notes(cameras: Sequence[ViewCamera], names: Sequence[str], tracks: Sequence[ViewTrack]) -> list[str]:
    """Return messages about given clocks that contradict the motion, at most one for each camera."""
    speeds = all_speeds(tracks)
    notes = []
    for index in range(1, len(cameras)):
        for other in range(index):
            off = cameras[index].offset - cameras[other].offset
            links = link_cameras(tracks, other, index, speeds, near=(off, CLOCK_SEARCH_S))
            best = max(links, key=lambda link: link.significance, default=None)
            if best is not None and best.significance >= MIN_SIGNIFICANCE and abs(best.lag - off) > MAX_EQUAL_LAG_S:
                notes.append(
                    f"{names[index]}: its people move as if it started {best.lag - off:+.2f} s from the given time, "
                    f"compared with {names[other]}; check --offsets"
                )
                break
    return notes


def _by_motion(
    cameras: Sequence[ViewCamera], index: int, tracks: Sequence[ViewTrack], speeds: dict[int, Speeds]
) -> bool:
    for other in range(len(cameras)):
        if other == index:
            continue
        off = cameras[index].offset - cameras[other].offset
        links = link_cameras(tracks, other, index, speeds, near=(off, MAX_EQUAL_LAG_S))
        if any(link.significance >= MIN_SIGNIFICANCE for link in links):
            return True
    return False


def clock_notes(
    cameras: Sequence[ViewCamera],
    names: Sequence[str],
    sources: Sequence[tuple[str, ...]],
    links: Sequence[Link],
    hints: Sequence[ClockHint],
    known: Known,
) -> list[str]:
    """Return messages about uncertain clocks; with `known.capture_times` only about ambiguous ones."""
    notes, decides = [], "a clap" if known.capture_times else "a clap or --offsets"
    for index in range(1, 1 if known.capture_times else len(cameras)):
        if not sources[index]:
            notes.append(
                f"{names[index]}: its start time {cameras[index].offset:.2f} s is a weak match of the motion; a longer "
                "recording, a clap or --offsets make it certain"
            )
    for hint in hints:
        off = cameras[hint.second].offset - cameras[hint.first].offset
        if hint.source != DATE and not known.capture_times and not hint.agrees(cameras):
            notes.append(
                f"{names[hint.second]}: {hint.source} says that it starts {hint.seconds:.2f} s after "
                f"{names[hint.first]}, the people {off:.2f} s; --offsets decides"
            )
    for link in links:
        exact = set(sources[link.second]) - {MOTION, DATE}
        if not exact and math.isfinite(link.other_lag):
            notes.append(
                f"{names[link.second]}: its start time is ambiguous ({link.lag:.2f} or {link.other_lag:.2f} s after "
                f"{names[link.first]}), as the motion repeats itself; {decides} decides"
            )
    return notes
