"""Foot contacts of a track as events, for formats with events."""

from dataclasses import dataclass

import numpy as np

from pose.body.timeline import stretches
from pose.body.tracks import Track
from pose.structures.types import Flags
from pose.world.rules import RULES

FOOT_STRIKE, FOOT_OFF = "Foot Strike", "Foot Off"  # as gait analysis programs name them
SIDES = ("Left", "Right")
GENERAL = "General"  # for events without a side
MIN_CONTACT_PROBABILITY = 0.5  # minimum probability of a contact


@dataclass(frozen=True, slots=True)
class ExportEvent:
    """An event of an exported motion, such as the start of a foot contact."""

    time: float  # time in the video, s
    label: str  # 'Foot Strike' (`FOOT_STRIKE`), 'Foot Off' (`FOOT_OFF`) or another label
    side: str  # 'Left' or 'Right' (`SIDES`), or 'General' (`GENERAL`) for events without a side


def contact_events(track: Track, min_contact_s: float = RULES.contacts.min_contact_s) -> list[ExportEvent]:
    """Return foot strikes (first frame of a contact) and foot offs (first frame after it) in time order."""
    # Contacts and pauses shorter than `min_contact_s` are merged with their surroundings. There are no events where a
    # person appears, disappears or is missing, or without world coordinates.
    events = []
    contacts, times = track.contacts, track.times
    known = np.isfinite(contacts).min(axis=1)
    for first, last in stretches(known):
        for side, name in enumerate(SIDES):
            stands: Flags = contacts[first : last + 1, side] >= MIN_CONTACT_PROBABILITY
            for value in (False, True):
                for begin, end in stretches(stands if value else ~stands):
                    inner = begin > 0 and first + end < last
                    if inner and times[first + end + 1] - times[first + begin] < min_contact_s - 1e-6:
                        stands[begin : end + 1] = not value
            for at in np.flatnonzero(np.diff(stands.astype(np.int8))) + 1:
                events.append(ExportEvent(float(times[first + at]), FOOT_STRIKE if stands[at] else FOOT_OFF, name))
    return sorted(events, key=lambda event: (event.time, event.side))
