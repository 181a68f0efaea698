"""Heads of characters turn to where nose, eyes and ears are in the image."""

from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import STANDING, seen_result

from pose.body.character.heads import _POINTS, SeenHeads, from_vectors, head_corrections, lifted_heads
from pose.body.skeleton import ORDER
from pose.body.space import CAMERA_SPACE
from pose.structures import rotations
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17
from pose.view.bodies import draw_bodies
from pose.view.draw import Canvas
from pose.view.mesh_overlay import BodyMeshes

CAMERA = Camera.of((1000, 1000))
FOCAL = np.diag(CAMERA.matrix)[:2]
PLACES = CAMERA_SPACE.to_file(STANDING[None] + np.array([0.3, -0.2, 4]))


def seen(vector, points=tuple(_POINTS)):
    """The head of `PLACES`, turned by a rotation vector (3,) in its own frame, in the image, without errors."""
    head = rotations.multiply(lifted_heads(PLACES[:, ORDER]), from_vectors(np.array([vector], float)))
    middle = PLACES[:, [9, 10]].mean(axis=1, keepdims=True)
    model = np.array(list(_POINTS.values()))
    there = middle + rotations.rotate(head[:, None], model - model.mean(axis=0))
    pixels = FOCAL * (there[..., :2] * (1, -1)) / -there[..., 2:] + CAMERA.matrix[:2, 2]
    scores = np.array([[float(name in points) for name in _POINTS]], np.float32)
    return SeenHeads(pixels, scores, FOCAL[None])


@pytest.mark.parametrize(
    "vector", [(0, 0, 0), (0, 0.9, 0), (0, -0.9, 0), (0.3, 0, 0), (0, 0, -0.3), (-0.2, 0.6, 0.2), (0, 1.4, 0)]
)
def test_exact_face_points_give_the_head_rotation(vector):
    (found,) = head_corrections(PLACES, seen(vector))
    away = rotations.multiply(rotations.inverse(from_vectors(np.array(vector, float))), from_vectors(found))
    assert np.degrees(rotations.angle_between(away, rotations.IDENTITY)) < 2 + 0.4 * np.degrees(np.linalg.norm(vector))


def test_too_few_face_points_fall_back_to_the_joints():
    vector = (0, 0.8, 0)
    full, ears = (
        head_corrections(PLACES, seen(vector, names)) for names in (_POINTS, ("nose", "left_ear", "right_ear"))
    )
    np.testing.assert_allclose(ears, full, atol=0.15)
    np.testing.assert_array_equal(head_corrections(PLACES, seen(vector, ("nose", "left_ear"))), 0)
    beyond = PLACES * (1, 1, -1)  # behind the camera
    np.testing.assert_array_equal(head_corrections(beyond, seen(vector)), 0)


@pytest.mark.parametrize("places", [np.zeros((1, 17, 3)), PLACES - np.array([0, 0, 1e7])])
def test_degenerate_face_points_give_finite_rotations(places):
    one = seen((0, 0.5, 0))
    one.pixels[0, 0] = np.nan
    assert np.isfinite(head_corrections(places, one)).all()


def test_drawn_heads_follow_the_face_points():
    """The nose of the drawn body goes to the side of the image where that of the person is."""
    result = seen_result([(0, 0, 2.0)])
    joints = (result.poses.joints[0] + result.poses.root[0]).astype(float)
    head = joints[[9, 10]].mean(axis=0)
    drawn = []
    for angle in (-0.9, 0.9):
        lifted = lifted_heads(CAMERA_SPACE.to_file(joints[None])[:, ORDER])
        turned = rotations.multiply(lifted, from_vectors(np.array([[0, angle, 0]])))
        model = np.array(list(_POINTS.values()))
        there = head + rotations.rotate(turned[:, None], model - model.mean(axis=0))[0] * (1, -1, -1)
        camera = Camera.of((640, 480))
        keypoints, scores = np.zeros((1, 17, 2), np.float32), np.zeros((1, 17), np.float32)
        keypoints[0, [COCO17.index(name) for name in _POINTS]] = (
            there[:, :2] / there[:, 2:] * np.diag(camera.matrix)[:2] + camera.matrix[:2, 2]
        )
        scores[0, [COCO17.index(name) for name in _POINTS]] = 1
        people = replace(result.people, keypoints=keypoints, scores=scores)
        image = np.full((480, 640, 3), 110, np.uint8)
        draw_bodies(Canvas(image), BodyMeshes(camera, COCO17).of(replace(result, people=people)))
        shown = (image != 110).any(axis=2)
        top = np.flatnonzero(shown.any(axis=1))[0]
        columns = np.flatnonzero(shown[top : top + 28].any(axis=0))
        drawn.append((columns.min() + columns.max()) / 2)
    assert drawn[1] - drawn[0] > 2  # the left of a person who faces the camera is on the right of the image
