"""Tracks that were lost while they touched another person.

Detectors that propose regions, such as BlazePose's, detect one person where two overlap. A person who was lost there is
therefore searched for at the predicted position in every frame for a limited time (`pose.tracking.occlusion_search`).
"""

import math
from dataclasses import replace

import numpy as np

from pose.networks import crops
from pose.structures.types import I64, Regions
from pose.tracking.observations import Observations, PersonTrack, boxes_touch
from pose.tracking.person_state import PersonState


class LostTracks:
    """Store that keeps lost tracks, in the order of their loss, for a limited time."""

    def __init__(self, memory_s: float) -> None:
        """Start without tracks, which are kept for `memory_s`."""
        self._memory = memory_s
        self.tracks: list[PersonTrack] = []  # the lost tracks, in the order in which they were lost

    def add(self, before: list[PersonTrack], observations: Observations) -> None:
        """Add the tracks that were lost in this frame while they touched a person who is observed."""
        missing = [track for track in before if track not in observations.tracks and track not in self.tracks]
        self.tracks += [t for t in missing if t.state is not None and len(touching_rows(t, observations))]

    def remove(self, observations: Observations, time: float) -> None:
        """Remove tracks that are observed again or were lost too long ago."""
        # A track is also removed if a detection has started a newer track within the last `memory_s` seconds. The new
        # track either shows the missing person, or the box tracker has decided that it does not.
        ids = {track.id for track in observations.tracks}
        starts = (track.detected_at for track in observations.tracks)
        newest = max((start for start in starts if time - start < self._memory), default=-math.inf)
        self.tracks = [
            track
            for track in self.tracks
            if track.id not in ids
            and track.state is not None
            and time - track.state.time < self._memory
            and newest <= track.detected_at
        ]

    def swap_ids(self, people: dict[int, PersonState]) -> None:
        """Swap two ids among the lost tracks, which get the clothing colours of their new ids."""
        one, other = people
        swap = {one: other, other: one}
        for track in self.tracks:
            if track.id in swap and track.state is not None:
                track.id = swap[track.id]
                track.state = replace(track.state, colours=people[track.id].colours)


def touching_rows(track: PersonTrack, observations: Observations) -> I64:
    """Return the indices (N,) of the people in `observations` whose boxes touch the last box of a track."""
    assert track.state is not None
    last = crops.bounds(track.state.xy[None], track.state.visible[None])
    return np.flatnonzero(boxes_touch(last, observations.boxes)[0])


def predict(track: PersonTrack, time: float) -> tuple[PersonState, Regions]:
    """Predict the state and the crop region of a lost track at `time` (s). Its velocity decays exponentially."""
    state = track.state
    assert state is not None
    offset = state.displacement(time)
    region = Regions(track.region.centers + offset, track.region.sizes, track.region.angles)
    return replace(state, xy=state.xy + offset, velocity=np.zeros(2, np.float32), time=time), region
