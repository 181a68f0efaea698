"""Detection of id switches after one person occluded another.

During an occlusion it is unknown which of the two people a track shows. Before the occlusion, position, velocity, body
size and clothing colours of both were known. When the two are apart again, the poses are compared with these states. If
swapped ids fit clearly better, the ids were switched.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pose.structures.types import F32, U8
from pose.tracking.observations import Observations
from pose.tracking.person_state import MIN_TOUCHING_IOU, PersonModel, PersonState

# Hysteresis thresholds of the distance of two trunks, in body sizes: an occlusion starts below the first and ends
# above the second.
OCCLUSION_START_DISTANCE = 0.2
OCCLUSION_END_DISTANCE = 0.27
POSITION_TIME_CONSTANT_S = 0.6  # time constant with which the predicted position loses its weight
MIN_GAIN = 0.04  # minimum improvement of the fit by swapped ids, in body sizes per person
MAX_ENCOUNTER_S = 5.0  # an encounter is dropped after this time if one of the two is missing


@dataclass(frozen=True, slots=True)
class _Encounter:
    """Two people who touch; `time` is when both were last known to be without occlusion."""

    states: tuple[PersonState, PersonState]  # states of both people at `time`
    time: float  # time at which both were last known to be without occlusion, s
    occluded: bool  # whether one may have occluded the other since then


class IdSwapDetector:
    """Detector of switched ids, which compares people before and after they occlude each other."""

    def __init__(self, model: PersonModel) -> None:
        self._model = model
        self._encounters: dict[tuple[int, int], _Encounter] = {}

    def find(self, observations: Observations, ids: list[int], image: U8, time: float) -> dict[int, PersonState] | None:
        """Return the states, by id, of two people from before their ids were switched; None if none were."""
        # If several pairs were switched, the one with the clearest evidence is returned. The others are checked again
        # in the next frame, with corrected ids.
        if len(ids) < 2 and not self._encounters:
            return None
        rows = {person: row for row, person in enumerate(ids) if observations.tracks[row].state is not None}
        iou = observations.iou
        touching = {
            pair for pair in combinations(sorted(rows), 2) if iou[rows[pair[0]], rows[pair[1]]] > MIN_TOUCHING_IOU
        }
        best: tuple[int, int] | None = None
        best_encounter, best_gain = None, 0.0
        for pair in sorted(touching | self._encounters.keys()):
            visible = {person: rows[person] for person in pair if person in rows}
            known = self._encounters.get(pair)
            encounter = self._updated(pair, visible, observations, pair in touching, time)
            if encounter is None:
                self._encounters.pop(pair, None)
            else:
                self._encounters[pair] = encounter
            still_occluded = len(visible) == 2 and encounter is not None and encounter.occluded
            if visible and not still_occluded and known is not None and known.occluded:
                gain = self._gain(known, pair, visible, observations, image, time)
                if gain > best_gain:
                    best, best_encounter, best_gain = pair, known, gain
        if best is None or best_encounter is None:
            return None
        self._swap(best, best_encounter)
        return dict(zip(best, best_encounter.states, strict=True))

    def _swap(self, pair: tuple[int, int], swapped: _Encounter) -> None:
        """Swap the ids of a pair in the encounters that were recorded after their occlusion began."""
        swap = {pair[0]: pair[1], pair[1]: pair[0]}
        recorded = sorted(self._encounters.items(), key=lambda item: item[1].time)
        self._encounters = {}
        for (a, b), encounter in recorded:
            if (a, b) == pair:
                encounter = swapped
            elif encounter.time > swapped.time:
                a, b = swap.get(a, a), swap.get(b, b)
            if a > b:
                a, b, encounter = b, a, replace(encounter, states=encounter.states[::-1])
            self._encounters.setdefault((a, b), encounter)  # the earlier record is more reliable

    def _updated(
        self, pair: tuple[int, int], visible: dict[int, int], observations: Observations, touching: bool, time: float
    ) -> _Encounter | None:
        """Return the encounter of a pair after this frame; None once they are apart."""
        known = self._encounters.get(pair)
        if len(visible) < 2:
            assert known is not None
            return replace(known, occluded=True) if time - known.time < MAX_ENCOUNTER_S else None
        if not touching:
            return None
        a, b = (self._model.trunk_centre(observations.keypoints.xy[visible[person]]) for person in pair)
        states = observations.tracks[visible[pair[0]]].state, observations.tracks[visible[pair[1]]].state
        assert states[0] is not None and states[1] is not None  # noqa: PT018
        distance = float(np.linalg.norm(a - b)) / max(states[0].size, states[1].size)
        if known is not None and distance < (OCCLUSION_END_DISTANCE if known.occluded else OCCLUSION_START_DISTANCE):
            return replace(known, occluded=True)
        return _Encounter((states[0], states[1]), time, occluded=False)

    def _gain(
        self,
        encounter: _Encounter,
        pair: tuple[int, int],
        visible: dict[int, int],
        observations: Observations,
        image: U8,
        time: float,
    ) -> float:
        """Return how much better swapped ids fit, minus `MIN_GAIN` per person, in body sizes; above 0 is a switch."""
        # It is 0 if only one of the two is visible and the encounter is older than `POSITION_TIME_CONSTANT_S`, because
        # the predicted position is needed then: body size and colours can differ less between two people than between
        # two poses of one person.
        if len(visible) < 2 and time - encounter.time > POSITION_TIME_CONSTANT_S:
            return 0.0
        states = dict(zip(pair, encounter.states, strict=True))
        swap = {pair[0]: pair[1], pair[1]: pair[0]}
        xy = observations.keypoints.xy
        current, swapped = (
            sum(self._cost(states[names[person]], image, xy[row], time) for person, row in visible.items())
            for names in ({person: person for person in pair}, swap)
        )
        return current - swapped - MIN_GAIN * len(visible)

    def _cost(self, state: PersonState, image: U8, xy: F32, time: float) -> float:
        """Return the distance of a pose (J, 2) px from a person whose last known state is `state`, in body sizes."""
        expected = state.trunk_centre + state.displacement(time)
        offset = float(np.linalg.norm(self._model.trunk_centre(xy) - expected)) / state.size
        weight = math.exp((state.time - time) / POSITION_TIME_CONSTANT_S)
        return offset * weight + self._model.appearance_distance(state, image, xy)
