"""Drawn people, an estimator that finds one of two who overlap, and a detector that does so, too."""

import cv2
import numpy as np
from pose_fakes import STANDING

from pose.structures.skeletons import H36M17
from pose.structures.types import Boxes, Keypoints2D, Regions

COLOURS = (60, 200)
SIZE = 280.0
ENOUGH = 300  # pixels of a person who can be recognised
FRAME = 1 / 30


def body(x):
    """(17, 2) px of a person who stands at x."""
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
    """An estimator that returns the most visible person in a region."""

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


class Merges:
    """A detector that finds one person where two visible people are less than 100 px apart; a stubborn one finds them
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
