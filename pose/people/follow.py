"""The people stage: detector, estimator and identities together, frame by frame.

Every person is followed by their own region, which the estimator derives from their joints, so the detector runs only
when nobody is in view, when somebody was lost, and at a cadence where newcomers may have come in.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.people.arrivals import Arrivals
from pose.people.identities import NOT_SEEN_BEFORE, Identities
from pose.people.region_filter import RegionFilter
from pose.stages import Detector, Estimator
from pose.types import F32, U8, Boxes, Keypoints2D, People, Regions

# A detection is a person already followed where their regions overlap this much (IoU).
SAME_REGION = 0.6
# Two poses are one person where half of their joints are closer than this part of the larger body.
SAME_POSE = 0.15


@dataclass(slots=True)
class _Track:
    """One person in view. id: NOT_SEEN_BEFORE until identities are assigned. region: one row."""

    region: Regions
    id: int = NOT_SEEN_BEFORE
    filter: RegionFilter = field(default_factory=RegionFilter)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Tracks and what the estimator says of them, row by row. boxes: (P, 4) xyxy px around the joints."""

    tracks: list[_Track]
    keypoints: Keypoints2D
    boxes: F32


class PeopleTracker:
    """Frames in, tracked 2D people out (the `PeopleStage` protocol).

    A person keeps the id while in view, and gets it back when seen again within about a second.
    """

    def __init__(
        self,
        detector: Detector,
        estimator: Estimator,
        *,
        tracker: str = "ocsort",
        max_people: int = 10,
        detect_every: float = 0.3,
        presence_threshold: float = 0.5,
        memory: float = 1.0,
    ) -> None:
        """
        tracker: a name in `pose.people.trackers.TRACKERS`. max_people: follow at most so many; who is followed stays,
        and the largest and surest newcomers fill the free places. detect_every: s between two looks for newcomers,
        which are left out where the picture has not changed (`pose.people.arrivals`); 0 looks at every frame.
        presence_threshold: least probability that a person is in their region. memory: s after which a lost person is
        forgotten.
        """
        self.skeleton = estimator.skeleton
        self._detector = detector
        self._estimator = estimator
        self._identities = Identities(tracker, memory=memory, skeleton=estimator.skeleton)
        self._max_people = max_people
        self._detect_every = detect_every
        self._presence_threshold = presence_threshold
        self._memory = memory
        self._tracks: list[_Track] = []
        self._renews = False
        self._next_look = -np.inf
        self._arrivals = Arrivals()
        self._shown = np.zeros((0, 4), np.float32)  # the boxes of the people of the frame before
        self._last_loss = -np.inf
        self._time = -np.inf

    def step(self, image: U8, index: int, time: float) -> People:
        """The people of the next frame, oldest id first. time: s, increasing."""
        if time - self._time > self._memory:  # the stream was away: whoever is there now is somebody new
            self._tracks = []
        self._time = time
        followed = len(self._tracks)
        look = self._is_due(image, time)
        candidates = self._tracks + (self._newcomers(image, self._tracks) if look else [])
        seen = self._estimate(image, candidates)
        if sum(track.id != NOT_SEEN_BEFORE for track in seen.tracks) < followed:
            self._last_loss = time
            if not look:
                look = True
                seen = _join(seen, self._estimate(image, self._newcomers(image, seen.tracks)))
        if look:
            searching = time - self._last_loss < self._memory
            self._next_look = time if searching else time + self._detect_every
        return self._finish(seen, image, index, time)

    def _is_due(self, image: U8, time: float) -> bool:
        """Whether to look for people: nobody is followed, or it is time and somebody may have come in."""
        if self._tracks and time < self._next_look:
            return False
        if self._detect_every == 0 or time - self._last_loss < self._memory:
            return True
        self._next_look = time + self._detect_every
        return self._arrivals.possible(image, self._shown, time)

    def _newcomers(self, image: U8, tracks: list[_Track]) -> list[_Track]:
        """Detections that nobody in `tracks` covers, as many as there is room for.

        Where the detector knows only boxes they also renew the regions of `tracks`, which would drift.
        """
        room = self._max_people - len(tracks)
        if room <= 0 and not self._renews:
            return []
        boxes = self._detector.detect([image])[0]
        self._renews = boxes.regions is None
        regions = self._estimator.regions(boxes)
        overlap = crops.box_iou(
            crops.region_boxes(regions), crops.region_boxes(Regions.concatenate([t.region for t in tracks]))
        )
        if self._renews and len(boxes):
            for track, column in zip(tracks, overlap.T, strict=True):
                if column.max() > SAME_REGION:
                    track.region = regions[[int(column.argmax())]]
        free = np.flatnonzero(~(overlap > SAME_REGION).any(axis=1))
        free = free[np.argsort(-_weight(boxes[free]), kind="stable")][:room]
        return [_Track(regions[[int(row)]]) for row in free]

    def _estimate(self, image: U8, tracks: list[_Track]) -> _Seen:
        """The tracks in whose region there is a person, each person once."""
        regions = Regions.concatenate([track.region for track in tracks])
        keypoints = self._estimator.estimate([image], [regions])[0]
        return _select(_Seen(tracks, keypoints, _boxes(keypoints)), keypoints.presence >= self._presence_threshold)

    def _finish(self, seen: _Seen, image: U8, index: int, time: float) -> People:
        """Drop what is seen twice, name the people, and remember where to look for them next."""
        seen = _select(seen, ~_repeated(seen))
        ids = np.array([track.id for track in seen.tracks], np.int64)
        reach = crops.region_boxes(seen.keypoints.next_regions)
        poses = np.concatenate([seen.keypoints.xy, seen.keypoints.scores[..., None]], axis=-1)
        ids = self._identities.assign(reach, seen.keypoints.presence, ids, time, image, poses)
        for row, track in enumerate(seen.tracks):
            track.id = int(ids[row])
            track.region = track.filter(seen.keypoints.next_regions[[row]], time)
        seen = _select(seen, ids != NOT_SEEN_BEFORE)
        order = np.argsort([track.id for track in seen.tracks], kind="stable").astype(np.int64)
        self._tracks = [seen.tracks[row] for row in order]
        self._shown = seen.boxes[order]
        return People(
            index=index,
            time=time,
            ids=np.array([track.id for track in self._tracks], np.int64),
            boxes=self._shown,
            box_scores=seen.keypoints.presence[order],
            keypoints=seen.keypoints.xy[order],
            scores=seen.keypoints.scores[order],
        )


