"""People who were occluded by another or overlooked, with a detector that finds one person where two overlap."""

import numpy as np
import pytest
from drawn_people import FRAME, Merges, Sees, body, picture

from pose.tracking.config import TrackingConfig
from pose.tracking.people_tracker import PeopleTracker


class Dreams(Sees):
    """An estimator that reports the masked person in front, turned, after `awake` empty answers."""

    def __init__(self, awake, offset):
        """offset: px, from a region's centre to the hips of the person it reports falsely."""
        self.awake, self.offset, self.nights = awake, offset, 0

    def _see(self, image, regions):
        seen = super()._see(image, regions)
        self.nights += int((seen.presence < 0.5).any())
        if self.nights <= self.awake:
            return seen
        nobody = seen.presence < 0.5
        turned = (body(0) - [0, 150]) * [-1, 1]
        seen.xy[nobody] = turned + regions.centers[nobody, None] + self.offset
        seen.presence[nobody], seen.scores[nobody] = 1, 1
        return seen


def play(paths, seconds, estimator, stubborn=False, **options):
    """Ids and the places of trunks, frame by frame."""
    detector, found = Merges(stubborn), []
    stage = PeopleTracker(detector, estimator, TrackingConfig(**options))
    for index in range(round(seconds / FRAME)):
        detector.places = [path(index * FRAME) for path in paths]
        people = stage.step(picture(detector.places), index, index * FRAME)
        found.append(dict(zip(people.ids.tolist(), people.keypoints[:, 0, 0].tolist(), strict=True)))
    return found


def stands(_):
    return 350.0


def passes(time):
    """Behind who stands at 350 px from 1 to 1.4 s, and then half hidden for a while."""
    return float(np.interp(time, [0, 1, 1.4, 1.6, 2.6], [150, 350, 350, 400, 400]))


def test_lost_occluded_person_is_found_again():
    found = play((stands, passes), 2.6, Sees())
    late = found[round(1.7 / FRAME) :]
    assert any(len(people) == 1 for people in found[round(1 / FRAME) : round(1.4 / FRAME)])
    assert all(people.keys() == {1, 2} for people in late)
    for people in late:
        assert people[1] == pytest.approx(350, abs=15)
        assert people[2] == pytest.approx(400, abs=25)


def test_masking_blur_is_not_detected_as_a_person():
    def hides(time):
        return float(np.interp(time, [0, 0.5, 2.5], [150, 330, 350]))

    dreams = Dreams(awake=4, offset=(13, -8))
    found = play((stands, hides), 2.5, dreams)
    assert found[round(0.5 / FRAME)].keys() == {1, 2}
    assert dreams.nights > 10
    assert all(people.keys() == {1} for people in found[-10:])


def test_masked_search_respects_the_people_limit():
    assert max(len(people) for people in play((stands, lambda _: 410.0), 1.0, Sees(), max_people=1)) == 1


def test_remains_of_a_masked_person_are_not_a_person():
    found = play((stands,), 1.0, Dreams(awake=0, offset=(0, 1)), stubborn=True)
    assert all(people.keys() == {1} for people in found)
