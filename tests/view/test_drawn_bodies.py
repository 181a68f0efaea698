"""Shaded bodies in the overlay."""

from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import rgb_of, seen_result

from pose.structures.camera import Camera
from pose.structures.colours import person_colour
from pose.structures.hand_points import WRISTS, Hands
from pose.structures.skeletons import H36M17
from pose.video.planes import BT709, Colours, Planes
from pose.view.bodies import draw_bodies, extent
from pose.view.draw import Canvas
from pose.view.mesh_overlay import BATCH_FRAMES, BodyMeshes
from pose.view.overlay import Overlay
from pose.view.planar_overlay import PlanarOverlay

SIZE = (640, 480)
CAMERA = Camera.of(SIZE)


def blank():
    return np.full((SIZE[1], SIZE[0], 3), 110, np.uint8)


def bodies_on(image, *results):
    meshes = BodyMeshes(CAMERA, H36M17)
    for result in results:
        draw_bodies(Canvas(image), meshes.of(result))
    return image


def changed(image):
    return (image != 110).any(axis=2)


def test_drawn_body_covers_its_joints():
    result = seen_result([(0.2, 0.1, 3.0)])
    body = changed(bodies_on(blank(), result))
    joints = result.people.keypoints[0]
    own = [joint for joint, name in enumerate(H36M17.names) if name not in ("neck", "head")]
    x, y = np.rint(joints[own]).astype(int).T
    assert body[y, x].all()
    rows, columns = np.nonzero(body)
    low, high = joints.min(axis=0), joints.max(axis=0)
    room = 0.2 * (high[1] - low[1])  # a hand, a foot, the crown
    assert low[0] - room < columns.min() < columns.max() < high[0] + room
    assert low[1] - room < rows.min() < rows.max() < high[1] + room


def test_nearer_body_occludes_the_farther():
    far, near = (0.0, 0.0, 4.0), (0.0, 0.0, 2.5)
    for places, front in (([far, near], 2), ([near, far], 1)):
        result = seen_result(places)
        pixel = bodies_on(blank(), result)[tuple(np.rint(result.people.keypoints[0, 0, ::-1]).astype(int))]
        apart = {
            person: np.abs(pixel / np.linalg.norm(pixel.astype(float)) - hue / np.linalg.norm(hue)).sum()
            for person in (1, 2)
            if (hue := 0.75 * np.array(person_colour(person), float) + 0.25 * 110).any()
        }
        assert min(apart, key=apart.get) == front


def test_bodies_are_translucent_and_stay_in_their_area():
    striped = np.tile(np.where(np.arange(SIZE[0]) % 8 < 4, 60, 160).astype(np.uint8)[None, :, None], (SIZE[1], 1, 3))
    result = seen_result([(0.2, 0.1, 3.0), (2.5, 0, 3.0)])  # the second is partly beyond the edge
    overlay = Overlay(SIZE, H36M17, inset="off", bodies=BodyMeshes(CAMERA, H36M17))
    drawn = overlay.draw(striped, result)
    outside = np.ones(striped.shape[:2], bool)
    for area in overlay.changes(result):
        outside[area.y0 : area.y1, area.x0 : area.x1] = False
    assert (drawn == striped)[outside].all()
    thorax = np.rint(result.people.keypoints[0, H36M17.index("thorax")]).astype(int)
    across = drawn[thorax[1] + 25, thorax[0] - 30 : thorax[0] - 6].astype(int).sum(axis=1)
    assert np.ptp(across) > 30


@pytest.mark.parametrize("place", [(0, 0, 0.05), (0, 0, -2.0), (1e4, 0, 3.0), (0, 0, 1e4)])
def test_degenerate_positions_are_drawn_without_error(place):
    result = seen_result([(0, 0, 3.0)])
    result.poses.root[0] = place
    overlay = Overlay(SIZE, H36M17, inset="off", bodies=BodyMeshes(CAMERA, H36M17))
    assert overlay.draw(blank(), result).shape == (480, 640, 3)
    for area in overlay.changes(result):
        assert 0 <= area.x0 <= area.x1 <= 640
    for mesh in BodyMeshes(CAMERA, H36M17).of(result):
        assert np.isfinite(mesh.corners).all()


def test_portions_equal_single_frames():
    results = [seen_result([(0.01 * at, 0, 3.0)], index=at, time=at / 30) for at in range(BATCH_FRAMES + 3)]
    one_by_one, ahead = BodyMeshes(CAMERA, H36M17), BodyMeshes(CAMERA, H36M17)
    for result, same in zip(results, ahead.in_batches(results), strict=True):
        assert same is result
        if 2 < result.index < BATCH_FRAMES - 1:
            continue
        (a,), (b,) = one_by_one.of(result), ahead.of(result)
        np.testing.assert_allclose(extent(a), extent(b), atol=0.05)


def test_detected_hands_rotate_the_body_hands():
    result = seen_result([(0, 0, 2.0)])
    rng = np.random.default_rng(0)
    shapes = 0.08 * rng.standard_normal((1, 2, 21, 3)).astype(np.float32)
    hands = Hands(np.zeros((1, 2, 21, 2), np.float32), np.ones((1, 2, 21), np.float32), shapes)
    with_hands = replace(result, people=replace(result.people, hands=hands))
    pictures = [bodies_on(blank(), one) for one in (result, with_hands)]
    differs = np.argwhere((pictures[0] != pictures[1]).any(axis=2))[:, ::-1]
    wrists = result.people.keypoints[0, list(WRISTS)]
    assert (np.linalg.norm(differs[:, None] - wrists, axis=2) < 40).any(axis=0).all()
    assert differs[:, 1].max() < result.people.keypoints[0, H36M17.index("left_knee"), 1]


def test_bodies_on_planes_equal_rgb():
    result = seen_result([(0.2, 0.1, 3.0)])
    colours = Colours(BT709)
    planes = Planes.of_rgb(blank(), colours)
    drawn = PlanarOverlay(SIZE, H36M17, colours, "off", BodyMeshes(CAMERA, H36M17)).draw(planes, result)
    expected = Overlay(SIZE, H36M17, inset="off", bodies=BodyMeshes(CAMERA, H36M17)).draw(blank(), result)
    assert np.abs(rgb_of(drawn).astype(int) - expected).mean() < 2
