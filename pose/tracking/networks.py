"""The two networks of the people stage, with their run times."""

from pose.structures.stages import Detector, Estimator
from pose.structures.types import U8, Boxes, Keypoints2D, Regions
from pose.tracking.masking import MaskedCrop
from pose.tracking.observations import Observations, PersonTrack
from pose.utils.times import StageTimes


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
