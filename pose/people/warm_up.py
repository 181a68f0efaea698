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


def try_once(stage: Detector | Estimator | OnePass) -> None:
    """One dark picture. Raises ValueError for an answer that is none, and whatever a network of another kind raises."""
    if isinstance(stage, Detector):
        _check_boxes(stage.detect([_IMAGE])[0])
        return
    if isinstance(stage, OnePass):
        boxes, found = stage.find([_IMAGE])[0]
        _check_boxes(boxes)
    else:
        boxes = Boxes(_BOX, _SCORE)
        found = stage.estimate([_IMAGE], [stage.regions(boxes)])[0]
    if found.xy.shape != (len(boxes), len(stage.skeleton), 2) or found.scores.shape != found.xy.shape[:2]:
        raise ValueError(f"it answers with keypoints of the shape {found.xy.shape}")
    if not (np.isfinite(found.xy).all() and np.isfinite(found.scores).all()):
        raise ValueError("it answers with what is no number")


def _check_boxes(boxes: Boxes) -> None:
    if boxes.xyxy.shape != (len(boxes.scores), 4):
        raise ValueError(f"it answers with boxes of the shape {boxes.xyxy.shape}")
    if not (np.isfinite(boxes.xyxy).all() and np.isfinite(boxes.scores).all()):
        raise ValueError("it answers with what is no number")


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
