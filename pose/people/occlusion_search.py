"""Search for people behind others, in crops in which the people in front are masked."""

from pose.people.config import TrackingConfig
from pose.people.lost_tracks import predict, touching_rows
from pose.people.masking import PersonMasker
from pose.people.networks import PeopleNetworks
from pose.people.observations import Observations, PersonTrack
from pose.people.person_state import PersonModel
from pose.people.region_filter import RegionFilter
from pose.types import F32, U8, Regions

# Share of the limb joints that must be visible beside the mask; a pose with fewer is made of the blur.
MIN_VISIBLE_JOINTS = 0.2
MAX_SEARCH_DISTANCE = 0.6  # body sizes between an occluded person's pose and the predicted one


class OcclusionSearch:
    """Search for the poses of occluded and lost people."""

    def __init__(self, networks: PeopleNetworks, model: PersonModel, config: TrackingConfig) -> None:
        self._networks = networks
        self._model = model
        self._min_presence = config.min_presence
        self.masker = PersonMasker(networks.skeleton)

    def observe(self, image: U8, track: PersonTrack, region: Regions, poses: list[F32]) -> Observations:
        """Estimate the pose of a track with other people masked.

        Args:
            image: (H, W, 3) uint8 RGB.
            track: The occluded person.
            region: Crop to search in; one row.
            poses: (J, 2) px each, the people to mask.
        """
        return self._networks.estimate_masked(self.masker.mask(image, region, poses), track, region)

    def is_near(self, track: PersonTrack, observations: Observations, image: U8, time: float) -> bool:
        """Return whether the pose in the first row fits the state of a track."""
        assert track.state is not None
        xy = observations.keypoints.xy[0]
        return self._model.distance(track.state, image, xy, time) < MAX_SEARCH_DISTANCE

    def add_lost(self, observations: Observations, lost: list[PersonTrack], image: U8, time: float) -> Observations:
        """Add lost tracks that are found behind the people they touched.

        This search is not used with detectors that return only boxes. They find a box for each of two people who
        overlap, so a person without a box is fully occluded.

        Args:
            observations: The people found in this frame.
            lost: Lost tracks. `occluders` of those that are found is set.
            image: (H, W, 3) uint8 RGB.
            time: Time of the frame, s.
        """
        if self._networks.boxes_only:
            return observations
        for track in lost:
            in_front = touching_rows(track, observations)
            if not len(in_front):
                continue
            state, region = predict(track, time)
            crop = self.masker.mask(image, region, list(observations.keypoints.xy[in_front]))
            found = self._networks.estimate_masked(crop, track, region)
            both, xy = observations.join(found), found.keypoints.xy[0]
            present = found.keypoints.presence[0] >= self._min_presence
            visible = crop.is_visible(xy[self.masker.limbs]).mean() > MIN_VISIBLE_JOINTS
            near = self._model.distance(state, image, xy, time) < MAX_SEARCH_DISTANCE
            if present and visible and near and not both.last_is_duplicate():
                track.occluders = [observations.tracks[row] for row in in_front]
                track.region_filter = RegionFilter()
                observations = both
        return observations
