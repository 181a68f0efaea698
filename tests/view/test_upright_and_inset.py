"""The upright stage and the 3D image made of it."""

import numpy as np
import pytest
from pose_fakes import STANDING, seen_result

from pose.structures.colours import SIDE_COLOURS, person_colour
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, Placed, Poses3D
from pose.view import inset as inset_module
from pose.view.draw import Canvas, as_rgb
from pose.view.inset import Inset, _draw_bodies
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.upright import CausalWorld, Upright, mean_up, to_stage


def _tilt(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


# People stand with the middle of the foot, not with the ankle, below their centre of mass.
ON_ITS_FEET = STANDING.copy()
ON_ITS_FEET[[3, 6], 2] += 0.09


def test_the_stage_has_the_world_s_y_as_z_and_looks_away_from_the_camera():
    assert to_stage(np.array([0.3, 1.7, -2.0])) == pytest.approx([0.3, 2.0, 1.7])


def test_placed_people_are_shown_at_their_position():
    result = seen_result([(0, 0, 3.0), (1, 0, 4.0)])
    world = np.arange(2 * 17 * 3, dtype=np.float32).reshape(2, 17, 3)
    nothing = np.zeros(2, np.float32)
    placed = Placed(world, nothing, np.zeros((2, 2), np.float32), nothing > 0, nothing)
    shown = Upright().place(FrameResult(result.people, result.poses, placed), np.array([1]))
    np.testing.assert_array_equal(shown, to_stage(world[1:]))


@pytest.mark.parametrize("degrees", [-20, 0, 15, 30])
def test_standing_person_reveals_the_vertical(degrees):
    tilt = _tilt(degrees)
    up = mean_up((ON_ITS_FEET @ tilt.T).astype(np.float32)[None])
    angle = np.degrees(np.arccos(up @ tilt @ [0, -1, 0] / np.linalg.norm(up)))
    assert angle < 1


def test_a_tilted_camera_is_learnt_in_a_few_seconds_and_feet_stay_on_the_floor():
    tilt = _tilt(20)
    joints = (ON_ITS_FEET @ tilt.T).astype(np.float32)[None]
    world = CausalWorld()
    for i in range(250):
        root = (tilt @ [0, 0, 3 + i / 100]).astype(np.float32)[None]
        placed = world.place([1], joints, root, i / 25)
    height = placed[0, :, 1]
    assert height[H36M17.index("left_ankle")] == pytest.approx(ANKLE_HEIGHT, abs=0.05)
    assert height[H36M17.index("head")] == pytest.approx(1.61 + ANKLE_HEIGHT, abs=0.05)


def test_jump_leaves_the_floor_in_the_inset():
    world = CausalWorld()
    body = STANDING[None]
    for i in range(25):
        world.place([1], body, np.array([[0, 0, 3]], np.float32), i / 25)
    in_the_air = world.place([1], body, np.array([[0, -0.4, 3]], np.float32), 1.04)
    assert in_the_air[0, H36M17.index("left_ankle"), 1] == pytest.approx(0.4 + ANKLE_HEIGHT, abs=0.03)


def _has(image, colour, tolerance=30):
    return (np.abs(image.astype(int) - colour).max(axis=2) <= tolerance).sum()


def test_unknown_joints_are_not_drawn():
    known = seen_result([(0, 0, 3.0)])
    unknown = Poses3D(known.poses.joints * np.nan, known.poses.root * np.nan, known.poses.sigma)
    nobody = Inset((200, 200)).render(seen_result(np.zeros((0, 3))))
    assert np.array_equal(Inset((200, 200)).render(FrameResult(known.people, unknown)), nobody)


def test_only_the_uncertain_joint_gets_a_halo():
    sure = seen_result([(0, 0, 3.0)])
    sigma = sure.poses.sigma.copy()
    sigma[0, H36M17.index("left_wrist")] = 100
    unsure = FrameResult(sure.people, Poses3D(sure.poses.joints, sure.poses.root, sigma))
    changed = (Inset((300, 300)).render(sure) != Inset((300, 300)).render(unsure)).any(axis=2)
    assert 500 < changed.sum() < 10_000


def test_inset_shows_all_people_in_perspective():
    image = Inset((400, 400)).render(seen_result([(-1, 0, 3.0), (1, 0, 8.0)]))
    near, far = _has(image, person_colour(1), 8), _has(image, person_colour(2), 8)
    assert near > far > 20
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]]).astype(int)
    for colour in (*SIDE_COLOURS.values(), person_colour(1), person_colour(2)):
        assert np.abs(border - colour).max(axis=1).min() > 40


@pytest.fixture
def drawn(monkeypatch):
    """What the inset draws of bodies, each time on an image of its own, and the distance of its view."""
    found = []

    def on_black(canvas, view, people):
        black = np.zeros_like(canvas.pixels)
        _draw_bodies(Canvas(black, as_rgb), view, people)
        found.append((black, view.distance, people.pixels))

    monkeypatch.setattr(inset_module, "_draw_bodies", on_black)
    return found


def _any_pose(rng):
    """A body whose bones point anywhere."""
    directions = rng.normal(size=(17, 3))
    body = np.zeros((17, 3), np.float32)
    for near, far in H36M17.edges:
        length = np.linalg.norm(STANDING[far] - STANDING[near])
        body[far] = body[near] + length * directions[far] / np.linalg.norm(directions[far])
    return body


def _leaning(degrees):
    """A person who leans to the side from the hips, arms stretched out beyond the head."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    body = STANDING.copy()
    above = [j for j, name in enumerate(H36M17.names) if not name.endswith(("hip", "knee", "ankle", "pelvis"))]
    body[[13, 16]] = body[10] + np.array([[-0.1, -0.4, 0], [0.1, -0.4, 0]])
    body[[12, 15]] = body[10] + np.array([[-0.15, -0.1, 0], [0.15, -0.1, 0]])
    body[above] = body[above] @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], np.float32).T
    return body


@pytest.mark.parametrize("size", [(95, 210), (230, 496), (330, 300)])
@pytest.mark.parametrize("people", [1, 3])
def test_bodies_are_fully_visible_in_the_inset(size, people, drawn, rng):
    inset, time = Inset(size), 0.0
    for _ in range(8):  # poses, from one to the next in a few frames
        before, after = _any_pose(rng), _any_pose(rng)
        roots, ways = rng.uniform((-2, 0, 2), (2, 0, 6), (people, 3)), rng.normal(0, 0.1, (people, 3))
        for i in range(4):
            time += 0.04
            inset.render(seen_result(roots + i * ways, before + (after - before) * i / 4, time=time))
    assert len(drawn) == 32
    for picture, _, pixels in drawn:
        assert picture.any()
        assert not any(edge.any() for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]))
        assert (pixels > 0).all()
        assert (pixels < size).all()


def test_repeated_leaning_does_not_rescale_the_inset(drawn):
    """What was needed once stays for a while; where it is needed no more the view comes near slowly."""
    inset, times = Inset((230, 496)), np.arange(120) / 12.5
    for time in times.tolist():
        inset.render(seen_result([(0, 0, 3.0)], _leaning(70 * np.sin(np.pi * time) if time < 5 else 0), time=time))
    distances = np.array([distance for _, distance, _ in drawn])
    zoom = np.diff(np.log(distances))
    assert np.abs(zoom[(times[1:] > 1.5) & (times[1:] < 5)]).sum() < 0.1  # the point of view sways: a little
    assert -0.02 < zoom.min() < -0.001
    assert distances[-1] < distances[62] - 0.3
