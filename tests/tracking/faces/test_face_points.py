"""What is read off the points of a face: the head's rotation, and how far eyes, brows and mouth are open."""

import numpy as np
import pytest

from pose.structures.face_points import _PAIRS as PAIRS
from pose.structures.face_points import ANGLES, CONTOURS, MEASURES, POINTS, Faces, head_angles, head_turns, measures


def face(turn=None) -> np.ndarray:
    """(468, 3) px of a symmetric face that looks into the camera, then turned (x right, y up, z to the camera)."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-40, 40, (POINTS, 3))
    right, left = PAIRS.T
    points[right] = rng.uniform((-60, -40, 0), (-20, 40, 30), (len(PAIRS), 3))
    points[left] = points[right] * (-1, 1, 1)
    points[10], points[152] = (0, 70, 10), (0, -70, 10)
    points = points if turn is None else points @ np.asarray(turn).T
    return points * (1, -1, -1)


def about(axis: int, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
    return turn


@pytest.mark.parametrize("wanted", [(0, 0, 0), (30, 0, 0), (0, 20, 0), (0, 0, 15), (-40, 25, -30), (70, -35, 50)])
def test_head_angles_equal_the_applied_rotation(wanted):
    yaw, pitch, roll = wanted
    turn = about(1, yaw) @ about(0, -pitch) @ about(2, -roll)
    np.testing.assert_allclose(head_angles(face(turn)), wanted, atol=1e-9)
    np.testing.assert_allclose(head_turns(face(turn)), turn, atol=1e-12)


def test_face_measures_are_invariant_and_side_specific():
    points = face()
    turned = 3 * face(about(1, 50) @ about(0, 20))
    np.testing.assert_allclose(measures(turned), measures(points), rtol=1e-9)
    points[[386, 374, 385, 380, 387, 373]] = points[263]  # the left eye closes
    closed = dict(zip(MEASURES, measures(points), strict=True))
    assert closed["left_eye_open"] == pytest.approx(0, abs=1e-6)
    assert closed["right_eye_open"] > 0.1
    points[14] = points[13]
    assert dict(zip(MEASURES, measures(points), strict=True))["mouth_open"] == pytest.approx(0, abs=1e-6)


def test_undetected_faces_have_score_0():
    assert max(max(line) for line in CONTOURS) < POINTS
    assert len(ANGLES) == 3
    more = Faces.unknown(1) + Faces.unknown(2)
    assert len(more) == 3
    assert not more[[0, 2]].detected.any()
    with pytest.raises(ValueError, match=r"expected shape \(1\), got \(2,\)"):
        Faces(np.zeros((1, POINTS, 3), np.float32), np.zeros(2, np.float32))
