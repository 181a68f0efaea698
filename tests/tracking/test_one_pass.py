"""People and joints in one pass: who is named, who is left out, and what a real network gives."""

import numpy as np

from pose.networks.estimators.whole_image import YoloPose
from pose.networks.options import StageOptions
from pose.structures.skeletons import COCO17
from pose.structures.types import Boxes, Keypoints2D, Regions
from pose.tracking.config import TrackingConfig
from pose.tracking.one_pass import OnePassPeople
from pose.video import open_source

IMAGE = np.zeros((200, 400, 3), np.uint8)


class Script:
    """Says frame by frame what it is told: rows of left edge and score, every person 40 x 100 px."""

    name = "script"
    skeleton = COCO17

    def __init__(self, *frames):
        self.frames = iter(frames)

    def find(self, images):
        rows = np.array(next(self.frames), np.float32).reshape(-1, 2)
        xyxy = np.stack([rows[:, 0], np.full(len(rows), 50), rows[:, 0] + 40, np.full(len(rows), 150)], axis=1)
        xyxy = xyxy.astype(np.float32)
        xy = np.repeat(xyxy[:, None, :2], 17, axis=1)
        ones = np.ones((len(rows), 17), np.float32)
        regions = Regions(xyxy[:, :2], xyxy[:, 2:] - xyxy[:, :2], np.zeros(len(rows), np.float32))
        return [(Boxes(xyxy, rows[:, 1]), Keypoints2D(xy, ones, rows[:, 1], regions))]


def run(*frames, times=None, **options):
    stage = OnePassPeople(Script(*frames), TrackingConfig(**options), times=times)
    return [stage.step(IMAGE, index, index / 30) for index in range(len(frames))]


def test_ids_follow_people_not_detection_order():
    results = run([(10, 0.9), (200, 0.8)], [(205, 0.9), (12, 0.8)], [(14, 0.7), (210, 0.6)])
    assert [people.ids.tolist() for people in results] == [[1, 2]] * 3
    for people, left in zip(results, (10, 12, 14), strict=True):
        assert people.boxes[0, 0] == left
        assert (people.keypoints[0, :, 0] == left).all()


def test_returning_person_keeps_the_id():
    frames = [
        [(10, 0.9), (200, 0.9)],
        [(10, 0.9), (200, 0.9)],
        [(10, 0.9)],
        [(10, 0.9), (201, 0.9)],
        [(10, 0.9), (300, 0.9)],
    ]
    assert [people.ids.tolist() for people in run(*frames)] == [[1, 2], [1, 2], [1], [1, 2], [1, 3]]


def test_longest_tracked_people_are_kept():
    results = run([(10, 0.6)], [(200, 0.9), (11, 0.6)], [(200, 0.9), (12, 0.6)], max_people=1)
    assert [people.ids.tolist() for people in results] == [[1]] * 3


def test_real_network_tracks_a_crowd(weights_dir, videos):
    model = weights_dir / "yolo26n-pose-256-int8.onnx"
    with open_source(str(videos / "street.mp4")) as source:
        images = [frame.image for frame in source]
    stage = OnePassPeople(YoloPose(model=model, options=StageOptions(threads=1)))
    results = [stage.step(image, index, index / 25) for index, image in enumerate(images)]
    assert all(len(people) >= 1 for people in results)
    assert 1 in set.intersection(*(set(people.ids.tolist()) for people in results))  # the woman in front
    front = [people.boxes[people.ids.tolist().index(1)] for people in results]
    assert all(box[0] > 700 for box in front)
