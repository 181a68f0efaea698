"""The people stage: detector, estimator and ids together, frame by frame.

Each person is tracked in a region of their own (`pose.tracking.following`), so the detector runs only in some frames
(`pose.tracking.detection_schedule`). Detections start new tracks (`pose.tracking.initiation`). Occluded people are
searched
for behind the people in front of them (`pose.tracking.occlusion_search`).
"""

from dataclasses import replace

import numpy as np

from pose.networks import crops
from pose.networks.estimators.ensemble import FurtherNetworks
from pose.structures.keypoint_sigma import score_sigma, with_distance
from pose.structures.region_filter import RegionFilter
from pose.structures.stages import Detector, Estimator
from pose.structures.types import F32, I64, U8, Boxes, Keypoints2D, People, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.cuts import CutDetector
from pose.tracking.detection_schedule import CROWD, DetectionSchedule
from pose.tracking.following import TrackFollower
from pose.tracking.id_swaps import IdSwapDetector
from pose.tracking.identities import UNASSIGNED, Identities
from pose.tracking.initiation import TrackInitiation
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import Observations, PersonTrack, count_untracked, duplicates, region_boxes
from pose.tracking.occlusion_search import LostTracks, OcclusionSearch
from pose.tracking.person_state import MIN_TOUCHING_IOU, PersonModel, PersonState
from pose.utils.progress import StageTimes

MAX_WAITING_S = 0.5  # s for which a track without a pose waits at its detection


