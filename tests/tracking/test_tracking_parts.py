"""The parts of the people stage alone: following, occlusion search, track initiation, and the detection schedule."""

import numpy as np
import pytest
from drawn_people import FRAME, SIZE, Merges, Sees, body, picture

from pose.structures.skeletons import H36M17
from pose.structures.types import Boxes, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.detection_schedule import TOUCHING_INTERVAL_S, DetectionSchedule
from pose.tracking.following import TrackFollower
from pose.tracking.initiation import MASKED_DETECTION_INTERVAL_S, TrackInitiation
from pose.tracking.networks import PeopleNetworks
from pose.tracking.observations import Observations, PersonTrack
from pose.tracking.occlusion_search import OcclusionSearch
from pose.tracking.person_state import PersonModel
from pose.utils.progress import StageTimes

FRONT, BACK = 350.0, 400.0
NO_BOXES = np.zeros((0, 4), np.float32)


class CountingMerges(Merges):
    """Counts the detection passes. boxes_only: whether it proposes no regions."""

    def __init__(self, places=(), boxes_only=False):
        super().__init__(stubborn=False)
        self.places, self.boxes_only, self.passes = list(places), boxes_only, 0

    def detect(self, images):
        self.passes += 1
        (found,) = super().detect(images)
        return [Boxes(found.xyxy, found.scores) if self.boxes_only else found]


class Parts:
    """The parts with the fake networks."""

    def __init__(self, places=(), boxes_only=False, **options):
        config = TrackingConfig(**options)
        self.detector = CountingMerges(places, boxes_only)
        self.networks = PeopleNetworks(self.detector, Sees(), StageTimes())
        self.model = PersonModel(H36M17)
        self.search = OcclusionSearch(self.networks, self.model, config)
        self.follower = TrackFollower(self.networks, self.search, self.model, config)
        self.initiation = TrackInitiation(self.networks, self.search, config)

    def track(self, x, image=None):
        """A track of the person at x, who was seen there in the previous frame."""
        image = picture([x]) if image is None else image
        state = self.model.update(None, image, body(x), np.ones(17, np.float32), 0.0, learn_colours=True)
        return PersonTrack(region(x), state=state)


def region(x, angle=0.0):
    return Regions(np.array([[x, 150]], np.float32), np.full((1, 2), SIZE, np.float32), np.full(1, angle, np.float32))


def boxes_at(*places):
    xyxy = np.array([[*body(x).min(axis=0), *body(x).max(axis=0)] for x in places], np.float32).reshape(-1, 4)
    return Boxes(xyxy, np.full(len(places), 0.9, np.float32))


def places(observations):
    return observations.keypoints.xy[:, 0, 0].tolist()


def test_poses_come_in_the_order_of_the_tracks_and_occluders_are_masked():
    parts, image = Parts(), picture([FRONT, BACK])
    front, back = parts.track(FRONT), parts.track(BACK)
    back.occluders = [front]
    found = parts.follower.observe(image, [back, front])
    assert found.tracks == [back, front]
    assert places(found) == pytest.approx([BACK, FRONT], abs=25)
    back.occluders = []
    assert places(parts.follower.observe(image, [back, front])) == pytest.approx([FRONT, FRONT], abs=1)


def test_duplicate_track_is_searched_behind_the_other():
    parts, image = Parts(), picture([FRONT, BACK])
    front, back = parts.track(FRONT), parts.track(BACK, picture([0.0, BACK]))
    found = parts.follower.observe(image, [front, back])
    drifted = parts.follower.find_drifted(found, image, FRAME)
    assert drifted == {1: 0}
    confirmed = parts.follower.confirm(found, drifted, None, image, FRAME)
    assert confirmed.tracks == [front, back]
    assert places(confirmed) == pytest.approx([FRONT, BACK], abs=25)
    assert back.occluders == [front]
    alone = picture([FRONT])  # the second person is gone
    found = parts.follower.observe(alone, [front, parts.track(BACK, image)])
    drifted = parts.follower.find_drifted(found, alone, FRAME)
    assert parts.follower.confirm(found, drifted, None, alone, FRAME).tracks == [front]


def test_drifted_track_returns_to_the_detection_that_continues_it():
    """The region of the person at 470 has moved to the neighbour; where no pose fits the detection, the track waits."""
    parts, image = Parts(), picture([FRONT, 470.0])
    for shown, stays in ((image, {}), (picture([FRONT]), {1: 1})):
        front, drifted = parts.track(FRONT), parts.track(470.0, image)
        drifted.region = region(FRONT)
        found = parts.follower.observe(shown, [front, drifted])
        assert places(found) == pytest.approx([FRONT, FRONT], abs=1)
        found, stray = parts.follower.return_to_detections(found, boxes_at(FRONT, 470.0), shown, FRAME)
        assert stray == stays
        assert places(found) == pytest.approx([FRONT, FRONT if stays else 470.0], abs=25)


