"""Start of new tracks for detected people."""

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.structures.types import F32, U8, Boxes, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.following import MIN_REGION_IOU
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import (
    MIN_DETECTION_IOU,
    Observations,
    PersonTrack,
    boxes_touch,
    joint_boxes,
    region_boxes,
)
from pose.tracking.occlusion_search import OcclusionSearch
from pose.tracking.person_state import greedy_pairs

MASKED_DETECTION_INTERVAL_S = 0.3  # minimum time between two detection passes with all tracked people masked
# Minimum fraction of the limb joints outside the mask. What remains of masked people can look like a person.
MIN_VISIBLE_JOINTS = 0.6


class TrackInitiation:
    """Creator of tracks for detected people who are not tracked yet."""

    def __init__(self, networks: PeopleNetworks, search: OcclusionSearch, config: TrackingConfig) -> None:
        self._networks = networks
        self._search = search
        self._max_people = config.max_people
        self._min_presence = config.min_presence
        self.reset()

    def reset(self) -> None:
        """Restart, for a new scene."""
        self._next_masked_detection = -np.inf

    def add_detected(self, observations: Observations, boxes: Boxes, image: U8) -> Observations:
        """Add tracks for untracked detections up to the maximum, those of large score times area first."""
        regions = self._networks.regions(boxes)
        overlap = crops.box_iou(crops.region_boxes(regions), region_boxes(observations.tracks))
        free = np.asarray(~(overlap > MIN_REGION_IOU).any(axis=1))
        tracked = joint_boxes(observations.keypoints)
        free[[column for _, column in greedy_pairs(crops.box_iou(tracked, boxes.xyxy), MIN_DETECTION_IOU)]] = False
        rows = np.flatnonzero(free)
        if not len(rows):
            return observations
        rows = rows[np.argsort(-_priority(boxes[rows]), kind="stable")][: max(0, self._max_people - len(observations))]
        touching = boxes_touch(boxes.xyxy[rows], tracked)
        alone = rows[~touching.any(axis=1)]
        tracks = [PersonTrack(regions[[int(row)]]) for row in alone]
        found = Observations.of(tracks, self._networks.estimate(image, regions[alone]))
        found = found.select(found.keypoints.presence >= self._min_presence)
        for row, near in zip(rows, touching, strict=True):
            if near.any():
                found = found.join(
                    self._start_touching(image, regions[[int(row)]], boxes.xyxy[[row]], observations, near)
                )
        return observations.join(found)

    def add_overlooked(
        self, observations: Observations, lost: list[PersonTrack], image: U8, time: float
    ) -> Observations:
        """Add a person that the detector finds only with all tracked people masked, unless tracks are lost."""
        # This step applies only to detectors that propose regions (`PeopleNetworks.boxes_only`), which detect one
        # person where two overlap. More than 60 % of the limb joints must lie outside the masks.
        due = 0 < len(observations) < self._max_people and time >= self._next_masked_detection and not lost
        if self._networks.boxes_only or not due:
            return observations
        self._next_masked_detection = time + MASKED_DETECTION_INTERVAL_S
        masker, people = self._search.masker, list(observations.keypoints.xy)
        masked = masker.mask(image, crops.letterbox_region(image, (1, 1)), people)
        boxes = self._networks.detect(masked.image)
        if not len(boxes):
            return observations
        region = masked.regions_to_image(self._networks.regions(boxes)[[0]])
        crop, track = masker.mask(image, region, people), PersonTrack(region)
        added = self._networks.estimate_masked(crop, track, region)
        present = added.keypoints.presence[0] >= self._min_presence
        visible = crop.is_visible(added.keypoints.xy[0][masker.limbs]).mean() > MIN_VISIBLE_JOINTS
        joined = observations.join(added)
        if not (present and visible) or joined.last_is_duplicate():
            return observations
        in_front = np.flatnonzero(boxes_touch(added.boxes, observations.boxes)[0])
        track.occluders = [observations.tracks[row] for row in in_front]
        return joined

    def _start_touching(
        self, image: U8, region: Regions, box: F32, observations: Observations, near: NDArray[np.bool_]
    ) -> Observations:
        """Start a track for a detection that touches people `near`; no row if it shows a tracked person."""
        track = PersonTrack(region)
        for in_front in (np.zeros(0, np.int64), np.flatnonzero(near)):
            added = self._search.observe(image, track, region, list(observations.keypoints.xy[in_front]))
            present = added.keypoints.presence[0] >= self._min_presence
            agrees = crops.box_iou(joint_boxes(added.keypoints), box)[0, 0] > MIN_DETECTION_IOU
            joined = observations.join(added)
            if present and agrees and not joined.last_is_duplicate():
                track.occluders = [observations.tracks[other] for other in in_front]
                return added
        return added.select(np.zeros(1, bool))


def _priority(boxes: Boxes) -> F32:
    """Return the priority (P,) of detections for new tracks: score times area."""
    result: F32 = boxes.scores * (boxes.xyxy[:, 2:] - boxes.xyxy[:, :2]).prod(axis=1)
    return result