class PeopleTracker:
    """Tracker of 2D people with a detector and an estimator (implements the `PeopleStage` protocol)."""

    # A person keeps the same id while visible, and when visible again within `TrackingConfig.memory_s`.

    def __init__(
        self,
        detector: Detector,
        estimator: Estimator,
        config: TrackingConfig | None = None,
        *,
        times: StageTimes | None = None,
        further: FurtherNetworks | None = None,
    ) -> None:
        """Start without people; the networks' run times are added to `times`, `further` networks only stored."""
        config = config or TrackingConfig()
        self.skeleton = estimator.skeleton  # joint set of the keypoints
        self.further = further  # networks that improve the keypoints, for `pose.tracking.corrections`
        self._config = config
        self._networks = PeopleNetworks(detector, estimator, times or StageTimes())
        self._model = PersonModel(estimator.skeleton)
        search = OcclusionSearch(self._networks, self._model, config)
        self._search = search
        self._follower = TrackFollower(self._networks, search, self._model, config)
        self._initiation = TrackInitiation(self._networks, search, config)
        self._identities = Identities(config.tracker, memory_s=config.memory_s, skeleton=estimator.skeleton)
        self._schedule = DetectionSchedule(config.detection_interval_s, config.memory_s)
        self._cuts = CutDetector()
        self._id_swaps = IdSwapDetector(self._model)
        self._lost = LostTracks(config.memory_s)
        self._tracks: list[PersonTrack] = []
        self._boxes = np.zeros((0, 4), np.float32)  # boxes of the tracks
        self._time = -np.inf

    @property
    def regions(self) -> dict[int, Regions]:
        """Regions of the people of the last frame, by id, without people who are occluded by others."""
        return {track.id: track.region for track in self._tracks if not track.occluders}

    def estimate(self, image: U8, region: Regions) -> Keypoints2D:
        """Estimate the keypoints of the person in one region, without any effect on the tracks."""
        return self._networks.estimate(image, region)

    def is_present(self, keypoints: Keypoints2D) -> bool:
        """Return whether a crop shows a person."""
        return bool(keypoints.presence[0] >= self._config.min_presence)

    def step(self, image: U8, index: int, time: float, *, cut: bool | None = None) -> People:
        """Return the people in the next frame, sorted by id; `cut` is None if cuts are to be detected here."""
        cut = self._cuts.is_cut(image) if cut is None else cut
        if cut:
            self._reset()
        elif time - self._time > self._config.memory_s:  # after an interruption of the stream all tracks are new
            self._tracks, self._lost = [], LostTracks(self._config.memory_s)
        self._time = time
        detect = self._schedule.is_due(image, self._tracks, self._boxes, time)
        has_room = len(self._tracks) < self._config.max_people or self._networks.boxes_only
        boxes = self._networks.detect(image) if detect and has_room else None
        if boxes is not None:
            self._follower.refine_regions(self._tracks, boxes)
        found = self._follower.observe(image, self._tracks)
        waiting: list[PersonTrack] = []
        crowd = boxes is not None and self._networks.boxes_only and len(self._tracks) >= CROWD
        if boxes is not None and crowd:
            found, boxes, waiting = self._returned(found, boxes, image, time)
        drifted = self._follower.find_drifted(found, image, time)
        if boxes is None and (drifted or self._follower.is_doubtful(found)):
            detect, boxes = True, self._networks.detect(image)
        found = self._follower.confirm(found, drifted, boxes, image, time)
        found = self._search.add_lost(found, self._lost.tracks, image, time)
        if len(found) < len(self._tracks):
            self._schedule.record_loss(time)
        if boxes is not None:
            found = self._initiation.add_detected(found, boxes, image)
            found = self._initiation.add_overlooked(found, self._lost.tracks, image, time)
        detected = boxes.xyxy if boxes is not None and crowd else None
        found = self._assign_ids(found.select(~duplicates(found, detected)), image, time)
        known = [track.id for track in found.tracks]
        waiting = [track for track in waiting if track.id not in known]
        self._tracks, self._boxes = found.tracks + waiting, np.concatenate([found.boxes, region_boxes(waiting)])
        self._update_states(found, image, time)
        self._schedule.record_frame(self._tracks, detect, time)
        return _people(found, boxes, index, time, cut)

    def _returned(
        self, found: Observations, boxes: Boxes, image: U8, time: float
    ) -> tuple[Observations, Boxes, list[PersonTrack]]:
        """Return people and detections that stay drifted without their tracks, and these tracks, which wait there."""
        found, stray = self._follower.return_to_detections(found, boxes, image, time)
        waiting = []
        for row, column in stray.items():
            track = found.tracks[row]
            if track.state is not None and time - track.state.time < MAX_WAITING_S:
                track.region, track.region_filter = self._networks.regions(boxes[[column]]), RegionFilter()
                waiting.append((track, column))
        taken = [column for _, column in waiting]
        found = found.select(np.array([row not in stray for row in range(len(found))], bool))
        return found, boxes[[n for n in range(len(boxes)) if n not in taken]], [track for track, _ in waiting]

    def _reset(self) -> None:
        """Remove all people, for a new scene."""
        self._identities.reset()
        self._id_swaps = IdSwapDetector(self._model)
        self._tracks, self._lost = [], LostTracks(self._config.memory_s)
        self._boxes = np.zeros((0, 4), np.float32)
        self._schedule.reset()
        self._initiation.reset()

    def _assign_ids(self, found: Observations, image: U8, time: float) -> Observations:
        """Assign ids and the regions for the next frame; return the people with an id, sorted by id."""
        self._lost.add(self._tracks, found)
        ids = np.array([track.id for track in found.tracks], np.int64)
        region_boxes = crops.region_boxes(found.keypoints.next_regions)
        poses: F32 = np.concatenate([found.keypoints.xy, found.keypoints.scores[..., None]], axis=-1)
        ids = self._identities.assign(region_boxes, found.keypoints.presence, ids, time, image, poses)
        switched = self._id_swaps.find(found, ids.tolist(), image, time)
        if switched is not None:
            ids = self._swap_ids(found, ids, switched)
        for row, track in enumerate(found.tracks):
            if track.id == UNASSIGNED:
                track.detected_at = time
            track.id = int(ids[row])
            track.region = track.region_filter(found.keypoints.next_regions[row : row + 1], time)
        found = found.select(ids != UNASSIGNED)
        found = found.select(np.argsort([track.id for track in found.tracks], kind="stable").astype(np.int64))
        self._lost.remove(found, time)
        return found

    def _swap_ids(self, found: Observations, ids: I64, people: dict[int, PersonState]) -> I64:
        """Swap two ids and their clothing colours; return the corrected ids (P,)."""
        first_id, second_id = people
        self._identities.swap_ids(first_id, second_id)
        self._lost.swap_ids(people)
        ids = np.where(ids == first_id, second_id, np.where(ids == second_id, first_id, ids))
        for person, before in people.items():
            for row in np.flatnonzero(ids == person):
                state = found.tracks[row].state
                found.tracks[row].state = None if state is None else replace(state, colours=before.colours)
        return ids

    def _update_states(self, found: Observations, image: U8, time: float) -> None:
        """Update `occluders` and `state` of all tracks."""
        touching = found.iou > MIN_TOUCHING_IOU
        k = found.keypoints
        for row, track in enumerate(found.tracks):
            near = [found.tracks[other] for other in np.flatnonzero(touching[row])]
            track.occluders = [other for other in track.occluders if other in near]
            alone = len(near) == 1  # a track touches itself
            track.state = self._model.update(track.state, image, k.xy[row], k.scores[row], time, learn_colours=alone)


def _people(found: Observations, boxes: Boxes | None, index: int, time: float, cut: bool) -> People:
    """Return the result of a frame."""
    k = found.keypoints
    return People(
        index=index,
        time=time,
        ids=np.array([track.id for track in found.tracks], np.int64),
        boxes=found.boxes,
        box_scores=k.presence,
        keypoints=k.xy,
        scores=k.scores,
        keypoint_sigma=with_distance(score_sigma(k.xy, k.scores), k.distance),
        untracked=0 if boxes is None else count_untracked(boxes, found.boxes),
        cut=cut,
    )
