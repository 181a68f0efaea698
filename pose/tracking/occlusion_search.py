"""Lost tracks of people who touched another person, and the search for them in masked crops.

Detectors that propose regions, such as BlazePose's, detect one person where two overlap. A person who was lost there is
therefore searched for at the predicted position in every frame for a limited time (`pose.tracking.occlusion_search`).
"""

import math
from dataclasses import replace

import numpy as np

from pose.networks import crops
from pose.structures.region_filter import RegionFilter
from pose.structures.types import F32, I64, U8, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.masking import PersonMasker
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import Observations, PersonTrack, boxes_touch
from pose.tracking.person_state import PersonModel, PersonState

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


class LostTracks:
    """Store that keeps lost tracks, in the order of their loss, for a limited time."""

    def __init__(self, memory_s: float) -> None:
        """Start without tracks, which are kept for `memory_s`."""
        self._memory = memory_s
        self.tracks: list[PersonTrack] = []  # the lost tracks, in the order in which they were lost

    def add(self, before: list[PersonTrack], observations: Observations) -> None:
        """Add the tracks that were lost in this frame while they touched a person who is observed."""
        missing = [track for track in before if track not in observations.tracks and track not in self.tracks]
        self.tracks += [t for t in missing if t.state is not None and len(touching_rows(t, observations))]

    def remove(self, observations: Observations, time: float) -> None:
        """Remove tracks that are observed again or were lost too long ago."""
        # A track is also removed if a detection has started a newer track within the last `memory_s` seconds. The new
        # track either shows the missing person, or the box tracker has decided that it does not.
        ids = {track.id for track in observations.tracks}
        starts = (track.detected_at for track in observations.tracks)
        newest = max((start for start in starts if time - start < self._memory), default=-math.inf)
        self.tracks = [
            track
            for track in self.tracks
            if track.id not in ids
            and track.state is not None
            and time - track.state.time < self._memory
            and newest <= track.detected_at
        ]

    def swap_ids(self, people: dict[int, PersonState]) -> None:
        """Swap two ids among the lost tracks, which get the clothing colours of their new ids."""
        one, other = people
        swap = {one: other, other: one}
        for track in self.tracks:
            if track.id in swap and track.state is not None:
                track.id = swap[track.id]
                track.state = replace(track.state, colours=people[track.id].colours)


def touching_rows(track: PersonTrack, observations: Observations) -> I64:
    """Return the indices (N,) of the people in `observations` whose boxes touch the last box of a track."""
    assert track.state is not None
    last = crops.bounds(track.state.xy[None], track.state.visible[None])
    return np.flatnonzero(boxes_touch(last, observations.boxes)[0])


def predict(track: PersonTrack, time: float) -> tuple[PersonState, Regions]:
    """Predict the state and the crop region of a lost track at `time` (s). Its velocity decays exponentially."""
    state = track.state
    assert state is not None
    offset = state.displacement(time)
    region = Regions(track.region.centers + offset, track.region.sizes, track.region.angles)
    return replace(state, xy=state.xy + offset, velocity=np.zeros(2, np.float32), time=time), region
