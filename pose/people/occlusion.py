"""Who is who after one person hid another: decided again when they part, by what was known before.

While one body hides the other nobody can tell which of the two is followed. Before, both were seen clearly: where they
were and how they moved, how large they were and what they wore. When they are apart again the names go to the bodies
that this fits better; where it says little, who was followed stays who they were.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pose.people.evidence import Evidence, Past
from pose.people.sighting import Seen
from pose.types import F32, U8

TOUCHING = 0.1  # IoU of two people's boxes from which on one may hide the other
HIDDEN = 0.2  # body sizes: trunks closer than this hide each other,
PARTED = 0.27  # and from this distance on they no longer do
SLOWING_SECONDS = 0.7  # a motion goes on for about so long
MOTION_SECONDS = 0.6  # after which where somebody was going says little
DOUBT = 0.04  # body sizes by which each of them must fit better the other way round
FORGET_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Encounter:
    """Two people as they were last seen apart, at `time` s. hidden: since then one may have hidden the other."""

    people: tuple[Past, Past]
    time: float
    hidden: bool


class Occlusions:
    """Watches people who touch."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._encounters: dict[tuple[int, int], _Encounter] = {}

    def mistaken(self, seen: Seen, ids: list[int], image: U8, time: float) -> list[dict[int, Past]]:
        """Pairs of people whose ids have changed places, with what is known of each: id -> past, two in each pair.

        ids: (P), of the rows of `seen`; one of a pair may be lost.
        """
        if len(ids) < 2 and not self._encounters:
            return []
        rows = {person: row for row, person in enumerate(ids) if seen.tracks[row].past is not None}
        overlap = seen.overlap
        touching = {pair for pair in combinations(sorted(rows), 2) if overlap[rows[pair[0]], rows[pair[1]]] > TOUCHING}
        exchanged = []
        for pair in sorted(touching | self._encounters.keys()):
            here = {person: rows[person] for person in pair if person in rows}
            known = self._encounters.get(pair)
            encounter = self._encounter(pair, here, seen, pair in touching, time)
            close = len(here) == 2 and encounter is not None and encounter.hidden
            clear = here and not close
            if clear and known is not None and self._exchanged(known, pair, here, seen, image, time):
                exchanged.append(dict(zip(pair, known.people, strict=True)))
                encounter = known if encounter is not None else None
            if encounter is None:
                self._encounters.pop(pair, None)
            else:
                self._encounters[pair] = encounter
        return exchanged

    def _encounter(
        self, pair: tuple[int, int], here: dict[int, int], seen: Seen, touching: bool, time: float
    ) -> _Encounter | None:
        """What is to be known of a pair after this frame; None once they are apart. here: id -> row of who is seen."""
        known = self._encounters.get(pair)
        if len(here) < 2:
            assert known is not None
            return replace(known, hidden=True) if time - known.time < FORGET_SECONDS else None
        if not touching:
            return None
        a, b = (self._evidence.middle(seen.keypoints.xy[here[person]]) for person in pair)
        people = seen.tracks[here[pair[0]]].past, seen.tracks[here[pair[1]]].past
        assert people[0] is not None and people[1] is not None  # noqa: PT018
        distance = float(np.linalg.norm(a - b)) / max(people[0].size, people[1].size)
        if known is not None and distance < (PARTED if known.hidden else HIDDEN):
            return replace(known, hidden=True)
        return _Encounter((people[0], people[1]), time, hidden=False)

    def _exchanged(
        self, encounter: _Encounter, pair: tuple[int, int], here: dict[int, int], seen: Seen, image: U8, time: float
    ) -> bool:
        """Whether those who are seen fit better to each other's past, or the one to the other's, than to their own."""
        if not encounter.hidden:
            return False
        past = dict(zip(pair, encounter.people, strict=True))
        swap = {pair[0]: pair[1], pair[1]: pair[0]}
        own, other = (
            sum(self._cost(past[names[person]], image, seen.keypoints.xy[row], time) for person, row in here.items())
            for names in ({person: person for person in pair}, swap)
        )
        return other + DOUBT * len(here) < own

    def _cost(self, past: Past, image: U8, xy: F32, time: float) -> float:
        """How badly a pose (J, 2) px continues somebody who was hidden since."""
        away = time - past.time
        glide = SLOWING_SECONDS * (1 - math.exp(-away / SLOWING_SECONDS))
        middle = self._evidence.middle(past.xy) + past.velocity * np.float32(glide)
        way = float(np.linalg.norm(self._evidence.middle(xy) - middle)) / past.size
        return way * math.exp(-away / MOTION_SECONDS) + self._evidence.unlike(past, image, xy)
