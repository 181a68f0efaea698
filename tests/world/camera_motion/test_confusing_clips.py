"""What moves before a camera that stands still is not taken for the camera's motion."""

from collections.abc import Callable

import cv2
import numpy as np
import pytest
from virtual_camera import SIZE, measured, people, seen, texture

from pose.structures.types import U8
from pose.world.camera_motion.reduced import BurntIn
from pose.world.camera_motion.verdict import ROTATING, STATIC, UNKNOWN

FRAMES = 36
WIDTH, HEIGHT = SIZE
_SCENE, _OTHER = seen(texture(11)), texture(12)
_CLIPS: dict[str, Callable[[int], U8]] = {}


def clip(draw: Callable[[int, U8], U8 | None]) -> Callable[[int, U8], U8 | None]:
    """Registers a clip: draws one frame (by its index) into a copy of the still scene, or returns another image."""

    def image(index: int) -> U8:
        canvas = _SCENE.copy()
        drawn = draw(index, canvas)
        return canvas if drawn is None else drawn

    _CLIPS[draw.__name__] = image
    return draw


@clip
def passing_train(index, image):
    """Comes in from the left, fills 70 % of the height, and leaves."""
    front = index * 40 - 200
    left, right = max(0, front - 500), min(WIDTH, front)
    if right > left:
        image[30:180, left:right] = _OTHER[30:180, 600 - front + left : 600 - front + right]


@clip
def train_that_never_ends(index, image):
    image[60:] = _OTHER[60:HEIGHT, 300 - 8 * index : 300 - 8 * index + WIDTH]


@clip
def crowd_without_boxes(index, image):
    """Twelve walkers, of which the detector finds none."""
    for walker in range(12):
        speed = 3 * (-1) ** walker
        left = (walker * 47 + speed * index) % (WIDTH - 40)
        image[60 + 5 * (walker % 5) : 210, left : left + 22] = _OTHER[
            60 + 5 * (walker % 5) : 210, walker * 30 : walker * 30 + 22
        ]


