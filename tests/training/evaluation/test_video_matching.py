"""Who is who between a pipeline's answer and the given 3D of a video."""

import numpy as np
import pytest
from benchmark_files import walker

from pose.errors import PoseError
from pose.structures.camera import Camera, project
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.training.evaluation.video import match

LENS = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
SIZE = (640, 480)
CAMERA = Camera.of(SIZE, LENS)
FRAMES = 6
TIMES = np.arange(FRAMES) / 25


def standing_at(x, z):
    """(T, 17, 3) m in the camera frame."""
    return (walker(FRAMES)[..., [0, 2, 1]] * [1, -1, 1] + [x, 1, z]).astype(np.float32)


def result(index, time, poses, scale=1.0):
    """A pipeline's answer for people at `poses` (P, 17, 3), whose boxes are `scale` times their joints'."""
    poses = np.asarray(poses, np.float32).reshape(-1, 17, 3)
    n = len(poses)
    pixels = project(poses, LENS).astype(np.float32)
    low, high = pixels.min(axis=1), pixels.max(axis=1)
    boxes = np.concatenate([low, low + scale * (high - low)], axis=1).astype(np.float32)
    ones = np.ones((n, 17), np.float32)
    people = People(index, time, np.arange(n), boxes, np.ones(n, np.float32), pixels, ones)
    return FrameResult(people, Poses3D(poses - poses[:, :1], poses[:, 0], 20 * ones))


LEFT, RIGHT, FAR = standing_at(-0.8, 4), standing_at(0.8, 4.5), standing_at(0, 9)


def test_people_are_matched_by_image_position():
    truth = np.stack([LEFT, RIGHT], axis=1)
    # Found in the other order, with an unmatched person between, and the right one missing in frames 2 and 3.
    answers = [
        result(t, TIMES[t], [FAR[t], LEFT[t]] if t in (2, 3) else [RIGHT[t], FAR[t], LEFT[t]]) for t in range(FRAMES)
    ]
    matched = match(answers, H36M17, truth, TIMES, CAMERA)
    assert (matched.known, matched.found) == (12, 10)
    assert [one.counted.tolist() for one in matched.sequences] == [[True] * 6, [True, True, False, False, True, True]]
    assert np.allclose(matched.poses[0], LEFT, atol=1e-5)
    assert np.allclose(matched.poses[1][[0, 1, 4, 5]], RIGHT[[0, 1, 4, 5]], atol=1e-5)
    assert matched.sigmas[0][0, 0] == 20


def test_only_the_evaluated_span_counts_as_known():
    answers = [result(t, TIMES[t], [] if t == 2 else [LEFT[t]]) for t in (1, 2, 3)]
    matched = match(answers, H36M17, LEFT[:, None], TIMES, CAMERA)
    assert (matched.known, matched.found) == (3, 2)


def test_people_are_matched_at_most_once():
    truth = np.stack([LEFT, LEFT + np.float32([0.05, 0, 0])], axis=1)
    answers = [result(t, TIMES[t], [LEFT[t]]) for t in range(FRAMES)]
    matched = match(answers, H36M17, truth, TIMES, CAMERA)
    assert [int(one.counted.sum()) for one in matched.sequences] == [6, 0]


def test_frames_are_matched_by_time():
    """The video starts two frames earlier and has every other frame only."""
    answers = [result(i, TIMES[t], [LEFT[t]]) for i, t in enumerate((1, 3, 5))]
    matched = match([result(9, -0.04, [LEFT[0]]), *answers], H36M17, LEFT[:, None], TIMES, CAMERA)
    assert np.flatnonzero(matched.sequences[0].counted).tolist() == [1, 3, 5]
    assert np.allclose(matched.poses[0][3], LEFT[3], atol=1e-5)


def test_frames_without_truth_do_not_count():
    truth = LEFT[:, None].copy()
    truth[[0, 4]] = np.nan
    answers = [result(t, TIMES[t], [LEFT[t]]) for t in range(FRAMES)]
    matched = match(answers, H36M17, truth, TIMES, CAMERA)
    assert (matched.known, matched.found) == (4, 4)
    assert not matched.sequences[0].counted[[0, 4]].any()


def test_several_people_need_intrinsics():
    with pytest.raises(PoseError, match="ground truth of 2 people needs `intrinsics`"):
        match([], H36M17, np.stack([LEFT, RIGHT], axis=1), TIMES, Camera.of(SIZE))
