"""The people stage of networks that find people and their joints in one pass: every frame anew, then identities."""

import numpy as np

from pose.people.cuts import Cuts
from pose.people.identities import NOT_SEEN_BEFORE, SURE_SCORE, Identities
from pose.people.unfollowed import count_unfollowed
from pose.stages import LONGEST_GAP_SECONDS, OnePass
from pose.system.times import StageTimes
from pose.types import U8, People


class OnePassPeople:
    """Frames in, tracked 2D people out (the `PeopleStage` protocol)."""

    def __init__(
        self,
        network: OnePass,
        *,
        tracker: str = "ocsort",
        max_people: int = 10,
        memory: float = LONGEST_GAP_SECONDS,
        times: StageTimes | None = None,
    ) -> None:
        """tracker: a name in `pose.people.trackers.TRACKERS`. max_people: who has been in view for longest stays.
        memory: s after which a lost person is forgotten. times: what the network takes is added there.
        """
        self.skeleton = network.skeleton
        self._network = network
        self._identities = Identities(tracker, memory=memory, skeleton=network.skeleton)
        self._max_people = max_people
        self._cuts = Cuts()
        self._times = times or StageTimes()

    def step(self, image: U8, index: int, time: float) -> People:
        """The people of the next frame, oldest id first. time: s, increasing."""
        with self._times.measure("people and keypoints"):
            boxes, keypoints = self._network.find([image])[0]
        cut = self._cuts.found(image)
        if cut:
            self._identities.forget()
        nobody = np.full(len(boxes), NOT_SEEN_BEFORE, np.int64)
        sure = np.maximum(boxes.scores, SURE_SCORE)  # the network's own threshold has said who counts
        poses = np.concatenate([keypoints.xy, keypoints.scores[..., None]], axis=-1)
        ids = self._identities.assign(boxes.xyxy, sure, nobody, time, image, poses)
        rows = np.flatnonzero(ids != NOT_SEEN_BEFORE)
        rows = rows[np.argsort(ids[rows], kind="stable")][: self._max_people]
        return People(
            index=index,
            time=time,
            ids=ids[rows],
            boxes=boxes.xyxy[rows],
            box_scores=boxes.scores[rows],
            keypoints=keypoints.xy[rows],
            scores=keypoints.scores[rows],
            unfollowed=count_unfollowed(boxes, boxes.xyxy[rows]),
            cut=cut,
        )