def _weight(boxes: Boxes) -> F32:
    """(P,) which newcomers come first: large and sure ones."""
    return boxes.scores * (boxes.xyxy[:, 2:] - boxes.xyxy[:, :2]).prod(axis=1)


def _boxes(keypoints: Keypoints2D) -> F32:
    return crops.bounds(keypoints.xy, keypoints.scores > 0)


def _select(seen: _Seen, keep: NDArray[np.bool_]) -> _Seen:
    if keep.all():
        return seen
    k = seen.keypoints
    return _Seen(
        [track for track, kept in zip(seen.tracks, keep, strict=True) if kept],
        Keypoints2D(k.xy[keep], k.scores[keep], k.presence[keep], k.next_regions[keep]),
        seen.boxes[keep],
    )


def _join(a: _Seen, b: _Seen) -> _Seen:
    x, y = a.keypoints, b.keypoints
    return _Seen(
        a.tracks + b.tracks,
        Keypoints2D(
            np.concatenate([x.xy, y.xy]),
            np.concatenate([x.scores, y.scores]),
            np.concatenate([x.presence, y.presence]),
            Regions.concatenate([x.next_regions, y.next_regions]),
        ),
        np.concatenate([a.boxes, b.boxes]),
    )


def _repeated(seen: _Seen) -> NDArray[np.bool_]:
    """(P,) True for a pose that an earlier row shows already. Rows are ordered: oldest tracks first, then newcomers."""
    repeated = np.zeros(len(seen.tracks), bool)
    sizes = (seen.boxes[:, 2:] - seen.boxes[:, :2]).max(axis=1)
    for row in range(1, len(repeated)):
        distances = np.median(np.linalg.norm(seen.keypoints.xy[:row] - seen.keypoints.xy[row], axis=-1), axis=1)
        same = distances < SAME_POSE * np.maximum(sizes[:row], sizes[row])
        repeated[row] = (same & ~repeated[:row]).any()
    return repeated
