"""Who is who after one person hid another: decided again when they part, by what was known before.

While one body hides the other nobody can tell which of the two is followed. Before, both were seen clearly: where they
were and how they moved, how large they were and what they wore. When they are apart again the names go to the bodies
that this fits better; where it says little, who was followed stays who they were.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pose.people.evidence import TOUCHING, Evidence, Past
from pose.people.sighting import Seen
from pose.types import F32, U8

HIDDEN = 0.2  # body sizes: trunks closer than this hide each other,
PARTED = 0.27  # and from this distance on they no longer do
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

    def mistaken(self, seen: Seen, ids: list[int], image: U8, time: float) -> dict[int, Past] | None:
        """Two people whose ids have changed places, with what is known of each: id -> past; None where all is well.

        ids: (P), of the rows of `seen`; one of the two may be lost. Where several pairs are in doubt the surest of them
        is named, and the others are asked again in the next frame, with the names that are right by then.
        """
        if len(ids) < 2 and not self._encounters:
            return None
        rows = {person: row for row, person in enumerate(ids) if seen.tracks[row].past is not None}
        overlap = seen.overlap
        touching = {pair for pair in combinations(sorted(rows), 2) if overlap[rows[pair[0]], rows[pair[1]]] > TOUCHING}
        surest: tuple[int, int] | None = None
        surest_known, greatest = None, 0.0
        for pair in sorted(touching | self._encounters.keys()):
            here = {person: rows[person] for person in pair if person in rows}
            known = self._encounters.get(pair)
            encounter = self._encounter(pair, here, seen, pair in touching, time)
            if encounter is None:
                self._encounters.pop(pair, None)
            else:
                self._encounters[pair] = encounter
            close = len(here) == 2 and encounter is not None and encounter.hidden
            if here and not close and known is not None and known.hidden:
                gain = self._gain(known, pair, here, seen, image, time)
                if gain > greatest:
                    surest, surest_known, greatest = pair, known, gain
        if surest is None or surest_known is None:
            return None
        self._exchange(surest, surest_known)
        return dict(zip(surest, surest_known.people, strict=True))

    def _exchange(self, pair: tuple[int, int], known: _Encounter) -> None:
        """The two have had each other's names since they were hidden: so they had in what was noted since then."""
        swap = {pair[0]: pair[1], pair[1]: pair[0]}
        noted = sorted(self._encounters.items(), key=lambda item: item[1].time)
        self._encounters = {}
        for (a, b), encounter in noted:
            if (a, b) == pair:
                encounter = known
            elif encounter.time > known.time:
                a, b = swap.get(a, a), swap.get(b, b)
            if a > b:
                a, b, encounter = b, a, replace(encounter, people=encounter.people[::-1])
            self._encounters.setdefault((a, b), encounter)  # what was noted first is more certain

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

    def _gain(
        self, encounter: _Encounter, pair: tuple[int, int], here: dict[int, int], seen: Seen, image: U8, time: float
    ) -> float:
        """How much better, beyond doubt, those who are seen fit to the other's past than to their own; above 0 they
        are the other.

        Of one alone motion must say it: sizes and clothes differ less between two people than between a person's poses.
        """
        if len(here) < 2 and time - encounter.time > MOTION_SECONDS:
            return 0.0
        past = dict(zip(pair, encounter.people, strict=True))
        swap = {pair[0]: pair[1], pair[1]: pair[0]}
        own, other = (
            sum(self._cost(past[names[person]], image, seen.keypoints.xy[row], time) for person, row in here.items())
            for names in ({person: person for person in pair}, swap)
        )
        return own - other - DOUBT * len(here)

    def _cost(self, past: Past, image: U8, xy: F32, time: float) -> float:
        """How badly a pose (J, 2) px continues somebody who was hidden since."""
        middle = past.middle + past.way(time)
        off = float(np.linalg.norm(self._evidence.middle(xy) - middle)) / past.size
        return off * math.exp((past.time - time) / MOTION_SECONDS) + self._evidence.unlike(past, image, xy)
