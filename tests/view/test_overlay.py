"""The overlay's pixels."""

from dataclasses import replace
from itertools import combinations

import cv2
import numpy as np
import pytest
from pose_fakes import STANDING, random_result, seen_result

from pose.structures.colours import PERSON_COLOURS, SIDE_COLOURS, person_colour, rim_colour
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.view.insets import CORNERS, OFF
from pose.view.overlay import Overlay

GREY = 110


def _picture(size):
    return np.full((size[1], size[0], 3), GREY, np.uint8)


def _nearest_side(pixel):
    distances = {side: np.abs(np.array(colour, int) - pixel).sum() for side, colour in SIDE_COLOURS.items()}
    return min(distances, key=distances.get)


def _middle_of(result, limb, image, person=0):
    a, b = (H36M17.index(name) for name in limb)
    x, y = np.rint(result.people.keypoints[person, [a, b]].mean(axis=0)).astype(int)
    return image[y, x].astype(int)


def _with_scores(result, scores):
    people = result.people
    changed = People(0, 0.0, people.ids, people.boxes, people.box_scores, people.keypoints, scores.astype(np.float32))
    return FrameResult(changed, result.poses)


@pytest.mark.parametrize(
    ("limb", "side"),
    [
        (("left_knee", "left_ankle"), "left"),
        (("left_elbow", "left_wrist"), "left"),
        (("right_knee", "right_ankle"), "right"),
        (("right_shoulder", "right_elbow"), "right"),
        (("spine", "thorax"), "centre"),
    ],
)
def test_limbs_are_drawn_in_their_side_colour(limb, side):
    result = seen_result([(0, 0, 3.0)])
    image = Overlay((640, 480), H36M17, inset="off").draw(_picture((640, 480)), result)
    pixel = _middle_of(result, limb, image)
    assert np.abs(pixel - SIDE_COLOURS[side]).max() < 25


@pytest.mark.parametrize(("limb", "swapped"), [("knee", [True, False]), ("elbow", [False, True])])
def test_sides_are_coloured_as_lifted(limb, swapped):
    result = seen_result([(0, 0, 3.0)])
    result = replace(result, poses=replace(result.poses, swapped=np.array([swapped])))
    image = Overlay((640, 480), H36M17, inset="off").draw(_picture((640, 480)), result)
    ends = {"knee": ("left_knee", "left_ankle"), "elbow": ("left_elbow", "left_wrist")}
    for name, pair in ends.items():
        drawn = _nearest_side(_middle_of(result, pair, image))
        assert drawn == ("right" if name == limb else "left")


def test_unseen_joints_are_not_drawn():
    result = seen_result([(0, 0, 3.0)])
    scores = np.ones((1, 17))
    scores[0, [H36M17.index("left_knee"), H36M17.index("left_ankle")]] = 0
    image = Overlay((640, 480), H36M17, inset="off").draw(_picture((640, 480)), _with_scores(result, scores))
    assert (_middle_of(result, ("left_knee", "left_ankle"), image) == GREY).all()
    assert not (_middle_of(result, ("right_knee", "right_ankle"), image) == GREY).all()


def test_doubtful_people_of_results_without_a_world_are_drawn_dashed():
    result = seen_result([(0, 0, 3.0)])
    whole, dashed = (
        Overlay((640, 480), H36M17, inset="off", doubtful=ids).draw(_picture((640, 480)), result)
        for ids in ((), {int(result.people.ids[0])})
    )
    shares = [(image != GREY).any(axis=2).mean() for image in (whole, dashed)]
    assert shares[1] < 0.95 * shares[0]


def _badge(image, person):
    """Where the badge of a person is, (2,) px, and its area."""
    rows, columns = np.nonzero((image == person_colour(person)).all(axis=2))
    return np.array([columns.mean(), rows.mean()]), len(rows)


def _turned(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return (STANDING @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])).astype(np.float32)


@pytest.mark.parametrize("degrees", [0, 90, 180, -60])
def test_badge_is_at_the_head_in_any_orientation(degrees):
    result = seen_result([(0, 0, 5.0)], _turned(degrees))
    image = Overlay((640, 480), H36M17, inset="off").draw(_picture((640, 480)), result)
    points = result.people.keypoints[0]
    head, neck = points[H36M17.index("head")], points[H36M17.index("thorax")]
    place, _ = _badge(image, 1)
    beyond = place - head
    assert 4 < np.linalg.norm(beyond) < 2 * np.linalg.norm(head - neck)
    assert beyond @ (head - neck) > 0.9 * np.linalg.norm(beyond) * np.linalg.norm(head - neck)


def test_people_are_outlined_in_their_colour():
    result = seen_result([(-0.8, 0, 3.0), (0.8, 0, 3.0)], size=(1280, 960))
    image = Overlay((1280, 960), H36M17, inset="off").draw(_picture((1280, 960)), result)
    for person, box in zip(result.people.ids.tolist(), result.people.boxes.astype(int), strict=True):
        area = image[box[1] : box[3], box[0] - 4 : box[2] + 4].astype(int)
        found = [(np.abs(area - rim_colour(any_id)).max(axis=2) < 12).sum() for any_id in (1, 2)]
        assert found[person - 1] > 100 > 10 > found[2 - person]


