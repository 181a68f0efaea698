"""Search for occluded people, in crops in which the people in front of them are masked."""

from pose.structures.region_filter import RegionFilter
from pose.structures.types import F32, U8, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.lost_tracks import predict, touching_rows
from pose.tracking.masking import PersonMasker
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import Observations, PersonTrack
from pose.tracking.person_state import PersonModel

# Minimum fraction of the limb joints outside the mask. A pose with fewer shows only blur.
MIN_VISIBLE_JOINTS = 0.2
MAX_SEARCH_DISTANCE = 0.6  # body sizes, maximum distance of an occluded person's pose from the predicted one


class OcclusionSearch:
    """Search for the poses of occluded and lost people."""

    def __init__(self, networks: PeopleNetworks, model: PersonModel, config: TrackingConfig) -> None:
        self._networks = networks
        self._model = model
        self._min_presence = config.min_presence
        self.masker = PersonMasker(networks.skeleton)

    def observe(self, image: U8, track: PersonTrack, region: Regions, poses: list[F32]) -> Observations:
        """Estimate a track's pose in a region of length 1, with people of poses (J, 2) px masked."""
        return self._networks.estimate_masked(self.masker.mask(image, region, poses), track, region)

    def is_near(self, track: PersonTrack, observations: Observations, image: U8, time: float) -> bool:
        """Return whether the first pose is similar to the predicted pose and the appearance of a track."""
        assert track.state is not None
        xy = observations.keypoints.xy[0]
        return self._model.distance(track.state, image, xy, time) < MAX_SEARCH_DISTANCE

    def add_lost(self, observations: Observations, lost: list[PersonTrack], image: U8, time: float) -> Observations:
        """Add lost tracks that are found behind the people that they touched, and set their `occluders`."""
        # Detectors that return only boxes (`PeopleNetworks.boxes_only`) detect both of two people who overlap, so a
        # person without a box is fully occluded, and nothing is added.
        if self._networks.boxes_only:
            return observations
        for track in lost:
            in_front = touching_rows(track, observations)
            if not len(in_front):
                continue
            state, region = predict(track, time)
            crop = self.masker.mask(image, region, list(observations.keypoints.xy[in_front]))
            recovered = self._networks.estimate_masked(crop, track, region)
            joined, xy = observations.join(recovered), recovered.keypoints.xy[0]
            present = recovered.keypoints.presence[0] >= self._min_presence
            visible = crop.is_visible(xy[self.masker.limbs]).mean() > MIN_VISIBLE_JOINTS
            near = self._model.distance(state, image, xy, time) < MAX_SEARCH_DISTANCE
            if present and visible and near and not joined.last_is_duplicate():
                track.occluders = [observations.tracks[row] for row in in_front]
                track.region_filter = RegionFilter()
                observations = joined
        return observations
