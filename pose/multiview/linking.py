"""Links that reach all cameras from the first, by motion, sound and time stamps, and what supports each clock."""

from collections.abc import Sequence

from pose.errors import PoseError
from pose.multiview.calibrate import Known
from pose.multiview.clocks import DATE, GIVEN, MOTION, ClockHint
from pose.multiview.initialise import Link, all_speeds, link_cameras, spanning_links
from pose.multiview.synchronise import Speeds
from pose.multiview.types import Track, ViewCamera

REMEDY = "let people clap, wave or walk about in view of all cameras, or give the start times with --offsets"
DATE_REACH = 4.0  # s around what dates say, within which a weak match of the motion counts
LEAST_AGREEMENT = 0.5  # of the quality of the best link by motion, that one by sound must have
SAME_LAG = 0.1  # s
AMBIGUOUS = 0.9  # of the best link's quality, that one with another lag may have
SURE = 3.0  # standard deviations from chance, from which on motion supports a lag by itself


def find_links(
    tracks: Sequence[Track],
    told: Sequence[ViewCamera],
    names: Sequence[str],
    known: Known,
    hints: Sequence[ClockHint] = (),
) -> list[Link]:
    """The links. Raises PoseError where a camera is not reached."""
    speeds = all_speeds(tracks)
    found = []
    for second in range(len(told)):
        for first in range(second):
            own = [hint for hint in hints if (hint.first, hint.second) == (first, second)]
            if known.clocks:
                link = link_cameras(tracks, first, second, speeds, told[second].offset - told[first].offset)
            else:
                link = _link(tracks, first, second, speeds, own)
            if link is not None:
                found.append(link)
    chosen = spanning_links(found, len(told))
    reached = {0} | {link.second for link in chosen}
    for index, name in enumerate(names):
        if index not in reached:
            raise PoseError(
                f"{name}: its motion matches no other camera's; are these videos of the same moment? {REMEDY}"
            )
    return chosen


def _link(
    tracks: Sequence[Track], first: int, second: int, speeds: dict[int, Speeds], hints: Sequence[ClockHint]
) -> Link | None:
    """By what is exact where the poses bear it out, then by motion, then by motion near a date."""
    moved = link_cameras(tracks, first, second, speeds)
    for hint in hints:
        if hint.source == DATE:
            continue
        link = link_cameras(tracks, first, second, speeds, hint.seconds)
        if link is not None and (moved is None or link.quality > LEAST_AGREEMENT * moved.quality):
            return link
    for hint in hints:
        if moved is None and hint.source == DATE:
            moved = link_cameras(tracks, first, second, speeds, near=(hint.seconds, DATE_REACH))
    return moved


def clock_sources(
    cameras: Sequence[ViewCamera], tracks: Sequence[Track], known: Known, hints: Sequence[ClockHint]
) -> list[tuple[str, ...]]:
    """Of each camera, what supports its clock: `GIVEN`, or of `MOTION` and sources of hints those that agree with it.

    Of the first it is empty: its clock is the common one.
    """
    if known.clocks:
        return [(), *[(GIVEN,)] * (len(cameras) - 1)]
    speeds = all_speeds(tracks)
    found: list[tuple[str, ...]] = [()]
    for index in range(1, len(cameras)):
        own = [hint.source for hint in hints if index in (hint.first, hint.second) and hint.agrees(cameras)]
        moved = [MOTION] if _by_motion(cameras, index, tracks, speeds) else []
        found.append((*moved, *sorted(set(own))))
    return found


def _by_motion(cameras: Sequence[ViewCamera], index: int, tracks: Sequence[Track], speeds: dict[int, Speeds]) -> bool:
    for other in range(len(cameras)):
        if other == index:
            continue
        off = cameras[index].offset - cameras[other].offset
        link = link_cameras(tracks, other, index, speeds, near=(off, SAME_LAG))
        if link is not None and link.sure >= SURE:
            return True
    return False


def clock_notes(
    cameras: Sequence[ViewCamera],
    names: Sequence[str],
    sources: Sequence[tuple[str, ...]],
    links: Sequence[Link],
    hints: Sequence[ClockHint],
) -> list[str]:
    """What is doubtful about the clocks, one line each."""
    notes = []
    for index in range(1, len(cameras)):
        if not sources[index]:
            notes.append(
                f"{names[index]}: its start time {cameras[index].offset:.2f} s is a weak match of the motion; a longer "
                "recording, a clap or --offsets make it certain"
            )
    for hint in hints:
        off = cameras[hint.second].offset - cameras[hint.first].offset
        if hint.source != DATE and not hint.agrees(cameras):
            notes.append(
                f"{names[hint.second]}: {hint.source} says that it starts {hint.seconds:.2f} s after "
                f"{names[hint.first]}, the people {off:.2f} s; --offsets decides"
            )
    for link in links:
        exact = set(sources[link.second]) - {MOTION, DATE}
        if not exact and link.runner_up > AMBIGUOUS * link.quality:
            notes.append(
                f"{names[link.second]}: its start time is ambiguous ({link.lag:.2f} or {link.other_lag:.2f} s after "
                f"{names[link.first]}), as the motion repeats itself; a clap or --offsets decides"
            )
    return notes