def test_track_without_presence_ends_unless_confirmed():
    parts, image = Parts(min_presence=1.1), picture([FRONT])
    found = parts.follower.observe(image, [parts.track(FRONT)])
    assert parts.follower.is_doubtful(found)
    assert len(parts.follower.confirm(found, {}, None, image, FRAME)) == 0
    assert len(parts.follower.confirm(found, {}, boxes_at(600), image, FRAME)) == 0
    assert len(parts.follower.confirm(found, {}, boxes_at(FRONT), image, FRAME)) == 1


def test_detections_refine_upright_regions_only_and_only_those_of_box_detectors():
    for boxes_only in (True, False):
        parts = Parts([FRONT], boxes_only=boxes_only)
        upright, turned = parts.track(FRONT), parts.track(FRONT)
        upright.region, turned.region = region(FRONT + 20), region(FRONT + 20, angle=0.3)
        boxes = parts.networks.detect(picture([FRONT]))
        parts.follower.refine_regions([upright, turned], boxes)
        assert upright.region.centers[0, 0] == pytest.approx(FRONT if boxes_only else FRONT + 20, abs=10)
        assert turned.region.centers[0, 0] == FRONT + 20


@pytest.mark.parametrize("boxes_only", [False, True])
def test_lost_track_is_searched_behind_the_touching_person(boxes_only):
    parts, image = Parts([FRONT], boxes_only=boxes_only), picture([FRONT, BACK])
    parts.networks.detect(image)
    front, lost = parts.track(FRONT), parts.track(BACK, picture([0.0, BACK]))
    found = parts.follower.observe(image, [front])
    both = parts.search.add_lost(found, [lost], image, FRAME)
    if boxes_only:  # such a detector has one box for each of the two
        assert both is found
        return
    assert both.tracks == [front, lost]
    assert lost.occluders == [front]
    assert parts.search.add_lost(found, [lost], picture([FRONT]), FRAME).tracks == [front]
    far = parts.track(50.0)
    assert parts.search.add_lost(found, [far], picture([FRONT, 50.0]), FRAME).tracks == [front]  # it changed no person


def test_detections_start_tracks_beside_the_tracked_people_up_to_the_limit():
    image = picture([150.0, 550.0])
    for max_people, expected in ((5, [150, 550]), (1, [150])):
        parts = Parts(max_people=max_people)
        known = parts.follower.observe(image, [parts.track(150.0)])
        found = parts.initiation.add_detected(known, boxes_at(150, 550), image)
        assert places(found) == pytest.approx(expected, abs=15)
    nobody = Observations.of([], parts.networks.estimate(image, Regions.empty()))
    weak_first = Boxes(boxes_at(150, 550).xyxy, np.array([0.6, 0.9], np.float32))
    assert places(parts.initiation.add_detected(nobody, weak_first, image)) == pytest.approx([550], abs=15)


def test_overlooked_person_is_found_by_masked_search():
    parts, image = Parts([FRONT, 410.0]), picture([FRONT, 410.0])
    known = parts.follower.observe(image, [parts.track(FRONT)])
    assert len(parts.initiation.add_overlooked(known, [parts.track(BACK)], image, 0.0)) == 1  # lost tracks come first
    found = parts.initiation.add_overlooked(known, [], image, 0.0)
    assert places(found) == pytest.approx([FRONT, 410], abs=15)
    passes = parts.detector.passes
    assert len(parts.initiation.add_overlooked(known, [], image, 0.9 * MASKED_DETECTION_INTERVAL_S)) == 1
    assert parts.detector.passes == passes
    assert len(parts.initiation.add_overlooked(known, [], image, MASKED_DETECTION_INTERVAL_S)) == 2
    parts.initiation.reset()
    assert len(parts.initiation.add_overlooked(known, [], image, MASKED_DETECTION_INTERVAL_S)) == 2


def due(schedule, tracks, times, images, boxes=NO_BOXES):
    """The times at which a pass is due, each with `images` there."""
    found = []
    for time, image in zip(times, images, strict=True):
        if schedule.is_due(image, tracks, boxes, time):
            found.append(round(time, 3))
        schedule.record_frame(tracks, detected=bool(found) and found[-1] == round(time, 3), time=time)
    return found


def test_detector_runs_on_every_frame_of_a_crowd_in_touch():
    times, images = np.arange(0, 0.3, 0.05), [picture([FRONT])] * 6
    people = boxes_at(100, 130, 400, 600)
    for count, passes in ((4, times), (3, [0])):
        schedule, tracks = DetectionSchedule(10.0, 1.0), [PersonTrack(region(x)) for x in (100, 130, 400, 600)[:count]]
        assert due(schedule, tracks, times, images, people.xyxy[:count]) == pytest.approx(passes)


def test_detector_runs_during_contact_and_after_a_loss():
    times = np.arange(0, 0.35, 0.05)
    still = [picture([FRONT])] * len(times)
    track = PersonTrack(region(FRONT))
    touching = PersonTrack(region(BACK), occluders=[track])
    passes = due(DetectionSchedule(0.3, 1.0), [track, touching], times, still)
    assert passes == pytest.approx(np.arange(0, 0.35, TOUCHING_INTERVAL_S))
    schedule = DetectionSchedule(0.3, memory_s=0.2)
    schedule.record_loss(0.0)
    assert due(schedule, [track], times, still) == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
