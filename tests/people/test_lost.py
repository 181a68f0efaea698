"""Who was lost behind somebody or never found beside them, while the detector sees one person where two overlap."""

import cv2
import numpy as np
import pytest
from pose_fakes import STANDING

from pose.people.follow import PeopleTracker
from pose.skeletons import H36M17
from pose.types import Boxes, Keypoints2D, Regions

COLOURS = (60, 200)
SIZE = 280.0
ENOUGH = 300  # pixels of a person who can be recognised
FRAME = 1 / 30


def body(x):
    """(17, 2) px of somebody who stands at x."""
    return (STANDING[:, :2] * 118 + np.array([x, 150])).astype(np.float32)


def picture(places):
    """People at x, each in one colour, the first of them in front."""
    image = np.full((300, 700, 3), 128, np.uint8)
    for x, colour in reversed(list(zip(places, COLOURS, strict=False))):
        points = np.rint(body(x)).astype(int).tolist()
        for a, b in H36M17.edges:
            cv2.line(image, points[a], points[b], (colour,) * 3, 9)
    return image


class Sees:
    """An estimator that answers with whom it sees most of in a region."""

    name, skeleton = "sees", H36M17

    def regions(self, boxes):
        centers = (boxes.xyxy[:, :2] + boxes.xyxy[:, 2:]) / 2
        return Regions(centers, np.full((len(boxes), 2), SIZE, np.float32), np.zeros(len(boxes), np.float32))

    def estimate(self, images, regions):
        return [self._see(image, of_image) for image, of_image in zip(images, regions, strict=True)]

    def _see(self, image, regions):
        poses, presence = np.zeros((len(regions), 17, 2), np.float32), np.zeros(len(regions), np.float32)
        for row, center in enumerate(regions.centers):
            low = np.maximum(center - SIZE / 2, 0).astype(int)
            part = image[low[1] : low[1] + int(SIZE), low[0] : low[0] + int(SIZE), 0]
            colour = max(COLOURS, key=lambda colour: (part == colour).sum())
            y, x = np.nonzero(part == colour)
            if len(x):
                middle = low + np.array([x.min() + x.max(), y.min() + y.max()]) / 2
                poses[row] = body(0) - (body(0).min(axis=0) + body(0).max(axis=0)) / 2 + middle
                presence[row] = len(x) > ENOUGH
        scores = np.repeat(presence[:, None], 17, axis=1)
        boxes = np.concatenate([poses.min(axis=1), poses.max(axis=1)], axis=1)
        return Keypoints2D(poses, scores, presence, self.regions(Boxes(boxes, presence)))


class Dreams(Sees):
    """One that sees who stands in front turned round where they were taken out, after it saw nobody `awake` times."""

    def __init__(self, awake, offset):
        """offset: px, from a region's centre to the hips of whom it dreams of."""
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


class Merges:
    """A detector that finds one person where two whom it can see are less than 100 px apart; a stubborn one finds them
    also where they were taken out.
    """

    name = "merges"

    def __init__(self, stubborn):
        self.places, self.stubborn = [], stubborn

    def detect(self, images):
        visible = [self.stubborn or (images[0][..., 0] == colour).sum() > ENOUGH for colour in COLOURS]
        places = [x for x, shown in zip(self.places, visible, strict=False) if shown]
        apart = [x for n, x in enumerate(places) if all(abs(x - other) >= 100 for other in places[:n])]
        boxes = np.array([[*body(x).min(axis=0), *body(x).max(axis=0)] for x in apart], np.float32).reshape(-1, 4)
        return [Boxes(boxes, np.ones(len(apart), np.float32), Sees().regions(Boxes(boxes, np.ones(len(apart)))))]


def play(paths, seconds, estimator, stubborn=False, **options):
    """Ids and the places of trunks, frame by frame."""
    detector, found = Merges(stubborn), []
    stage = PeopleTracker(detector, estimator, **options)
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


def test_who_was_lost_behind_somebody_is_found_while_the_detector_sees_one():
    found = play((stands, passes), 2.6, Sees())
    late = found[round(1.7 / FRAME) :]
    assert any(len(people) == 1 for people in found[round(1 / FRAME) : round(1.4 / FRAME)])
    assert all(people.keys() == {1, 2} for people in late)
    for people in late:
        assert people[1] == pytest.approx(350, abs=15)
        assert people[2] == pytest.approx(400, abs=25)


def test_nobody_is_made_up_of_the_blur_that_covers_who_stands_in_front():
    def hides(time):
        return float(np.interp(time, [0, 0.5, 2.5], [150, 330, 350]))

    dreams = Dreams(awake=4, offset=(13, -8))
    found = play((stands, hides), 2.5, dreams)
    assert found[round(0.5 / FRAME)].keys() == {1, 2}
    assert dreams.nights > 10
    assert all(people.keys() == {1} for people in found[-10:])


def test_who_stands_beside_somebody_is_found_though_the_detector_sees_one():
    found = play((stands, lambda _: 410.0), 1.0, Sees())
    assert all(people.keys() == {1, 2} for people in found)
    assert found[-1][1] == pytest.approx(350, abs=15)
    assert found[-1][2] == pytest.approx(410, abs=15)


def test_who_fills_the_last_place_is_not_looked_past():
    assert max(len(people) for people in play((stands, lambda _: 410.0), 1.0, Sees(), max_people=1)) == 1


def test_what_is_left_of_somebody_who_was_taken_out_is_nobody():
    found = play((stands,), 1.0, Dreams(awake=0, offset=(0, 1)), stubborn=True)
    assert all(people.keys() == {1} for people in found)
