"""People stage for networks that find people and joints in one pass.

The network runs on every frame, and the people that it finds get ids.
"""

import numpy as np

from pose.structures.keypoint_sigma import score_sigma
from pose.structures.stages import OnePass
from pose.structures.types import F32, U8, People
from pose.tracking.association import MIN_START_SCORE
from pose.tracking.config import TrackingConfig
from pose.tracking.cuts import CutDetector
from pose.tracking.identities import UNASSIGNED, Identities
from pose.tracking.observations import count_untracked
from pose.utils.progress import StageTimes


class OnePassPeople:
    """Tracker of 2D people for one-pass networks (implements the `PeopleStage` protocol)."""

    def __init__(
        self, network: OnePass, config: TrackingConfig | None = None, *, times: StageTimes | None = None
    ) -> None:
        """Start without people; of more than `max_people`, those with the lowest ids are returned."""
        config = config or TrackingConfig()
        self.skeleton = network.skeleton  # joint set of the keypoints
        self._network = network
        self._identities = Identities(config.tracker, memory_s=config.memory_s, skeleton=network.skeleton)
        self._max_people = config.max_people
        self._cuts = CutDetector()
        self._times = times or StageTimes()

    def step(self, image: U8, index: int, time: float) -> People:
        """Return the people in the next frame, sorted by id."""
        with self._times.measure("people and keypoints"):
            boxes, keypoints = self._network.find([image])[0]
        cut = self._cuts.is_cut(image)
        if cut:
            self._identities.reset()
        unassigned = np.full(len(boxes), UNASSIGNED, np.int64)
        # The network has applied its own threshold, so every box may start a track.
        scores: F32 = np.maximum(boxes.scores, MIN_START_SCORE)
        poses: F32 = np.concatenate([keypoints.xy, keypoints.scores[..., None]], axis=-1)
        ids = self._identities.assign(boxes.xyxy, scores, unassigned, time, image, poses)
        rows = np.flatnonzero(ids != UNASSIGNED)
        rows = rows[np.argsort(ids[rows], kind="stable")][: self._max_people]
        return People(
            index=index,
            time=time,
            ids=ids[rows],
            boxes=boxes.xyxy[rows],
            box_scores=boxes.scores[rows],
            keypoints=keypoints.xy[rows],
            scores=keypoints.scores[rows],
            keypoint_sigma=score_sigma(keypoints.xy[rows], keypoints.scores[rows]),
            untracked=count_untracked(boxes, boxes.xyxy[rows]),
            cut=cut,
        )
