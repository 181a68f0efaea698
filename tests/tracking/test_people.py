"""The people stage on real images: who is found, who stays who, and how often the detector runs."""

import av
import numpy as np
import pytest

from pose.structures.types import Boxes
from pose.tracking.config import TrackingConfig
from pose.tracking.people_tracker import PeopleTracker
from pose.utils.progress import StageTimes

RATE = 30


class CountingDetector:
    """The real detector; counts its runs. boxes_only: hides the regions it proposes."""

    name = "counting"

    def __init__(self, detector, boxes_only=False):
        self.detector = detector
        self.boxes_only = boxes_only
        self.runs = 0

    def detect(self, images):
        self.runs += 1
        found = self.detector.detect(images)
        return [Boxes(boxes.xyxy, boxes.scores) for boxes in found] if self.boxes_only else found


@pytest.fixture(scope="module")
def dance(videos):
    """The first 45 frames of the dancer, (496, 384, 3) uint8."""
    with av.open(str(videos / "dance.mp4")) as container:
        frames = container.decode(video=0)
        return [next(frames).to_ndarray(format="rgb24") for _ in range(45)]


@pytest.fixture
def detector(blazepose_detector):
    return CountingDetector(blazepose_detector)


@pytest.fixture
def stage(detector, blazepose):
    def build(**options):
        return PeopleTracker(detector, blazepose, TrackingConfig(**options))

    return build


def run(stage, images, rate=RATE, start=0):
    return [stage.step(image, start + i, (start + i) / rate) for i, image in enumerate(images)]


def test_dancer_is_one_person_from_the_first_frame(stage, detector, dance):
    results = run(stage(), dance)
    assert [people.ids.tolist() for people in results] == [[1]] * len(dance)
    assert [people.index for people in results] == list(range(len(dance)))
    assert results[0].keypoints.shape == (1, 33, 2)
    assert min(people.box_scores[0] for people in results) > 0.9


def test_detector_runs_at_its_interval(stage, detector, dance):
    run(stage(detection_interval_s=0.5), dance)
    assert detector.runs == 2 * 3  # at 0, 0.5 and 1 s, and each time also without the dancer
    detector.runs = 0
    run(stage(detection_interval_s=0), dance[:10])
    assert detector.runs == 10 + 2  # without the dancer at 0 and 0.3 s


def test_two_dancers_side_by_side_keep_two_ids(stage, dance):
    tiled = [np.concatenate([a, b], axis=1) for a, b in zip(dance, dance[::-1], strict=True)]
    results = run(stage(), tiled)
    assert all(people.ids.tolist() == [1, 2] for people in results)
    left = [people.keypoints[0, :, 0].mean() < 384 for people in results]
    assert len(set(left)) == 1
    assert all((people.keypoints[1, :, 0].mean() < 384) != left[0] for people in results)


def test_max_people_keeps_the_largest_people(stage, dance):
    small = [np.pad(image[::2, ::2], ((248, 0), (0, 0), (0, 0)), mode="edge") for image in dance]
    pair = [np.concatenate([s, image], axis=1) for s, image in zip(small, dance, strict=True)]
    large_first = run(stage(max_people=1), pair[:10])
    assert all(people.ids.tolist() == [1] for people in large_first)
    assert all(people.keypoints[0, :, 0].mean() > 192 for people in large_first)
    alone = [np.concatenate([s, np.full_like(image, 200)], axis=1) for s, image in zip(small, dance, strict=True)]
    small_first = run(stage(max_people=1), alone[:5] + pair[5:20])
    assert all(people.ids.tolist() == [1] for people in small_first)
    assert all(people.keypoints[0, :, 0].mean() < 192 for people in small_first)


@pytest.mark.parametrize(
    "tracker",
    [pytest.param("bytetrack", marks=pytest.mark.slow), "ocsort", pytest.param("botsort", marks=pytest.mark.slow)],
)
def test_id_survives_a_blank_gap(stage, dance, tracker):
    blank = [np.zeros_like(dance[0])] * 15
    results = run(stage(tracker=tracker), dance[:15] + blank + dance[15:30])
    assert [people.ids.tolist() for people in results] == [[1]] * 15 + [[]] * 15 + [[1]] * 15


def test_new_person_is_found_within_the_detection_interval(stage, dance):
    empty = np.full_like(dance[0], 200)
    alone = [np.concatenate([image, empty], axis=1) for image in dance[:20]]
    pair = [np.concatenate([image, image], axis=1) for image in dance[20:35]]
    results = run(stage(detection_interval_s=0.3), alone + pair)
    assert all(people.ids.tolist() == [1] for people in results[:20])
    first = next(i for i, people in enumerate(results) if len(people) == 2)
    assert first < 20 + 0.3 * RATE + 1
    assert all(people.ids.tolist() == [1, 2] for people in results[first:])


def test_passers_by_get_different_ids(stage, videos):
    people_stage, ids = stage(), {}
    with av.open(str(videos / "walk-by.mp4")) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index > 288:
                break
            if index % 3 or index < 54:
                continue
            people = people_stage.step(frame.to_ndarray(format="rgb24"), index, float(frame.time))
            for person in people.ids.tolist():
                ids.setdefault(person, []).append(index)
    lasting = [frames for frames in ids.values() if len(frames) > 10]
    # Seen in the clip: a woman from frame 64 to 194, no person, a man from 229 on.
    assert len(lasting) == 2
    assert lasting[0][0] > 60
    assert 185 < lasting[0][-1] < 200
    assert 225 < lasting[1][0] < 245
    assert lasting[1][-1] == 288


@pytest.mark.parametrize("shape", [(1, 1, 3), (31, 17, 3), (500, 2, 3)])
def test_images_without_people_give_empty_results(stage, shape):
    results = run(stage(), [np.full(shape, 90, np.uint8)] * 3)
    assert [len(people) for people in results] == [0, 0, 0]
    assert results[0].keypoints.shape == (0, 33, 2)
    assert results[0].boxes.shape == (0, 4)


def test_detector_that_only_knows_boxes_works(blazepose_detector, blazepose, dance):
    boxes_only = PeopleTracker(
        CountingDetector(blazepose_detector, boxes_only=True), blazepose, TrackingConfig(detection_interval_s=0)
    )
    with_regions = PeopleTracker(blazepose_detector, blazepose)
    for a, b in zip(run(boxes_only, dance[:20]), run(with_regions, dance[:20]), strict=True):
        assert a.ids.tolist() == [1]
        distances = np.linalg.norm(a.keypoints[0] - b.keypoints[0], axis=1)
        assert np.median(distances) < 0.02 * np.ptp(b.keypoints[0, :, 1])


class SureOfACorner:
    """The real detector, which is also confident of a person in an empty corner."""

    name = "sure"

    def __init__(self, detector):
        self.detector = detector

    def detect(self, images):
        corner = np.array([[0, 0, 30, 60]], np.float32)
        found = self.detector.detect(images)
        return [Boxes(np.r_[one.xyxy, corner], np.r_[one.scores, np.float32(1)]) for one in found]


def test_untracked_people_are_counted_in_each_detection_pass(blazepose_detector, blazepose, dance):
    times = StageTimes()
    config = TrackingConfig(detection_interval_s=1.0)
    people = run(PeopleTracker(SureOfACorner(blazepose_detector), blazepose, config, times=times), dance[:4])
    assert [len(one) for one in people] == [1] * 4
    assert [one.untracked for one in people] == [1, 0, 0, 0]
    assert times.seconds.keys() == {"detect", "keypoints"}
    assert min(times.seconds.values()) > 0
