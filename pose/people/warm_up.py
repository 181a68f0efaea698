"""Do everything once before the first live frame: what is loaded, allocated or compiled at first use would delay it."""

import numpy as np

from pose.people.identities import NOT_SEEN_BEFORE, Identities
from pose.stages import Detector, Estimator, LifterStage, OnePass
from pose.types import Boxes, People

_IMAGE = np.zeros((256, 256, 3), np.uint8)
_BOX = np.array([[64, 32, 192, 224]], np.float32)
_SCORE = np.ones(1, np.float32)
_ID = np.ones(1, np.int64)


def warm_up_networks(detector: Detector, estimator: Estimator) -> None:
    """A dark picture, and the crop of it in which somebody could be."""
    detector.detect([_IMAGE])
    estimator.estimate([_IMAGE], [estimator.regions(Boxes(_BOX, _SCORE))])


def warm_up_one_pass(network: OnePass) -> None:
    """A dark picture."""
    network.find([_IMAGE])


def warm_up_tracker(tracker: str) -> None:
    """Somebody who is lost and comes back: only then `pose.people.identities` loads its library."""
    identities = Identities(tracker)
    identities.assign(_BOX, _SCORE, _ID * NOT_SEEN_BEFORE, 0.0, _IMAGE)
    identities.assign(_BOX[:0], _SCORE[:0], _ID[:0], 0.1, _IMAGE)
    identities.assign(_BOX, _SCORE, _ID * NOT_SEEN_BEFORE, 0.2, _IMAGE)


def warm_up_lifter(stage: LifterStage, joints: int) -> None:
    """Somebody with that many keypoints."""
    keypoints, scores = np.full((1, joints, 2), 128, np.float32), np.ones((1, joints), np.float32)
    stage.push(People(0, 0.0, _ID, _BOX, _SCORE, keypoints, scores))
    stage.flush()