def test_time_and_sides_are_written_below_the_image(rng):
    overlay = Overlay((640, 480), H36M17, inset="off")
    pictures = []
    for seconds in (1.0, 2.0):
        nobody = random_result(rng, 0, 0)
        people = nobody.people
        at = People(
            0, seconds, people.ids, people.boxes, people.box_scores, np.zeros((0, 17, 2), np.float32),
            np.zeros((0, 17), np.float32),
        )  # fmt: skip
        pictures.append(overlay.draw(_picture((640, 480)), FrameResult(at, nobody.poses)))
    different = np.argwhere((pictures[0] != pictures[1]).any(axis=2))
    assert len(different) > 5
    assert different.min(axis=0)[0] > 450
    assert different.max(axis=0)[1] < 90
    for side in ("left", "right"):
        assert (np.abs(pictures[0][450:].astype(int) - SIDE_COLOURS[side]).max(axis=2) < 50).sum() > 20


def _lab(colour):
    return cv2.cvtColor(np.float32([[colour]]) / 255, cv2.COLOR_RGB2LAB)[0, 0]


def test_person_colours_are_distinct():
    assert len({person_colour(person) for person in range(1, 11)}) == 10
    every = [*PERSON_COLOURS, *SIDE_COLOURS.values()]
    assert min(np.linalg.norm(_lab(a) - _lab(b)) for a, b in combinations(every, 2)) > 30


def test_empty_frame_changes_only_the_inset(rng):
    size = (640, 360)
    picture = rng.integers(0, 255, (360, 640, 3), np.uint8)
    nobody = random_result(rng, 0, 0)
    drawn = Overlay(size, BLAZEPOSE33, inset="off").draw(picture, nobody)
    assert np.array_equal(drawn[:330], picture[:330])  # below are the time and the legend
    assert np.array_equal(drawn[:, 200:], picture[:, 200:])
    with_inset = Overlay(size, BLAZEPOSE33).draw(picture, nobody)
    changed = (with_inset != picture).any(axis=2)
    assert 0.05 < changed.mean() < 0.2
    assert not changed[:330, :400].any()


def test_portrait_image_stays_whole_beside_the_panel(rng):
    size = (360, 640)
    overlay = Overlay(size, BLAZEPOSE33)
    picture = rng.integers(0, 255, (640, 360, 3), np.uint8)
    image = overlay.draw(picture, random_result(rng, 0, 0))
    assert overlay.output_size == (576, 640)  # wider, but not twice
    assert np.array_equal(image[:600, :360], picture[:600])


def test_an_image_of_another_size_is_refused(rng):
    with pytest.raises(ValueError, match=r"expected shape \(240, 320, 3\)"):
        Overlay((320, 240), BLAZEPOSE33).draw(_picture((321, 240)), random_result(rng, 0, 0))


def _changed_corner(overlay, result, size):
    changed = (overlay.draw(_picture(size), result) != GREY).any(axis=2)
    width, height = size
    corners = {
        (side, level): changed[
            slice(0, height // 8) if level == "top" else slice(-height // 8, None),
            slice(0, width // 8) if side == "left" else slice(-width // 8, None),
        ].mean()
        for side in ("left", "right")
        for level in ("top", "bottom")
    }
    return max(corners, key=corners.get)


def _boxed(box, time):
    nothing = np.zeros((1, 17), np.float32)
    people = People(
        0,
        time,
        np.array([1]),
        np.array([box], np.float32),
        np.ones(1, np.float32),
        np.zeros((1, 17, 2), np.float32),
        nothing,
    )
    poses = Poses3D(np.full((1, 17, 3), np.nan, np.float32), np.full((1, 3), np.nan, np.float32), nothing)
    return FrameResult(people, poses)


def test_inset_moves_to_the_emptiest_corner():
    size = (640, 360)
    overlay = Overlay(size, H36M17)
    right, left = (400, 40, 639, 320), (0, 40, 240, 320)
    assert _changed_corner(overlay, _boxed(right, 0.0), size) == ("left", "top")
    assert _changed_corner(overlay, _boxed(left, 0.5), size) == ("left", "top")
    assert _changed_corner(overlay, _boxed(right, 1.0), size) == ("left", "top")
    assert _changed_corner(overlay, _boxed(left, 2.0), size) == ("left", "top")
    assert _changed_corner(overlay, _boxed(left, 4.0), size) == ("right", "top")


@pytest.mark.parametrize("place", CORNERS)
@pytest.mark.parametrize("size", [(640, 360), (360, 640)])
def test_the_inset_stays_in_the_corner_that_is_asked_for(place, size):
    overlay = Overlay(size, H36M17, inset=place)
    assert overlay.output_size == size
    level, side = place.split("-")
    for time in (0.0, 4.0):
        assert _changed_corner(overlay, _boxed((0, 0, *size), time), size) == (side, level)


def test_disabled_inset_changes_no_corner(rng):
    overlay = Overlay((360, 640), H36M17, inset=OFF)
    assert overlay.output_size == (360, 640)
    assert (overlay.draw(_picture((360, 640)), random_result(rng, 0, 0))[:500] == GREY).all()


@pytest.mark.parametrize("size", [(300, 1), (1, 300), (1, 1), (3, 300), (300, 16), (2000, 4)])
def test_overlay_supports_any_image_shape(size, rng):
    width, height = size
    overlay = Overlay(size, BLAZEPOSE33)
    drawn = overlay.draw(np.zeros((height, width, 3), np.uint8), random_result(rng, 0, 2))
    assert drawn.shape == (overlay.output_size[1], overlay.output_size[0], 3)
