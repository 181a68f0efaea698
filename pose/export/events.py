"""Foot contacts of a track as events, for formats that hold events."""

from dataclasses import dataclass

import numpy as np

from pose.export.timeline import stretches
from pose.export.tracks import Track
from pose.types import Flags
from pose.world.rules import RULES

STRIKE, OFF = "Foot Strike", "Foot Off"  # the labels that programs of gait analysis know
SIDES = ("Left", "Right")
GENERAL = "General"  # the side of moments without one
STANDS = 0.5  # probability of a contact


@dataclass(frozen=True, slots=True)
class Event:
    """time: s of the video. label: `STRIKE`, `OFF` or another moment. side: one of `SIDES`, or `GENERAL`."""

    time: float
    label: str
    side: str


def contact_events(track: Track, least_s: float = RULES.contacts.min_contact_s) -> list[Event]:
    """Beginnings and ends of foot contacts, in the order of time.

    A foot stands where the probability of its contact is at least 0.5. Contacts and pauses shorter than `least_s`
    seconds count as what is around them. Where a person appears, disappears or is missing there is no event.

    Args:
        track: of a result with a world; without one there are no events.
        least_s: shortest contact, and shortest pause.

    Returns:
        Events: a strike at the first frame in which the foot stands, an off at the first in which it does not.
    """
    events = []
    contacts, times = track.contacts, track.times
    known = np.isfinite(contacts).min(axis=1)
    for first, last in stretches(known):
        for side, name in enumerate(SIDES):
            stands: Flags = contacts[first : last + 1, side] >= STANDS
            for value in (False, True):
                for begin, end in stretches(stands if value else ~stands):
                    inner = begin > 0 and first + end < last
                    if inner and times[first + end + 1] - times[first + begin] < least_s - 1e-6:
                        stands[begin : end + 1] = not value
            for at in np.flatnonzero(np.diff(stands.astype(np.int8))) + 1:
                events.append(Event(float(times[first + at]), STRIKE if stands[at] else OFF, name))
    return sorted(events, key=lambda event: (event.time, event.side))
