"""Foot events of a track, for formats with events: of gait where the person walks, of contacts elsewhere."""

from dataclasses import dataclass

import numpy as np

from pose.body.gait import analyse_gait
from pose.body.segments import motions
from pose.body.timeline import stretches
from pose.body.tracks import Track
from pose.structures.types import Flags
from pose.world.rules import CONTACTS

FOOT_STRIKE, FOOT_OFF = "Foot Strike", "Foot Off"  # as gait analysis programs name them
SIDES = ("Left", "Right")
GENERAL = "General"  # for events without a side
AROUND_S = 0.3  # contacts this close to the steps of a walk are these steps
MIN_CONTACT_PROBABILITY = 0.5  # minimum probability of a contact


@dataclass(frozen=True, slots=True)
class ExportEvent:
    """An event of an exported motion, such as the start of a foot contact."""

    time: float  # time in the video, s
    label: str  # 'Foot Strike' (`FOOT_STRIKE`), 'Foot Off' (`FOOT_OFF`) or another label
    side: str  # 'Left' or 'Right' (`SIDES`), or 'General' (`GENERAL`) for events without a side


def foot_events(track: Track) -> list[ExportEvent]:
    """Return the foot strikes and foot offs of a track in time order."""
    # In gait, contacts of the ankles begin 0.1 s early and end 0.1 s late; `pose.body.gait` was fitted to force
    # plates. A stationary person has no gait, but contacts.
    contacts, table = contact_events(track), track.recording.table
    if table.placed is None:
        return contacts
    own = (table.id == track.person) & ~table.placed.partial
    for motion in motions(table.time[own], table.placed.joints[own], table.sigma[own]):
        gait = analyse_gait(motion)
        steps = [
            ExportEvent(time, label, side.capitalize())
            for label, by_side in ((FOOT_STRIKE, gait.strikes), (FOOT_OFF, gait.offs))
            for side, times in by_side.items()
            for time in times
            if track.times[0] <= time <= track.times[-1]
        ]
        if steps:
            first, last = (bound(event.time for event in steps) for bound in (min, max))
            contacts = [event for event in contacts if not first - AROUND_S < event.time < last + AROUND_S] + steps
    return sorted(contacts, key=lambda event: (event.time, event.side))


def contact_events(track: Track, min_contact_s: float = CONTACTS.min_contact_s) -> list[ExportEvent]:
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
