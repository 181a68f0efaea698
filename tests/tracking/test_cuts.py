"""Hard cuts are found, what only looks like one is none, and no id continues across them."""

import cv2
import numpy as np
import pytest

from pose.structures.skeletons import COCO17
from pose.tracking.cuts import CutDetector
from pose.tracking.identities import UNASSIGNED, Identities
from pose.video import open_source


@pytest.fixture(scope="module")
def clips(videos):
    def pictures(name, size=(480, 360)):
        with open_source(str(videos / f"{name}.mp4")) as source:
            return [cv2.resize(frame.image, size) for _, frame in zip(range(40), source, strict=False)]

    return {name: pictures(name) for name in ("dance", "squats", "walk-by")}


def cuts_in(images):
    cuts = CutDetector()
    return [i for i, image in enumerate(images) if cuts.is_cut(image)]


def test_cut_between_clips_is_detected(clips):
    for one in clips:
        for other in clips:
            assert cuts_in(clips[one][:15] + clips[other][:15]) == ([] if one == other else [15]), (one, other)


def test_cut_within_one_room_is_detected(videos):
    views = []
    for name in ("view-a", "view-b"):
        with open_source(str(videos / "two-people" / f"{name}.mp4")) as source:
            views.append([cv2.resize(frame.image, (270, 480)) for _, frame in zip(range(10), source, strict=False)])
    one, other = views
    assert cuts_in(one + other) == [10]
    assert cuts_in(other + one) == [10]


def test_moving_people_are_not_a_cut(clips):
    for images in clips.values():
        assert cuts_in(images[::3]) == []


def test_light_noise_pans_and_black_frames_are_not_cuts(clips, rng):
    picture = clips["dance"][0]
    bright = np.clip(picture.astype(int) + 70, 0, 255).astype(np.uint8)
    noisy = np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)
    panned = np.roll(picture, 40, axis=1)
    black = np.zeros_like(picture)
    assert cuts_in([picture, bright, picture, noisy, picture, panned, picture, black, picture, picture]) == []


def test_new_ids_follow_a_cut():
    identities = Identities(skeleton=COCO17)
    box = np.array([[10, 10, 60, 160]], np.float32)
    poses = np.ones((1, 17, 3), np.float32) * 50
    image = np.zeros((200, 200, 3), np.uint8)

    def see(known, time):
        return identities.assign(box, np.ones(1, np.float32), np.array([known]), time, image, poses).tolist()

    first = see(UNASSIGNED, 0.0)
    assert see(first[0], 0.1) == first
    identities.reset()
    assert see(UNASSIGNED, 0.2) == [first[0] + 1]
