"""A person's own point of view: forecasts turn and mirror with them, and know neither pace nor gaps of the past."""

from dataclasses import replace

import numpy as np
import pytest

from pose.lifting.forecast import Past
from pose.lifting.forecast.config import AGES, COORDINATES
from pose.lifting.forecast.features import describe, displacements, restore, seconds_ahead
from pose.structures.sequences import Sequence3D, mirror_lifted
from pose.structures.skeletons import H36M17

RNG = np.random.default_rng(5)
BODY, SWING, PHASE = (RNG.normal(0, 0.3, (17, 3)), RNG.normal(0, 0.1, (17, 3)), RNG.uniform(0, 6, (17, 3)))


def walk(times):
    """A person who swings and walks, at `times` s; smooth."""
    times = np.asarray(times, np.float64)
    joints = BODY + SWING * np.sin(2 * times[:, None, None] + PHASE)
    joints -= joints[:, :1]
    root = np.stack([0.3 * times, 0 * times, 4 - 0.5 * times], axis=1)
    sigma = np.tile(np.linspace(10, 50, 17), (len(times), 1))
    return Sequence3D(joints.astype(np.float32), root.astype(np.float32), sigma.astype(np.float32), times)


def turned(sequence, angle):
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]], np.float32)
    return replace(sequence, joints=sequence.joints @ turn.T, root=sequence.root @ turn.T), turn


@pytest.mark.parametrize("angle", [0.4, 2.0, -3.0])
def test_features_are_invariant_to_yaw(angle):
    plain = walk(np.arange(31) / 30)
    other, turn = turned(plain, angle)
    (tokens, view), (others, other_view) = (describe(Past.from_sequences([one])) for one in (plain, other))
    assert np.allclose(tokens, others, atol=1e-4)
    way = RNG.normal(0, 0.1, (1, 2, COORDINATES)).astype(np.float32)
    ahead = np.full((1, 2), 0.5)
    for one, another in zip(restore(view, way, ahead), restore(other_view, way, ahead), strict=True):
        assert np.allclose(one @ turn.T, another, atol=1e-4)


def test_features_are_equivariant_to_mirroring():
    plain = walk(np.arange(31) / 30)
    tokens, others = (describe(Past.from_sequences([one]))[0] for one in (plain, mirror_lifted(plain)))
    places = np.pad(others[..., :48].reshape(1, 25, 16, 3), ((0, 0), (0, 0), (1, 0), (0, 0)))
    back = places[:, :, list(H36M17.flip_order)] * [-1, 1, 1]
    assert np.allclose(tokens[..., :48].reshape(1, 25, 16, 3), back[:, :, 1:], atol=1e-4)
    assert np.allclose(tokens[..., 48:51], others[..., 48:51] * [-1, 1, 1], atol=1e-4)


def test_body_axes_are_a_rotation_for_degenerate_poses():
    lying = walk(np.arange(3) / 30)
    lying.joints[..., [0, 2]] = 0
    for past in (Past.from_sequences([walk(np.arange(3) / 30)]), Past.from_sequences([lying])):
        turn = describe(past)[1].rotation[0]
        assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-5)
        assert np.linalg.det(turn) > 0.99


@pytest.mark.parametrize("fps", [24, 25, 30, 50, 60])
def test_features_do_not_depend_on_frame_rate(fps):
    fine = walk(np.arange(101) / 100)
    tokens, others = (
        describe(Past.from_sequences([one]))[0] for one in (fine, walk(1 - np.arange(fps + 1)[::-1] / fps))
    )
    assert np.abs(tokens - others)[..., :COORDINATES].max() < 2e-3  # m; what lies between frames is on the line


def test_gaps_are_interpolated_and_marked():
    whole = Past.from_sequences([walk(np.arange(51) / 50)])
    valid = whole.valid.copy()
    valid[0, 20:35] = False
    joints = whole.joints.copy()
    joints[0, 20:35] = np.nan
    tokens, holed = describe(whole)[0], describe(replace(whole, joints=joints, valid=valid))[0]
    gap = holed[0, :, -4] / 10
    hidden = (AGES > -0.61) & (AGES < -0.31)
    assert gap[hidden].max() > 0.1
    assert np.allclose(gap[~hidden], tokens[0, ~hidden, -4] / 10, atol=0.021)
    assert np.isfinite(holed).all()
    assert np.abs(tokens - holed)[0, ~hidden, :48].max() < 0.01


def test_features_are_invertible():
    past = Past.from_sequences([walk(np.arange(31) / 30), walk(np.arange(10) / 15)])
    _, view = describe(past)
    future = [walk([1.2, 1.5]), walk([0.8, 1.0])]
    joints, root = (np.stack([getattr(one, name) for one in future]) for name in ("joints", "root"))
    ahead = seconds_ahead(view, np.stack([one.times for one in future]))
    back = restore(view, displacements(view, joints, root), ahead)
    assert np.allclose(back[0], joints, atol=1e-5)
    assert np.allclose(back[1], root, atol=1e-5)
    assert np.allclose(ahead, [[0.2, 0.5], [0.2, 0.4]])
