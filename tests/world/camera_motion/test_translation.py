"""A camera that moves from its place shows parallax, and is not taken for one that turns."""

import numpy as np
import pytest
from virtual_camera import CAMERA, SIZE, measured, texture

from benchmarks.world.camera_motion import found
from pose.structures.types import U8
from pose.world.camera_motion.decision import decide
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.verdict import ROTATING, SHAKING, TRANSLATING, UNKNOWN

WIDTH, HEIGHT = SIZE
_DEPTHS = (9.0, 4.0, 2.5)  # m, of the far wall and of what stands before it


@pytest.fixture(scope="module")
def textures():
    return texture(21), texture(22)


def sideways(metres: float, textures: tuple[U8, U8]) -> U8:
    """A wall, and things before it at two depths, from a camera that has moved to the right."""
    far, near = textures
    focal = CAMERA.matrix[0, 0]
    shift = round(focal * metres / _DEPTHS[0])
    image = far[200 : 200 + HEIGHT, 300 + shift : 300 + shift + WIDTH].copy()
    for depth, places in ((_DEPTHS[1], range(-600, 1400, 140)), (_DEPTHS[2], range(-530, 1400, 200))):
        moved = round(focal * metres / depth)
        for number, place in enumerate(places):
            left, top = place - moved, 20 + 50 * (number % 3)
            a, b = max(0, left), min(WIDTH, left + 60)
            if b > a:
                source = 60 * (number % 8) + a - left
                image[top : top + 90, a:b] = near[top : top + 90, source : source + b - a]
    return image


@pytest.mark.parametrize("speed", [0.5, 1.2])
def test_walking_sideways_is_not_a_pan(speed, textures):
    """speed: m/s."""
    _, motion = measured(sideways(speed * index / 30, textures) for index in range(60))
    assert motion.kind in (TRANSLATING, UNKNOWN), motion


@pytest.mark.parametrize(
    "name", ["sideways, 0.5 m/s", "sideways, panning to and fro, 1 m/s", "round a person, 0.5 m/s", "walking, 1 m/s"]
)
def test_translating_camera_gives_no_world(name):
    motion = found(("hall", name, 5, 2.0))
    assert motion.kind in (TRANSLATING, UNKNOWN), motion


def test_translation_along_a_wall_is_unknown():
    assert found(("far wall", "sideways, 0.5 m/s", 5, 2.0)).kind == UNKNOWN


@pytest.mark.parametrize(
    "name", ["sideways, panning to and fro, 0.5 m/s", "round a person, 0.5 m/s", "forwards, 1 m/s"]
)
def test_translation_before_a_wall_is_never_certain(name):
    """It may look like one that turns or zooms; then feet must support it (`pose.world.footing`)."""
    motion = found(("far wall", name, 5, 2.0))
    assert motion.kind in (TRANSLATING, UNKNOWN) or not motion.excludes_translation, motion


@pytest.mark.parametrize(("name", "kind"), [("tripod, 10 cm off axis", ROTATING), ("shake", SHAKING)])
def test_rotating_camera_is_not_translating(name, kind):
    motion = found(("small room", name, 5, 2.0))
    assert motion.kind == kind, motion


def test_without_measurements_the_camera_counts_as_fixed():
    assert decide(MotionLog()).motion.kind == "fixed"
    assert np.isnan(decide(MotionLog()).motion.pan)
