"""Heads and feet of characters: where they point, without jitter, and soles on the floor."""

from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import STANDING, seen_result

from pose.body.character.heads import _POINTS, SeenHeads, from_vectors, head_corrections, lifted_heads
from pose.body.character.sole_lock import Soles, locked, lowering, rise_of
from pose.body.skeleton import ORDER
from pose.body.soles import StreamingSmoother, smoothed
from pose.body.space import CAMERA_SPACE
from pose.structures import rotations
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17, H36M17
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


TIMES = np.arange(90) / 30


def test_smoothing_keeps_a_constant_and_calms_noise():
    rng = np.random.default_rng(0)
    constant, noise = np.tile([0.1, 0.5, 0.0], (90, 1)), 0.1 * rng.standard_normal((90, 3))
    stream = StreamingSmoother(0.1)
    in_parts = np.concatenate([stream.step(constant[:7], TIMES[:7]), stream.step(constant[7:], TIMES[7:])])
    np.testing.assert_allclose(in_parts, constant)
    np.testing.assert_allclose(smoothed(constant, TIMES, 0.07), constant)
    for calm in (StreamingSmoother(0.1).step(noise, TIMES), smoothed(noise, TIMES, 0.07)):
        assert np.diff(calm, axis=0).std() < np.diff(noise, axis=0).std() / 3


def test_window_smoothing_has_no_delay_and_streaming_has():
    ramp = TIMES[:, None].copy()
    middle = slice(20, 70)
    np.testing.assert_allclose(smoothed(ramp, TIMES, 0.07)[middle], ramp[middle], atol=1e-9)
    behind = (ramp - StreamingSmoother(0.1).step(ramp, TIMES))[middle]
    np.testing.assert_allclose(behind, 0.1, atol=0.02)


ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
SOLE = np.array([[x, -0.07, z] for x in (-0.04, 0.04) for z in (-0.06, 0.05, 0.16)])
SOLES = Soles((SOLE, SOLE))
ON = (TIMES > 1) & (TIMES < 2)


def walker(height=0.12, slide=0.3):
    """Ankles at a height, of which the left one slides during its contact; the sole rolls from heel to toe."""
    points = np.zeros((90, 17, 3))
    points[:, ANKLES, 1] = height
    points[:, ANKLES[0], 2] = slide * TIMES
    pitch = np.where(ON, np.clip((TIMES - 1.5) * 2, 0, 1), 0) * np.radians(40)
    feet = np.zeros((90, 2, 2, 3))
    feet[..., 0, 2] = feet[..., 1, 1] = 1
    feet[:, 0, 0] = np.stack([0 * pitch, -np.sin(pitch), np.cos(pitch)], axis=1)
    feet[:, 0, 1] = np.stack([0 * pitch, np.cos(pitch), np.sin(pitch)], axis=1)
    contacts = np.stack([np.where(ON, 0.9, 0.1), np.zeros(90)], axis=1)
    return points, feet, contacts


def left_sole(points, feet):
    along, above = feet[:, 0, 0], feet[:, 0, 1]
    axes = np.stack([np.cross(above, along), above, along], axis=-1)
    return points[:, ANKLES[0], None] + np.einsum("tij,sj->tsi", axes, SOLE)


@pytest.mark.parametrize("height", [0.12, 0.03])
def test_a_sole_in_contact_stays_where_it_is(height):
    points, feet, contacts = walker(height)
    sole = left_sole(locked(points, feet, contacts, TIMES, SOLES), feet)[ON]
    low = sole[..., 1].min(axis=1)
    assert np.abs(low).max() < 1e-9, "neither floats nor sinks in"
    toe = sole[-5:, np.argmax(SOLE[:, 2])]
    assert np.linalg.norm(np.diff(toe, axis=0), axis=1).max() * 30 < 0.02, "the toe holds while the heel rises"
    heel = sole[:15, np.argmin(SOLE[:, 2])]
    assert np.linalg.norm(np.diff(heel, axis=0), axis=1).max() * 30 < 0.02


def test_corrections_fade_and_leave_all_other_joints_alone():
    points, feet, contacts = walker()
    result = locked(points, feet, contacts, TIMES, SOLES)
    others = np.delete(np.arange(17), ANKLES)
    np.testing.assert_array_equal(result[:, others], points[:, others])
    far = (TIMES < 0.75) | (TIMES > 2.25)
    np.testing.assert_allclose(result[far], points[far], atol=1e-9)
    moved = (result - points)[:, ANKLES[0]]
    assert np.linalg.norm(np.diff(moved, axis=0), axis=1).max() < 0.04, "without a jump"


def test_people_on_stairs_keep_their_height_and_feet_in_the_air_do_not_sink():
    points, feet, contacts = walker(height=1.3, slide=0.0)
    result = locked(points, feet, contacts, TIMES, SOLES)
    assert np.abs(left_sole(result, feet)[ON][..., 1].min(axis=1) - 1.23).max() < 0.1
    sunk, feet, _ = walker(height=0.02)
    result = locked(sunk, feet, np.zeros((90, 2)), TIMES, SOLES)
    assert left_sole(result, feet)[..., 1].min() > -1e-9


def test_a_body_that_floats_is_lowered_as_a_whole():
    points, feet, contacts = walker(height=0.12)
    assert rise_of(points, feet, contacts, SOLES) == pytest.approx(-0.05, abs=0.02)
    assert rise_of(points, feet, 0 * contacts, SOLES) == 0


def test_a_body_is_lowered_where_its_legs_are_too_short():
    hips = np.tile([[0.1, 0.95, 0.0], [-0.1, 0.95, 0.0]], (90, 1, 1))
    ankles = np.tile([[0.1, 0.1, 0.0], [-0.1, 0.1, 0.0]], (90, 1, 1))
    ankles[40:50, 0, 2] += 0.3
    contacts = np.ones((90, 2))
    drop = lowering(hips, ankles, contacts, TIMES, (0.44, 0.43))
    apart = np.linalg.norm(hips - [0, 1, 0] * drop[:, None, None] - ankles, axis=-1)
    assert apart.max() < 0.87
    assert drop[40:50].min() > 0.02
    assert (drop[:25] < 1e-9).all()
    assert np.abs(np.diff(drop)).max() < 0.02, "without a jump"
    assert (lowering(hips, ankles, np.zeros((90, 2)), TIMES, (0.44, 0.43)) == 0).all(), "feet in the air do not count"
