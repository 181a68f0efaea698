"""The two networks of the people stage, with their run times and their warm-up before live frames.

The first use loads libraries, allocates buffers and compiles kernels.
"""

import numpy as np

from pose.structures.stages import Detector, Estimator, LifterStage, OnePass
from pose.structures.types import U8, Boxes, Keypoints2D, People, Regions
from pose.tracking.identities import UNASSIGNED, Identities
from pose.tracking.masking import MaskedCrop
from pose.tracking.observations import Observations, PersonTrack
from pose.utils.progress import StageTimes


class PeopleNetworks:
    """Detector and keypoint estimator of the people stage, with measured run times."""

    # Detectors that return only boxes (RTMDet, YOLO) find both of two people who overlap; detectors that propose
    # regions (BlazePose) find one. `boxes_only` is known after the first detection.

    def __init__(self, detector: Detector, estimator: Estimator, times: StageTimes) -> None:
        """Store the networks; their run times are added to `times`."""
        self.skeleton = estimator.skeleton  # joint set of the estimator
        self.boxes_only = False  # whether the detector returns boxes without regions, known after the first detection
        self._detector = detector
        self._estimator = estimator
        self._times = times

    def detect(self, image: U8) -> Boxes:
        """Return the detections in an image (H, W, 3) uint8 RGB, best first."""
        with self._times.measure("detect"):
            boxes = self._detector.detect([image])[0]
        self.boxes_only = boxes.regions is None
        return boxes

    def regions(self, boxes: Boxes) -> Regions:
        """Return the crop region of each detection, in the same order."""
        return self._estimator.regions(boxes)

    def estimate(self, image: U8, regions: Regions) -> Keypoints2D:
        """Return the keypoints in each region of an image (H, W, 3) uint8 RGB, in the same order."""
        with self._times.measure("keypoints"):
            return self._estimator.estimate([image], [regions])[0]

    def estimate_masked(self, crop: MaskedCrop, track: PersonTrack, region: Regions) -> Observations:
        """Estimate the pose of one track in a masked crop, in px of the whole image."""
        keypoints = self.estimate(crop.image, crop.regions_to_crop(region))
        return Observations.of([track], crop.keypoints_to_image(keypoints))


_IMAGE = np.zeros((256, 256, 3), np.uint8)
_BOX = np.array([[64, 32, 192, 224]], np.float32)
_SCORE = np.ones(1, np.float32)
_ID = np.ones(1, np.int64)


def warm_up_networks(detector: Detector, estimator: Estimator) -> None:
    """Run the detector and the estimator once on a black image."""
    detector.detect([_IMAGE])
    estimator.estimate([_IMAGE], [estimator.regions(Boxes(_BOX, _SCORE))])


def warm_up_one_pass(network: OnePass) -> None:
    """Run a one-pass network once on a black image."""
    network.find([_IMAGE])


def try_once(stage: Detector | Estimator | OnePass) -> None:
    """Run a network on a black image, and check the output.

    Raises:
        ValueError: If the output has the wrong shape, or contains NaN or infinity. Files of other model families may
            cause other exceptions.
    """
    if isinstance(stage, Detector):
        _check_boxes(stage.detect([_IMAGE])[0])
        return
    if isinstance(stage, OnePass):
        boxes, found = stage.find([_IMAGE])[0]
        _check_boxes(boxes)
    else:
        boxes = Boxes(_BOX, _SCORE)
        found = stage.estimate([_IMAGE], [stage.regions(boxes)])[0]
    expected = (len(boxes), len(stage.skeleton), 2)
    if found.xy.shape != expected or found.scores.shape != found.xy.shape[:2]:
        raise ValueError(f"keypoints: expected shape {expected}, got {found.xy.shape}")
    if not (np.isfinite(found.xy).all() and np.isfinite(found.scores).all()):
        raise ValueError("the output contains NaN or infinity")


def _check_boxes(boxes: Boxes) -> None:
    if boxes.xyxy.shape != (len(boxes.scores), 4):
        raise ValueError(f"boxes: expected shape {(len(boxes.scores), 4)}, got {boxes.xyxy.shape}")
    if not (np.isfinite(boxes.xyxy).all() and np.isfinite(boxes.scores).all()):
        raise ValueError("the output contains NaN or infinity")


def warm_up_tracker(tracker: str) -> None:
    """Run a box tracker once by losing and re-identifying a person, as it is imported only then."""
    identities = Identities(tracker)
    identities.assign(_BOX, _SCORE, _ID * UNASSIGNED, 0.0, _IMAGE)
    identities.assign(_BOX[:0], _SCORE[:0], _ID[:0], 0.1, _IMAGE)
    identities.assign(_BOX, _SCORE, _ID * UNASSIGNED, 0.2, _IMAGE)


def warm_up_lifter(stage: LifterStage, joints: int) -> None:
    """Lift one person with `joints` keypoints once."""
    keypoints, scores = np.full((1, joints, 2), 128, np.float32), np.ones((1, joints), np.float32)
    stage.push(People(0, 0.0, _ID, _BOX, _SCORE, keypoints, scores))
    stage.flush()