@clip
def mirror(index, image):
    """Half of the image is a mirror, in front of which a person moves."""
    moved = np.roll(_OTHER[:HEIGHT, : WIDTH // 2], 4 * index, axis=1)
    image[20:200, WIDTH // 2 + 20 : WIDTH - 10] = moved[20:200, : WIDTH // 2 - 30]


@clip
def water(index, image):
    """The lower two thirds ripple."""
    rows, columns = np.mgrid[70:HEIGHT, 0:WIDTH].astype(np.float32)
    phase = 0.6 * index
    across = columns + 3 * np.sin(rows / 7 + phase) + 2 * np.sin(columns / 11 - 1.3 * phase)
    image[70:] = cv2.remap(_SCENE, across, rows + 2 * np.cos(columns / 9 + phase), cv2.INTER_LINEAR)


@clip
def flag(index, image):
    rows, columns = np.mgrid[20:160, 120:340].astype(np.float32)
    wave = (columns - 120) / 30 * np.sin(columns / 20 - 0.7 * index)
    image[20:160, 120:340] = cv2.remap(_OTHER, columns, rows + wave, cv2.INTER_LINEAR)


@clip
def night(index, image):
    rng = np.random.default_rng(index)
    return np.clip(image * 0.12 + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


@clip
def rain(index, image):
    rng = np.random.default_rng(index)
    for x, y in rng.integers(0, (WIDTH, HEIGHT), (120, 2)).tolist():
        cv2.line(image, (x, y), (x + 2, y + 14), (200, 200, 200), 1)


@clip
def lamp_that_flickers(index, image):
    return np.clip(image * (1 + 0.25 * np.sin(2.1 * index)), 0, 255).astype(np.uint8)


@clip
def sunset(index, image):
    return np.clip(image * (1 - 0.012 * index), 0, 255).astype(np.uint8)


@clip
def focus_that_hunts(index, image):
    return cv2.GaussianBlur(image, (0, 0), 0.3 + 2.2 * abs(np.sin(index / 6)))


@clip
def coarse_compression(index, image):
    quality = [cv2.IMWRITE_JPEG_QUALITY, 8 + 5 * (index % 4)]
    return np.asarray(cv2.imdecode(cv2.imencode(".jpg", image, quality)[1], cv2.IMREAD_COLOR), np.uint8)


@clip
def screen_recording(index, image):
    """A page that scrolls between a header, a footer and a side bar."""
    image[50:190, 90:] = _OTHER[50 + 6 * index : 190 + 6 * index, 90:WIDTH]


@clip
def television_in_the_room(index, image):
    image[50:150, 110:280] = _OTHER[50:150, 110 + 7 * index : 280 + 7 * index]


@clip
def letterbox(index, image):
    image[:28], image[-28:] = 0, 0
    image[60:150, 40 + 4 * index : 90 + 4 * index] = _OTHER[60:150, :50]


@clip
def rolling_titles(index, image):
    for line in range(8):
        y = HEIGHT + 40 * line - 7 * index
        cv2.putText(image, "directed by somebody", (60, y), 0, 0.7, (255, 255, 255), 2)


@clip
def conveyor_belt(index, image):
    image[120:200] = np.roll(_OTHER[120:200, :WIDTH], 5 * index, axis=1)


@clip
def clouds(index, image):
    image[:90] = _OTHER[:90, 2 * index : 2 * index + WIDTH]


@clip
def trees_in_the_wind(index, image):
    for tree in range(5):
        x = 20 + 75 * tree
        sway = round(6 * np.sin(0.5 * index + tree))
        image[20:140, x : x + 40] = _OTHER[20:140, 100 + x + sway : 140 + x + sway]


@clip
def strobe(index, image):
    return image if index % 3 else np.clip(image.astype(np.int16) + 90, 0, 255).astype(np.uint8)


@clip
def confetti(index, image):
    rng = np.random.default_rng(7)
    places, speeds = rng.uniform(0, (WIDTH, HEIGHT), (150, 2)), rng.uniform((-3, 2), (3, 7), (150, 2))
    for x, y in ((places + index * speeds) % (WIDTH, HEIGHT)).astype(int).tolist():
        cv2.circle(image, (x, y), 3, (230, 60, 60), -1)


@clip
def spinning_wheel(index, image):
    turn = cv2.getRotationMatrix2D((100, 100), 9 * index, 1)
    wheel = cv2.warpAffine(_OTHER[:200, :200], turn, (200, 200))
    disc = np.zeros((200, 200), np.uint8)
    cv2.circle(disc, (100, 100), 95, 255, -1)
    image[10:210, 90:290][disc > 0] = wheel[disc > 0]


@clip
def picture_in_picture(index, image):
    """A video that pans, in a frame that covers a quarter."""
    image[100:205, 190:375] = _OTHER[100:205, 190 + 5 * index : 375 + 5 * index]


@pytest.mark.parametrize("name", sorted(_CLIPS))
def test_static_camera_is_static_in_confusing_clips(name):
    _, motion = measured(_CLIPS[name](index) for index in range(FRAMES))
    assert motion.kind == STATIC, motion


def crowd(index: int):
    """People who fill the frame, all of them found; every other one goes the other way."""
    steps = [(3 * index) % 40 - 20 if k % 2 else 20 - (2 * index) % 40 for k in range(6)]
    return [(64 * k + step, 5, 64 * k + 60 + step, 215) for k, step in enumerate(steps)]


def test_frame_filling_crowd_gives_no_false_motion():
    images = []
    for index in range(FRAMES):
        image = _SCENE.copy()
        for number, (left, top, right, bottom) in enumerate(crowd(index)):
            a, b = max(0, left), min(WIDTH, right)
            image[top:bottom, a:b] = _OTHER[top:bottom, 64 * number + a - left : 64 * number + b - left]
        images.append(image)
    _, motion = measured(images, lambda index: people(index, crowd(index)))
    assert motion.kind in (STATIC, UNKNOWN), motion


@pytest.mark.parametrize("overlay", ["logo", "letterbox", "ticker"])
def test_burnt_in_graphics_do_not_hide_a_pan(overlay):
    scene, images = texture(13), []
    for index in range(FRAMES):
        image = seen(scene, (0, 0.35 * index, 0))
        if overlay == "logo":
            image[10:50, 320:375] = _OTHER[10:50, 320:375]
        elif overlay == "letterbox":
            image[:28], image[-28:] = 0, 0
        else:
            image[190:] = _OTHER[190:HEIGHT, :WIDTH]
        images.append(image)
    _, motion = measured(images)
    assert motion.kind == ROTATING
    assert motion.pan == pytest.approx(0.35 * (FRAMES - 1), abs=0.3)


def test_text_regions_are_confirmed_and_few():
    regions, shape = BurntIn(), (100, 200)
    mask = np.full(shape, 255, np.uint8)
    for _ in range(2):
        regions.add(np.array([[50.0, 20.0]]), shape)
    assert regions.exclude_from(mask) is mask, "two frames are not enough"
    regions.add(np.array([[50.0, 20.0]]), shape)
    assert regions.exclude_from(mask)[20, 50] == 0
    assert regions.exclude_from(mask)[20, 80] == 255
    everywhere = np.stack(np.meshgrid(np.arange(0, 200, 10.0), np.arange(0, 100, 10.0)), axis=-1).reshape(-1, 2)
    for _ in range(3):
        regions.add(everywhere, shape)
    assert regions.exclude_from(mask) is mask, "the whole image is no logo"
