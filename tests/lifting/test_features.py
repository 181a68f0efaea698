"""What the network sees of a frame: relative to the person, seen joints only, carried over gaps; and back to metres."""

import numpy as np
import pytest
import torch

from pose.lifting.features import LifterInput, decode, observe, observe_next
from pose.lifting.format import FEATURES, JOINTS, OUTPUTS, TYPICAL_STEP, nothing_observed

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
