"""People who were lost beside somebody else.

BlazePose's detector sees one person where two overlap, and says nothing of the other. So who was lost in touch with
somebody is looked for in every frame of the next second, where their motion leads, with those taken out of the picture
whom they touched.
"""

import math
from dataclasses import replace

import numpy as np

from pose.networks import crops
from pose.people.evidence import Past
from pose.people.sighting import Seen, Track, touch
from pose.types import I64, Regions


class Lost:
    """Remembers them for `memory` s."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self.tracks: list[Track] = []

    def add(self, before: list[Track], seen: Seen) -> None:
        """Who of the people `before` is not among `seen`, and was beside one of them."""
        gone = [track for track in before if track not in seen.tracks and track not in self.tracks]
        self.tracks += [track for track in gone if track.past is not None and len(beside(track, seen))]

    def forget(self, seen: Seen, time: float) -> None:
        """Who is among `seen` again, whose ids are known by now, or was lost long ago.

        Also who was there before somebody whom the detector has found within the last second: it can tell people apart,
        so that one is the missing person, or the tracker knows better.
        """
        ids = {track.id for track in seen.tracks}
        newest = max((track.found for track in seen.tracks if time - track.found < self._memory), default=-math.inf)
        self.tracks = [
            track
            for track in self.tracks
            if track.id not in ids
            and track.past is not None
            and time - track.past.time < self._memory
            and newest <= track.found
        ]

    def exchange(self, people: dict[int, Past]) -> None:
        """Two people got each other's ids: so do those who are lost, with the clothes that go with them."""
        one, other = people
        swap = {one: other, other: one}
        for track in self.tracks:
            if track.id in swap and track.past is not None:
                track.id = swap[track.id]
                track.past = replace(track.past, clothes=people[track.id].clothes)


def beside(track: Track, seen: Seen) -> I64:
    """The rows of `seen` that touch a person where they were last."""
    assert track.past is not None
    last = crops.bounds(track.past.xy[None], track.past.seen[None])
    return np.flatnonzero(touch(last, seen.boxes)[0])


def expected(track: Track, time: float) -> tuple[Past, Regions]:
    """A lost person as they would be at `time`, slowing down, and their region there."""
    past = track.past
    assert past is not None
    way = past.way(time)
    region = Regions(track.region.centers + way, track.region.sizes, track.region.angles)
    return replace(past, xy=past.xy + way, velocity=np.zeros(2, np.float32), time=time), region
