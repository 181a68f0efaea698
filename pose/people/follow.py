"""The people stage: detector, estimator and identities together, frame by frame.

Every person is followed by their own region, which the estimator derives from their joints, so the detector runs only
when nobody is in view, when somebody was lost or is in doubt, at a cadence where newcomers may have come in, and while
people touch.

Where two people are in one crop, the estimator may answer with the wrong one, and the region would slide over to a
neighbour. So a pose that shows somebody else's body goes to whom it fits (`pose.people.evidence`), and who is left is
looked for where they were, with that body taken out of the picture (`pose.people.hiding`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.people.arrivals import Arrivals
from pose.people.cuts import Cuts
from pose.people.evidence import TOUCHING, Evidence, Past, pairs
from pose.people.hiding import Hiding, Part
from pose.people.identities import NOT_SEEN_BEFORE, Identities
from pose.people.lost import Lost, beside, expected
from pose.people.occlusion import Occlusions
from pose.people.region_filter import RegionFilter
from pose.people.sighting import Seen, Track, repeated, touch
from pose.people.unfollowed import count_unfollowed
from pose.stages import LONGEST_GAP_SECONDS, Detector, Estimator
from pose.system.times import StageTimes
from pose.types import F32, I64, U8, Boxes, Keypoints2D, People, Regions

# A detection is a person already followed where their regions overlap this much (IoU).
SAME_REGION = 0.6
# A detection shows the person of a pose where it overlaps the box around the joints this much (IoU).
AGREES = 0.35
TOUCHING_LOOK = 0.1  # s between two looks while people touch
OVERLOOKED_LOOK = 0.3  # s between two looks for whom the detector overlooks beside others
BESIDE = 0.6  # of the limbs' joints of who is found so lie beside those others
SURE_JOINT = 0.3  # a joint seen this well counts for the box that is compared with a detection
SHOWN = 0.2  # of the limbs' joints of who is looked for behind others: with fewer it is a body made of blur
NEAR = 0.6  # of a body: who was hidden is not found further from where they were expected


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
        memory: float = LONGEST_GAP_SECONDS,
        times: StageTimes | None = None,
    ) -> None:
        """
        tracker: a name in `pose.people.trackers.TRACKERS`. max_people: follow at most so many; who is followed stays,
        and the largest and surest newcomers fill the free places. detect_every: s between two looks for newcomers,
        which are left out where the picture has not changed (`pose.people.arrivals`); 0 looks at every frame.
        presence_threshold: least probability that a person is in their region. memory: s after which a lost person is
        forgotten. times: what the networks take is added there.
        """
        self.skeleton = estimator.skeleton
        self._detector = detector
        self._estimator = estimator
        self._identities = Identities(tracker, memory=memory, skeleton=estimator.skeleton)
        self._evidence = Evidence(estimator.skeleton)
        self._occlusions = Occlusions(self._evidence)
        self._hiding = Hiding(estimator.skeleton)
        self._max_people = max_people
        self._detect_every = detect_every
        self._presence_threshold = presence_threshold
        self._memory = memory
        self._tracks: list[Track] = []
        self._lost = Lost(memory)
        self._renews = False
        self._next_look = self._next_overlooked = -np.inf
        self._arrivals = Arrivals()
        self._cuts = Cuts()
        self._shown = np.zeros((0, 4), np.float32)  # the boxes of the people of the frame before
        self._last_loss = -np.inf
        self._time = -np.inf
        self._times = times or StageTimes()

    def step(self, image: U8, index: int, time: float) -> People:
        """The people of the next frame, oldest id first. time: s, increasing."""
        cut = self._cuts.found(image)
        if cut:
            self._forget()
        elif time - self._time > self._memory:  # the stream was away: whoever is there now is somebody new
            self._tracks, self._lost = [], Lost(self._memory)
        self._time = time
        followed = len(self._tracks)
        look = self._is_due(image, time)
        boxes = self._detect(image) if look and (followed < self._max_people or self._renews) else None
        if boxes is not None:
            self._renew(boxes)
        seen = self._see(image, self._tracks)
        strays = self._strays(seen, image, time)
        doubtful = bool(strays) or bool((seen.keypoints.presence < self._presence_threshold).any())
        if doubtful and boxes is None:
            look, boxes = True, self._detect(image)
        seen = self._with_lost(self._settle(seen, strays, boxes, image, time), image, time)
        if len(seen) < followed:
            self._last_loss = time
        if boxes is not None:
            seen = self._with_overlooked(image, self._with_newcomers(image, seen, boxes), time)
        people = replace(self._finish(seen, boxes, image, index, time), cut=cut)
        if look:
            searching = time - self._last_loss < self._memory
            self._next_look = time if searching else time + self._detect_every
        if any(track.occluders for track in self._tracks):
            self._next_look = min(self._next_look, time + TOUCHING_LOOK)
        return people

    def _forget(self) -> None:
        """Another scene: nobody is who they were."""
        self._identities.forget()
        self._occlusions = Occlusions(self._evidence)
        self._tracks, self._lost, self._arrivals = [], Lost(self._memory), Arrivals()
        self._shown = np.zeros((0, 4), np.float32)
        self._next_look = self._next_overlooked = self._last_loss = -np.inf

    def _is_due(self, image: U8, time: float) -> bool:
        """Whether to look for people: nobody is followed, or it is time and somebody may have come in."""
        if self._tracks and time < self._next_look:
            return False
        touching = any(track.occluders for track in self._tracks)
        if touching or self._detect_every == 0 or time - self._last_loss < self._memory:
            return True
        self._next_look = time + self._detect_every
        return self._arrivals.possible(image, self._shown, time)

    def _detect(self, image: U8) -> Boxes:
        with self._times.measure("detect"):
            boxes = self._detector.detect([image])[0]
        self._renews = boxes.regions is None
        return boxes

    def _estimate(self, image: U8, regions: Regions) -> Keypoints2D:
        with self._times.measure("keypoints"):
            return self._estimator.estimate([image], [regions])[0]

    def _renew(self, boxes: Boxes) -> None:
        """Where the detector knows only boxes they renew upright regions, which say no more and would drift.

        A turned region says more than a box, and stays.
        """
        upright = [track for track in self._tracks if track.region.angles[0] == 0]
        if not (self._renews and len(boxes) and upright):
            return
        regions = self._estimator.regions(boxes)
        overlap = crops.box_iou(_extent([track.region for track in upright]), crops.region_boxes(regions))
        for row, column in pairs(overlap, SAME_REGION):
            upright[row].region = regions[[column]]

    def _see(self, image: U8, tracks: list[Track]) -> Seen:
        """What the estimator says of all tracks, in their order. Who stands behind others is looked for after them."""
        free = [track for track in tracks if not track.occluders]
        regions = Regions.concatenate([track.region for track in free])
        seen = Seen.of(free, self._estimate(image, regions))
        if len(free) == len(tracks):
            return seen
        poses = dict(zip(map(id, free), seen.keypoints.xy, strict=True))
        for track in tracks:
            if track.occluders:
                pasts = [(other, other.past) for other in track.occluders if other.past is not None]
                in_front = [poses.get(id(other), past.xy) for other, past in pasts]
                seen = seen.join(self._see_occluded(image, track, track.region, in_front))
        return seen.select(np.array([seen.tracks.index(track) for track in tracks]))

    def _see_occluded(self, image: U8, track: Track, region: Regions, poses: list[F32]) -> Seen:
        """What the estimator says of a region (one row) without the people of `poses` (J, 2) px."""
        return self._see_in(self._hiding.without(image, region, poses), track, region)

    def _see_in(self, part: Part, track: Track, region: Regions) -> Seen:
        """What the estimator says of a region (one row) of the picture in a part of it."""
        return Seen.of([track], part.outside(self._estimate(part.image, part.inside(region))))

    def _strays(self, seen: Seen, image: U8, time: float) -> dict[int, int]:
        """Rows that show the body of another row, and whose it is."""
        strays: dict[int, int] = {}
        for row in range(1, len(seen)):
            for other in [other for other in range(row) if other not in strays and seen.same(row, other)]:
                mine, theirs = (self._distance(seen, r, image, time) for r in (row, other))
                if mine < theirs:
                    strays[other] = row
                else:
                    strays[row] = other
                    break
        return strays

    def _distance(self, seen: Seen, row: int, image: U8, time: float) -> float:
        past = seen.tracks[row].past
        assert past is not None
        return self._evidence.distance(past, image, seen.keypoints.xy[row], time)

    def _settle(self, seen: Seen, strays: dict[int, int], boxes: Boxes | None, image: U8, time: float) -> Seen:
        """Who of the followed people is still there: in the right place, and seen by the estimator or the detector."""
        sure = seen.keypoints.presence >= self._presence_threshold
        if not strays and sure.all():
            return seen
        there = np.array([row not in strays for row in range(len(seen))], bool)
        settled = seen.select(there)
        for row, owner in strays.items():
            found = self._recover(seen, row, owner, boxes, image, time)
            if found is not None:
                settled = settled.join(found)
        sure = settled.keypoints.presence >= self._presence_threshold
        if boxes is not None and not sure.all():
            overlap = crops.box_iou(_around(settled.keypoints), boxes.xyxy)
            sure[[row for row, _ in pairs(overlap, AGREES)]] = True
        settled = settled.select(sure)
        order = {id(track): row for row, track in enumerate(seen.tracks)}
        return settled.select(np.argsort([order[id(track)] for track in settled.tracks]).astype(np.int64))

    def _recover(self, seen: Seen, row: int, owner: int, boxes: Boxes | None, image: U8, time: float) -> Seen | None:
        """The person of a row whose pose shows the body of `owner`: behind it, where they were or a detection is."""
        track = seen.tracks[row]
        assert track.past is not None
        regions = [track.region]
        if boxes is not None and len(boxes):
            last_box = crops.bounds(track.past.xy[None], track.past.seen[None])
            overlap = crops.box_iou(last_box, boxes.xyxy)[0]
            overlap[crops.box_iou(_around(seen.keypoints)[[owner]], boxes.xyxy)[0].argmax()] = 0
            if overlap.max() > AGREES:
                regions.append(self._estimator.regions(boxes)[[int(overlap.argmax())]])
        other = seen.tracks[owner]
        if other in track.occluders:
            regions = regions[1:]  # the answer would be the same
        other.occluders = [nearer for nearer in other.occluders if nearer is not track]
        track.occluders = [*(nearer for nearer in track.occluders if nearer is not other), other]
        for region in regions:
            found = self._see_occluded(image, track, region, [seen.keypoints.xy[owner]])
            both = found.join(seen.select(np.array([owner])))
            way = self._evidence.distance(track.past, image, found.keypoints.xy[0], time)
            if way < NEAR and not both.same(0, 1):
                return found
        return None

    def _with_lost(self, seen: Seen, image: U8, time: float) -> Seen:
        """Also those who were lost beside the people in `seen` and are found behind them.

        A detector that knows only boxes has one for each of two who overlap: for whom it has none, they are hidden.
        """
        if self._renews:
            return seen
        for track in self._lost.tracks:
            in_front = beside(track, seen)
            if not len(in_front):
                continue
            past, region = expected(track, time)
            part = self._hiding.without(image, region, list(seen.keypoints.xy[in_front]))
            found = self._see_in(part, track, region)
            both, xy = seen.join(found), found.keypoints.xy[0]
            present = found.keypoints.presence[0] >= self._presence_threshold
            shown = part.shows(xy[self._hiding.limbs]).mean() > SHOWN
            there = self._evidence.distance(past, image, xy, time) < NEAR
            if present and shown and there and not both.repeats():
                track.occluders = [seen.tracks[row] for row in in_front]
                track.filter = RegionFilter()
                seen = both
        return seen

    def _with_newcomers(self, image: U8, seen: Seen, boxes: Boxes) -> Seen:
        """Also the people in detections that nobody in `seen` covers, as many as there is room for."""
        regions = self._estimator.regions(boxes)
        overlap = crops.box_iou(crops.region_boxes(regions), _extent([track.region for track in seen.tracks]))
        free = np.asarray(~(overlap > SAME_REGION).any(axis=1))
        around = _around(seen.keypoints)
        free[[column for _, column in pairs(crops.box_iou(around, boxes.xyxy), AGREES)]] = False
        rows = np.flatnonzero(free)
        if not len(rows):
            return seen
        rows = rows[np.argsort(-_weight(boxes[rows]), kind="stable")][: max(0, self._max_people - len(seen))]
        touched = touch(boxes.xyxy[rows], around)
        alone = rows[~touched.any(axis=1)]
        tracks = [Track(regions[[int(row)]]) for row in alone]
        found = Seen.of(tracks, self._estimate(image, regions[alone]))
        found = found.select(found.keypoints.presence >= self._presence_threshold)
        for row, near in zip(rows, touched, strict=True):
            if near.any():
                found = found.join(self._beside(image, regions[[int(row)]], boxes.xyxy[[row]], seen, near))
        return seen.join(found)

    def _with_overlooked(self, image: U8, seen: Seen, time: float) -> Seen:
        """Also somebody whom the detector finds only where those in `seen` are taken out of the picture.

        What is left of these looks like somebody, so a pose must lie beside them for the most part.
        """
        wanted = 0 < len(seen) < self._max_people and time >= self._next_overlooked and not self._lost.tracks
        if self._renews or not wanted:
            return seen
        self._next_overlooked = time + OVERLOOKED_LOOK
        others = list(seen.keypoints.xy)
        emptied = self._hiding.without(image, crops.letterbox_region(image, (1, 1)), others)
        boxes = self._detect(emptied.image)
        if not len(boxes):
            return seen
        region = emptied.regions_outside(self._estimator.regions(boxes)[[0]])
        part, track = self._hiding.without(image, region, others), Track(region)
        found = self._see_in(part, track, region)
        present = found.keypoints.presence[0] >= self._presence_threshold
        apart = part.shows(found.keypoints.xy[0][self._hiding.limbs]).mean() > BESIDE
        both = seen.join(found)
        if not (present and apart) or both.repeats():
            return seen
        track.occluders = [seen.tracks[row] for row in np.flatnonzero(touch(found.boxes, seen.boxes)[0])]
        return both

    def _beside(self, image: U8, region: Regions, box: F32, seen: Seen, near: NDArray[np.bool_]) -> Seen:
        """Who is in a detection (1, 4) that touches people who are followed; nobody where it shows a part of them."""
        track = Track(region)
        for in_front in (np.zeros(0, np.int64), np.flatnonzero(near)):
            found = self._see_occluded(image, track, region, list(seen.keypoints.xy[in_front]))
            present = found.keypoints.presence[0] >= self._presence_threshold
            agrees = crops.box_iou(_around(found.keypoints), box)[0, 0] > AGREES
            others = seen.join(found)
            if present and agrees and not others.repeats():
                track.occluders = [seen.tracks[other] for other in in_front]
                return found
        return found.select(np.zeros(1, bool))

    def _finish(self, seen: Seen, boxes: Boxes | None, image: U8, index: int, time: float) -> People:
        """Drop what is seen twice, name the people, and remember where to look for them next.

        boxes: what the detector found, None where it did not look.
        """
        seen = seen.select(~repeated(seen))
        self._lost.add(self._tracks, seen)
        ids = np.array([track.id for track in seen.tracks], np.int64)
        reach = crops.region_boxes(seen.keypoints.next_regions)
        poses = np.concatenate([seen.keypoints.xy, seen.keypoints.scores[..., None]], axis=-1)
        ids = self._identities.assign(reach, seen.keypoints.presence, ids, time, image, poses)
        mistaken = self._occlusions.mistaken(seen, ids.tolist(), image, time)
        if mistaken is not None:
            ids = self._exchange(seen, ids, mistaken)
        for row, track in enumerate(seen.tracks):
            if track.id == NOT_SEEN_BEFORE:
                track.found = time
            track.id = int(ids[row])
            track.region = track.filter(seen.keypoints.next_regions[row : row + 1], time)
        seen = seen.select(ids != NOT_SEEN_BEFORE)
        seen = seen.select(np.argsort([track.id for track in seen.tracks], kind="stable").astype(np.int64))
        self._lost.forget(seen, time)
        self._tracks, self._shown = seen.tracks, seen.boxes
        self._remember(seen, image, time)
        return People(
            index=index,
            time=time,
            ids=np.array([track.id for track in self._tracks], np.int64),
            boxes=seen.boxes,
            box_scores=seen.keypoints.presence,
            keypoints=seen.keypoints.xy,
            scores=seen.keypoints.scores,
            unfollowed=0 if boxes is None else count_unfollowed(boxes, seen.boxes),
        )

    def _exchange(self, seen: Seen, ids: I64, people: dict[int, Past]) -> I64:
        """Two people were taken for each other: each body gets the other's id, with the clothes that go with it."""
        one, other = people
        self._identities.exchange(one, other)
        self._lost.exchange(people)
        ids = np.where(ids == one, other, np.where(ids == other, one, ids))
        for person, known in people.items():
            for row in np.flatnonzero(ids == person):
                past = seen.tracks[row].past
                seen.tracks[row].past = None if past is None else replace(past, clothes=known.clothes)
        return ids

    def _remember(self, seen: Seen, image: U8, time: float) -> None:
        """Keep of everybody what tells them apart from others."""
        touching = seen.overlap > TOUCHING
        k = seen.keypoints
        for row, track in enumerate(seen.tracks):
            near = [seen.tracks[other] for other in np.flatnonzero(touching[row])]
            track.occluders = [other for other in track.occluders if other in near]
            track.past = self._evidence.remember(
                track.past, image, k.xy[row], k.scores[row], time, learn=len(near) == 1
            )


def _extent(regions: list[Regions]) -> F32:
    return crops.region_boxes(Regions.concatenate(regions))


def _around(keypoints: Keypoints2D) -> F32:
    """(P, 4) boxes around the joints that are seen well."""
    return crops.bounds(keypoints.xy, keypoints.scores > SURE_JOINT)


def _weight(boxes: Boxes) -> F32:
    """(P,) which newcomers come first: large and sure ones."""
    return boxes.scores * (boxes.xyxy[:, 2:] - boxes.xyxy[:, :2]).prod(axis=1)
