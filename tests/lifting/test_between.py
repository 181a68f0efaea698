"""What the network sees of a frame, and people between samples: interpolated by time, never invented."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pose.lifting.between import fill_between
from pose.lifting.features import LifterInput, decode, observe, observe_next
from pose.lifting.format import FEATURES, JOINTS, OUTPUTS, TYPICAL_STEP, nothing_observed
from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D

RNG = np.random.default_rng(0)
START, SPEED, ACCELERATION = RNG.normal(0, 0.4, (3, 17, 3)).astype(np.float32)
FPS = 60
NOBODY = np.zeros(0, np.int64)


def joints(time):
    """A body that turns about the vertical axis, and so has rigid bones."""
    angle = 3 * time
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    return ((START - START[0]) @ turn.T).astype(np.float32)


def keypoints(time):
    """Points with a constant acceleration."""
    return 100 * (START + SPEED * np.float32(time) + ACCELERATION * np.float32(time**2))[:, :2]


def result(index, ids, sampled=True, cut=False, hands=False):
    time, count = index / FPS, len(ids)
    people = People(
        index, time, np.asarray(ids, np.int64), np.zeros((count, 4), np.float32), np.ones(count, np.float32),
        np.repeat(keypoints(time)[None], count, axis=0), np.ones((count, 17), np.float32), cut=cut, sampled=sampled,
    )  # fmt: skip
    if hands:
        points = np.full((count, 2, 21, 2), 100 * time, np.float32)
        hand = Hands(points, np.ones(points.shape[:3], np.float32), np.full((count, 2, 21, 3), time, np.float32))
        people = replace(people, hands=hand)
    root = np.repeat(np.array([[time, 0, 4]], np.float32), count, axis=0)
    poses = Poses3D(np.repeat(joints(time)[None], count, axis=0), root, np.full((count, 17), 20, np.float32))
    return FrameResult(people, poses)


def film(frames, every=4, **changed):
    """Results of one person in every fourth frame."""
    return [changed.get(f"f{k}") or result(k, [1] if k % every == 0 else [], k % every == 0) for k in range(frames)]


def test_all_frames_are_returned_in_order_with_the_person():
    filled = list(fill_between(film(41)))
    assert [each.index for each in filled] == list(range(41))
    assert all(each.people.ids.tolist() == [1] for each in filled)
    assert [each.people.interpolated[0] for each in filled] == [k % 4 != 0 for k in range(41)]


def test_points_with_constant_acceleration_are_interpolated_exactly():
    for each in list(fill_between(film(41)))[4:36]:
        np.testing.assert_allclose(each.people.keypoints[0], keypoints(each.time), atol=1e-3)


def test_turning_bodies_keep_their_bones_and_differ_little():
    for each in list(fill_between(film(41)))[4:36]:
        found = each.poses.joints[0]
        for parent, child in H36M17.edges:
            length = np.linalg.norm(START[child] - START[parent])
            assert np.linalg.norm(found[child] - found[parent]) == pytest.approx(length, abs=1e-4)
        assert np.linalg.norm(found - joints(each.time), axis=-1).max() < 0.005
        assert each.poses.root[0, 0] == pytest.approx(each.time, abs=1e-5)


def test_sigma_grows_between_samples():
    for each in fill_between(film(41)):
        between = each.index % 4 != 0
        assert (each.poses.sigma >= 20).all()
        assert (each.poses.sigma.max() > 20) == between


def test_sigma_of_keypoints_grows_between_samples_where_they_are_seen():
    frames = film(21)
    for each in frames:
        each.people.keypoint_sigma[:] = 4
        each.people.keypoint_sigma[:, 3] = each.people.scores[:, 3] = 0
    for each in fill_between(frames):
        others = np.delete(each.people.keypoint_sigma[0], 3)
        assert (others > 4).all() == (each.index % 4 != 0)
        assert each.people.keypoint_sigma[0, 3] == 0


def test_nobody_is_added_before_after_and_across_a_sample_without_the_person():
    frames = film(41)
    for k in (0, 40, 20):
        frames[k] = result(k, [])
    present = [each.index for each in fill_between(frames) if len(each.people)]
    assert present == [*range(4, 17), *range(24, 37)]


def test_nobody_is_added_across_a_cut():
    frames = film(41)
    frames[20] = result(20, [1], cut=True)
    assert [each.index for each in fill_between(frames) if not len(each.people)] == [17, 18, 19]


def test_frames_with_fast_people_get_the_others():
    frames = [result(k, [1, 2] if k % 4 == 0 else [2] if k % 4 == 2 else [], k % 4 == 0) for k in range(21)]
    filled = list(fill_between(frames))
    assert all(each.people.ids.tolist() == [1, 2] for each in filled)
    assert [each.people.interpolated.tolist() for each in filled[4:8]] == [
        [False, False], [True, True], [True, False], [True, True],
    ]  # fmt: skip


def test_points_that_one_neighbour_does_not_see_have_score_0():
    frames = film(21)
    frames[8].people.scores[0, 3] = 0
    filled = list(fill_between(frames))
    assert [each.people.scores[0, 3] for each in filled[4:13]] == [1, 0, 0, 0, 0, 0, 0, 0, 1]


def test_hands_are_interpolated_with_their_person():
    frames = [result(k, [1] if k % 4 == 0 else [], k % 4 == 0, hands=k % 4 == 0) for k in range(21)]
    for each in fill_between(frames):
        np.testing.assert_allclose(each.people.hands.points, 100 * each.time, atol=1e-3)


def test_samples_in_every_frame_are_returned_unchanged():
    frames = film(9, every=1)
    assert all(one is other for one, other in zip(fill_between(frames), frames, strict=True))
    assert list(fill_between([])) == []


B, T = 2, 9
CENTRES = slice(4 * JOINTS, 4 * JOINTS + 2)
LOG_SPREAD = 4 * JOINTS + 2


def a_camera(focal: float, centre: tuple[float, float]) -> torch.Tensor:
    matrix = torch.tensor([[focal, 0, centre[0]], [0, focal, centre[1]], [0, 0, 1]], dtype=torch.float64)
    return matrix.expand(B, 3, 3)


@pytest.fixture
def seen(rng):
    """Keypoints, scores with gaps, times, and a camera."""
    keypoints = torch.from_numpy(rng.uniform(100, 500, (B, T, JOINTS, 2)).astype(np.float32))
    scores = torch.from_numpy((rng.uniform(0.1, 1, (B, T, JOINTS)) * (rng.random((B, T, JOINTS)) > 0.2)).astype("f"))
    scores[0, 3:5] = 0
    scores[1, :2] = 0
    times = torch.from_numpy(np.cumsum(rng.uniform(0.02, 0.05, (B, T)), axis=1))
    return keypoints, scores, times, a_camera(600, (320, 240)), torch.tensor([True, False]), torch.tensor([False, True])


def people_in_front_of(points: torch.Tensor, focal: float, depth: float, centre=(320.0, 240.0)) -> torch.Tensor:
    """Pixels of points (B, T, J, 2) in metres on a plane at some depth."""
    return points * focal / depth + torch.tensor(centre)


def test_unseen_joints_have_no_effect(seen):
    keypoints, scores, *rest = seen
    garbage = torch.where(scores[..., None] > 0, keypoints, torch.tensor(float("nan")))
    expected, got = observe(keypoints, scores, *rest), observe(garbage, scores, *rest)
    for name in LifterInput.__slots__:
        torch.testing.assert_close(getattr(got, name), getattr(expected, name), rtol=0, atol=0)
    assert torch.isfinite(got.features).all()


@pytest.mark.parametrize(("focal", "depth"), [(600, 8.0), (1500, 4.0), (300, 1.5)])
def test_features_are_invariant_to_position_and_scale(rng, seen, focal, depth):
    _, scores, times, _, derived, known = seen
    points = torch.from_numpy(rng.normal(0, 0.4, (B, T, JOINTS, 2)).astype(np.float32))
    first = observe(
        people_in_front_of(points, 600, 4.0), scores, times, a_camera(600, (320, 240)), derived, known
    ).features
    other = observe(
        people_in_front_of(points, focal, depth, (100.0, 50.0)),
        scores,
        times,
        a_camera(focal, (100, 50)),
        derived,
        known,
    ).features
    place = [*range(CENTRES.start, CENTRES.stop), LOG_SPREAD]
    rest = [i for i in range(FEATURES) if i not in place]
    torch.testing.assert_close(other[..., rest], first[..., rest], rtol=1e-4, atol=1e-4)
    shown = (scores > 0).any(-1)
    shrunk = (other[..., LOG_SPREAD] - first[..., LOG_SPREAD])[shown]
    torch.testing.assert_close(shrunk, torch.full_like(shrunk, np.log(4.0 / depth)), rtol=1e-3, atol=1e-3)


def test_empty_frame_keeps_the_last_position(seen):
    got = observe(*seen)
    for name in ("centres", "spreads"):
        values = getattr(got, name)
        torch.testing.assert_close(values[0, 3:5], values[0, 2:3].expand_as(values[0, 3:5]), rtol=0, atol=0)
    assert not got.offsets[0, 3:5].any()
    assert not got.seen[0, 3:5].any()
    assert got.seen[0, 5:].all()
    assert not got.centres[1, :2].any()


def test_streamed_features_equal_the_batch(seen):
    keypoints, scores, times, *camera = seen
    expected = observe(*seen)
    before, previous = torch.from_numpy(nothing_observed(B)), times[:, 0] - TYPICAL_STEP
    for t in range(T):
        before = observe_next(keypoints[:, t], scores[:, t], times[:, t] - previous, before, *camera)
        previous = times[:, t]
        torch.testing.assert_close(before, expected.features[:, t], rtol=1e-5, atol=1e-5)


def test_features_encode_time_by_the_frame_step(seen):
    keypoints, scores, times, *camera = seen
    later = observe(keypoints, scores, times + 1e5, *camera).features
    slower = observe(keypoints, scores, times * 2, *camera).features
    first = observe(*seen).features
    torch.testing.assert_close(later, first, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(slower[:, 1:, -1] - first[:, 1:, -1], torch.full((B, T - 1), np.log(2.0)).float())
    torch.testing.assert_close(slower[..., :-1], first[..., :-1])


def test_decoding_without_correction_reprojects_exactly(seen):
    observations = observe(*seen)
    outputs = torch.zeros(B, T, OUTPUTS)
    outputs[..., 1 : 1 + JOINTS] = torch.linspace(-0.2, 0.2, JOINTS)
    outputs[..., 1 + JOINTS : 1 + 2 * JOINTS] = 50
    lifted = decode(outputs, observations)
    assert not lifted.joints[..., 0, :].any()
    points = lifted.joints + lifted.root[..., None, :]
    pelvis_seen = observations.seen & (seen[1][..., 0] > 0)
    mask = (seen[1] > 0) & pelvis_seen[..., None]
    torch.testing.assert_close((points[..., :2] / points[..., 2:])[mask], observations.rays[mask], rtol=1e-3, atol=1e-3)
