"""World measures against slow definitions, and who is who between a pipeline's answer and given 3D."""

import numpy as np
import pytest
from benchmark_files import walker

from benchmarks.world import steps as world
from pose.errors import PoseError
from pose.structures.camera import Camera, project
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.training.evaluation.video import match


@pytest.fixture
def true(rng):
    body = rng.normal(size=(17, 3)) * [0.15, 0.5, 0.1]
    path = np.cumsum(rng.normal(size=(230, 1, 3)), axis=0) * 0.02
    return body + path + 0.01 * rng.normal(size=(230, 17, 3))


def turned(points, angle=0.7):
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def test_alignment_removes_the_aligned_transform(true):
    similar, rigid = 1.3 * turned(true) + np.array([1, 2, 3]), turned(true) + np.array([1, 2, 3])
    for first in (world.ALIGNED_FRAMES, None):
        assert world.chunk_errors(similar, true, first=first).max() < 1e-6
        assert world.chunk_errors(rigid, true, first=first, scale=False).max() < 1e-6
        assert world.chunk_errors(similar, true, first=first, scale=False).mean() > 10


def test_each_chunk_is_aligned_by_itself_and_the_last_one_counts(true):
    pred = true.copy()
    pred[100:200] += 5.0
    pred[200:] += [0, 7.0, 0]
    errors = world.chunk_errors(pred, true)
    assert errors.shape == (230, 17)
    assert errors.max() < 1e-6


def test_alignment_uses_the_first_frames_only(true):
    """A drift after the second frame is seen by W-MPJPE as it is, and by WA-MPJPE less."""
    pred = true[:100] + np.linspace(0, 1, 100)[:, None, None] * [1.0, 0, 0]
    w = world.chunk_errors(pred, true[:100], scale=False)
    wa = world.chunk_errors(pred, true[:100], first=None, scale=False)
    assert w[-1].mean() > 800
    assert wa.mean() < w.mean()


def test_root_path_in_per_cent_of_its_length():
    path = np.stack([np.arange(101) / 100 * 10, np.zeros(101), np.zeros(101)], axis=1)
    assert world.root_path_errors(turned(path) + 4, path).max() < 1e-6
    off = path + np.where(np.arange(101) % 2, 0.1, -0.1)[:, None] * [0, 1, 0]
    assert world.root_path_errors(off, path).mean() == pytest.approx(1.0, rel=0.05)
    assert np.isnan(world.root_path_errors(path * 0, path * 0)).all()


def test_jitter_of_a_cubic_motion():
    t = np.arange(50) / 30
    points = (t**3)[:, None, None] * np.ones((1, 2, 3)) * [0, 2.0, 0]
    np.testing.assert_allclose(world.jitter(points, 30), 6 * 2.0 / 10, rtol=1e-6)


def test_foot_sliding_counts_only_true_contacts():
    true = np.zeros((10, 2, 3))
    true[5:, 1, 0] = np.arange(5) * 0.2  # the second foot walks off
    pred = np.zeros((10, 2, 3))
    pred[:, :, 2] = np.arange(10)[:, None] * 0.004
    slides = world.foot_slides(pred, true)
    assert len(slides) == 9 + 5
    assert slides == pytest.approx(4.0)


def test_floor_penetration_is_measured():
    heights = np.array([[0.02, -0.03], [0.05, 0.04], [0.0, 0.3]])
    np.testing.assert_allclose(world.penetrations(heights), [30, 0, 0])
    np.testing.assert_allclose(world.floats(heights), [0, 40, 0])


def test_gravity_angle_and_contact_f1_are_exact():
    assert world.angle_between([0, 1, 0], [0, 1, 0]) == pytest.approx(0, abs=1e-6)
    assert world.angle_between([0, 2, 0], [0, 0, -1]) == pytest.approx(90)
    pred, true = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert world.f1_score(world.f1_counts(pred, true)) == pytest.approx(0.5)
    assert np.isnan(world.f1_score(np.zeros(3, np.int64)))


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
