"""Frame-to-frame tracking: each person's pose is estimated in the region predicted from the previous pose.

Where two people are in one crop, the estimator may return the pose of the wrong one, and the track drifts to this
person. If two tracks have the same pose, it is therefore assigned to the track that it fits better
(`pose.tracking.person_state`). The person of the other track is searched for in an image in which that body is masked
(`pose.tracking.occlusion_search`).
"""

import numpy as np

from pose.networks import crops
from pose.structures.assignment import best_pairs
from pose.structures.types import F32, U8, Boxes, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import MIN_DETECTION_IOU, Observations, PersonTrack, joint_boxes, region_boxes
from pose.tracking.occlusion_search import OcclusionSearch
from pose.tracking.person_state import PersonModel, greedy_pairs

MIN_REGION_IOU = 0.6  # minimum IoU of the regions of a detection and a track of the same person
MIN_DRIFT_IOU = 0.1  # a pose that fits another detection better by so much has drifted


class TrackFollower:
    """Estimator that follows tracked people to the next frame, where it estimates their poses."""

    def __init__(
        self, networks: PeopleNetworks, search: OcclusionSearch, model: PersonModel, config: TrackingConfig
    ) -> None:
        self._networks = networks
        self._search = search
        self._model = model
        self._min_presence = config.min_presence

    def refine_regions(self, tracks: list[PersonTrack], boxes: Boxes) -> None:
        """Replace upright regions of tracks by those of the detections that overlap them, in place."""
        # An upright region contains no more information than a box, and drifts. Rotated regions are kept, because they
        # contain more. All regions are kept with detectors that propose regions (`PeopleNetworks.boxes_only`).
        upright = [track for track in tracks if track.region.angles[0] == 0]
        if not (self._networks.boxes_only and len(boxes) and upright):
            return
        regions = self._networks.regions(boxes)
        overlap = crops.box_iou(region_boxes(upright), crops.region_boxes(regions))
        for row, column in greedy_pairs(overlap, MIN_REGION_IOU):
            upright[row].region = regions[[column]]

    def observe(self, image: U8, tracks: list[PersonTrack]) -> Observations:
        """Estimate the poses of all tracks in an image (H, W, 3), people in front first and masked for those behind."""
        free = [track for track in tracks if not track.occluders]
        regions = Regions.concatenate([track.region for track in free])
        observations = Observations.of(free, self._networks.estimate(image, regions))
        if len(free) == len(tracks):
            return observations
        poses = dict(zip(map(id, free), observations.keypoints.xy, strict=True))
        for track in tracks:
            if track.occluders:
                states = [(other, other.state) for other in track.occluders if other.state is not None]
                in_front = [poses.get(id(other), state.xy) for other, state in states]
                observations = observations.join(self._search.observe(image, track, track.region, in_front))
        return observations.select(np.array([observations.tracks.index(track) for track in tracks]))

    def find_drifted(self, observations: Observations, image: U8, time: float) -> dict[int, int]:
        """Return the other track whose person each drifted track's pose shows, as indices in `observations`."""
        drifted: dict[int, int] = {}
        for row in range(1, len(observations)):
            duplicates = [o for o in range(row) if o not in drifted and observations.are_duplicates(row, o)]
            for other in duplicates:
                own, others = (self._distance(observations, r, image, time) for r in (row, other))
                if own < others:
                    drifted[other] = row
                else:
                    drifted[row] = other
                    break
        return drifted

    def return_to_detections(
        self, observations: Observations, boxes: Boxes, image: U8, time: float
    ) -> tuple[Observations, dict[int, int]]:
        """Estimate drifted tracks again, at the detections that continue them.

        Detections and predicted boxes of all tracks are matched in one assignment. A track has drifted if its pose fits
        the detection of another track better than its own; it stays drifted, in a row of the result, if no pose fits
        its own.
        """
        known = [row for row, track in enumerate(observations.tracks) if track.state is not None]
        if len(known) < 2 or not len(boxes):
            return observations, {}
        states = [state for row in known if (state := observations.tracks[row].state) is not None]
        expected = np.concatenate(
            [crops.bounds((one.xy + one.displacement(time))[None], one.visible[None]) for one in states]
        )
        pairs = best_pairs(crops.box_iou(expected, boxes.xyxy).astype(np.float64), min_similarity=MIN_DETECTION_IOU)
        own = {known[row]: column for row, column in pairs}
        owner = {column: row for row, column in own.items()}
        fits = crops.box_iou(joint_boxes(observations.keypoints), boxes.xyxy)
        stray: dict[int, int] = {}
        for row, column in own.items():
            best = int(fits[row].argmax())
            if best == column or best not in owner or fits[row, best] < MIN_DETECTION_IOU:
                continue
            if fits[row, column] > fits[row, best] - MIN_DRIFT_IOU:
                continue
            again = self._at_detection(observations, row, owner[best], boxes[[column]], image)
            if again is None:
                stray[row] = column
            else:
                observations = observations.replaced(row, again)
        return observations, stray

    def _at_detection(
        self, observations: Observations, row: int, other: int, box: Boxes, image: U8
    ) -> Observations | None:
        """Estimate a track in the region of a detection, first as it is, then with another track's body masked."""
        region = self._networks.regions(box)
        for masked in ([], [observations.keypoints.xy[other]]):
            found = self._search.observe(image, observations.tracks[row], region, masked)
            fit = crops.box_iou(joint_boxes(found.keypoints), box.xyxy)[0, 0]
            if found.keypoints.presence[0] >= self._min_presence and fit > MIN_DETECTION_IOU:
                return found
        return None

    def is_doubtful(self, observations: Observations) -> bool:
        """Return whether any track has a probability of presence below `TrackingConfig.min_presence`."""
        return bool((observations.keypoints.presence < self._min_presence).any())

    def confirm(
        self, observations: Observations, drifted: dict[int, int], boxes: Boxes | None, image: U8, time: float
    ) -> Observations:
        """Return the tracks that show their own person, whose presence the estimator or the detector confirms."""
        # The person of a drifted track is searched for behind the person whose body its pose shows.
        present = observations.keypoints.presence >= self._min_presence
        if not drifted and present.all():
            return observations
        in_place = np.array([row not in drifted for row in range(len(observations))], bool)
        confirmed = observations.select(in_place)
        for row, owner in drifted.items():
            found = self._recover(observations, row, owner, boxes, image, time)
            if found is not None:
                confirmed = confirmed.join(found)
        present = confirmed.keypoints.presence >= self._min_presence
        if boxes is not None and not present.all():
            overlap = crops.box_iou(joint_boxes(confirmed.keypoints), boxes.xyxy)
            present[[row for row, _ in greedy_pairs(overlap, MIN_DETECTION_IOU)]] = True
        confirmed = confirmed.select(present)
        order = {id(track): row for row, track in enumerate(observations.tracks)}
        return confirmed.select(np.argsort([order[id(track)] for track in confirmed.tracks]).astype(np.int64))

    def _distance(self, observations: Observations, row: int, image: U8, time: float) -> float:
        """Return the distance of a row's pose from the state of its track, in body sizes."""
        state = observations.tracks[row].state
        assert state is not None
        return self._model.distance(state, image, observations.keypoints.xy[row], time)

    def _recover(
        self, observations: Observations, row: int, owner: int, boxes: Boxes | None, image: U8, time: float
    ) -> Observations | None:
        """Search for a drifted track's person behind the `owner` of its pose, in its region and at a detection."""
        track, other = observations.tracks[row], observations.tracks[owner]
        regions = [track.region]
        if boxes is not None and len(boxes):
            owner_box = joint_boxes(observations.keypoints)[[owner]]
            regions += self._detected_region(track, owner_box, boxes)
        if other in track.occluders:
            regions = regions[1:]  # `observe` has masked this person in that region already
        other.occluders = [nearer for nearer in other.occluders if nearer is not track]
        track.occluders = [*(nearer for nearer in track.occluders if nearer is not other), other]
        for region in regions:
            recovered = self._search.observe(image, track, region, [observations.keypoints.xy[owner]])
            with_owner = recovered.join(observations.select(np.array([owner])))
            if self._search.is_near(track, recovered, image, time) and not with_owner.are_duplicates(0, 1):
                return recovered
        return None

    def _detected_region(self, track: PersonTrack, owner_box: F32, boxes: Boxes) -> list[Regions]:
        """Return the region of the detection that overlaps the track's last box most, or none, in a list."""
        assert track.state is not None
        last_box = crops.bounds(track.state.xy[None], track.state.visible[None])
        overlap = crops.box_iou(last_box, boxes.xyxy)[0]
        overlap[crops.box_iou(owner_box, boxes.xyxy)[0].argmax()] = 0
        if overlap.max() <= MIN_DETECTION_IOU:
            return []
        return [self._networks.regions(boxes)[[int(overlap.argmax())]]]
