"""Further 2D networks at a lower rate: when they run, and how their difference is interpolated. All is simulated."""

from dataclasses import replace

import numpy as np
import pytest

from pose.structures.keypoint_sigma import RADIUS_68_2D
from pose.structures.types import Keypoints2D, People, Regions
from pose.tracking.corrections import CorrectedFrames
from pose.tracking.sampling import TrackedFrame
from pose.utils.progress import StageTimes

FPS, JOINTS = 30, 4


class Further:
    """Moves everyone by 10 px per second of the time that the image shows, by the same distance, and halves scores."""

    def __init__(self):
        self.runs = []

    def improved(self, image, xy, scores):
        index = int(image[0, 0, 0])
        self.runs.append(index)
        regions = Regions(xy[:, 0], xy[:, 0], xy[:, 0, 0])
        moved = np.float32(10 * index / FPS)
        return Keypoints2D(xy + moved, scores * np.float32(0.5), scores[:, 0], regions, np.full_like(scores, moved))


def frame(index, ids=(1,), sampled=None, **changes):
    count = len(ids)
    people = People(
        index, index / FPS, np.array(ids, np.int64), np.zeros((count, 4), np.float32), np.ones(count, np.float32),
        np.full((count, JOINTS, 2), 100, np.float32), np.full((count, JOINTS), 0.8, np.float32),
        np.full((count, JOINTS), 3, np.float32), sampled=index % 2 == 0 if sampled is None else sampled,
    )  # fmt: skip
    return TrackedFrame(np.full((1, 1, 3), index, np.uint8), replace(people, **changes), people)


def run(frames, rate=7.5):
    networks = Further()
    corrected = CorrectedFrames(networks, rate, StageTimes())
    done = [one for each in frames for one in corrected.push(each)] + corrected.flush()
    return networks.runs, [each.people for each in done]


def test_every_second_sample_is_measured_at_half_the_rate():
    runs, people = run([frame(k) for k in range(31)])
    assert runs == list(range(0, 31, 4))
    assert [each.index for each in people] == list(range(31))


def test_rate_0_measures_every_sample():
    assert run([frame(k) for k in range(11)], rate=0)[0] == [0, 2, 4, 6, 8, 10]


def test_corrections_are_interpolated_between_measurements_and_kept_after_the_last():
    _, people = run([frame(k) for k in range(31)])
    for each in people:
        expected = 10 * min(each.time, 28 / FPS)
        np.testing.assert_allclose(each.keypoints[0] - 100, expected, atol=1e-4)
        np.testing.assert_allclose(each.scores, 0.4)
        assert (each.keypoint_sigma >= 3).all()
        extra = np.sqrt(each.keypoint_sigma**2 - 9)  # grows with the distance of the networks
        np.testing.assert_allclose(extra, extra[0, 0], rtol=1e-4)
        assert extra[0, 0] == pytest.approx(RADIUS_68_2D * 0.5 * expected, abs=1e-2)


def test_new_people_and_new_scenes_are_measured_at_once():
    frames = [frame(k, ids=(1, 2) if k >= 10 else (1,)) for k in range(20)]
    frames[14] = frame(14, ids=(1, 2), cut=True)
    assert run(frames)[0] == [0, 4, 8, 10, 14, 18]


def test_a_person_without_a_measurement_keeps_the_keypoints():
    _, people = run([frame(0, ids=()), frame(1, ids=(5,)), frame(2, ids=())])
    assert people[1].keypoints[0, 0].tolist() == [100, 100]
    assert people[1].scores[0, 0] == pytest.approx(0.8)
