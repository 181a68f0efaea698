"""Occlusions: masking of people, comparison of people, and id switches during an occlusion."""

import numpy as np
import pytest
from pose_fakes import STANDING

from pose.structures.skeletons import H36M17, SKELETONS
from pose.structures.types import Keypoints2D, Regions
from pose.tracking.id_swaps import IdSwapDetector, _Encounter
from pose.tracking.masking import MaskedCrop, PersonMasker
from pose.tracking.observations import Observations, PersonTrack, duplicates
from pose.tracking.person_state import PersonModel

HEIGHT = 200
PICTURE = np.full((300, 600, 3), 128, np.uint8)
FRAME = 1 / 30


def body(x, height=HEIGHT):
    """(17, 2) px of a person who stands at x."""
    return (STANDING[:, :2] * height / 1.7 + np.array([x, 150])).astype(np.float32)


def region(x, size=280.0):
    return Regions(np.array([[x, 150]], np.float32), np.full((1, 2), size, np.float32), np.zeros(1, np.float32))


def seen(tracks, poses):
    xy = np.stack(poses)
    ones = np.ones(xy.shape[:2], np.float32)
    return Observations.of(tracks, Keypoints2D(xy, ones, ones[:, 0], Regions.concatenate([t.region for t in tracks])))


def dressed(people):
    """An image of people in clothes of one colour each: x -> colour."""
    image = PICTURE.copy()
    for x, colour in people.items():
        image[40:260, max(0, int(x) - 40) : int(x) + 40] = colour
    return image


def test_masking_removes_only_the_body():
    image = PICTURE.copy()
    image[:, ::2] += 20
    pose = body(300)
    joints = np.rint(pose).astype(int)
    image[joints[:, 1], joints[:, 0]] = 255
    part = PersonMasker(H36M17).mask(image, region(300), [pose])
    inside, shown = joints - part.corner.astype(int), part.image
    limbs = [H36M17.index(f"{side}_{joint}") for side in ("left", "right") for joint in ("shoulder", "hip", "knee")]
    assert (shown[inside[limbs, 1], inside[limbs, 0]] < 160).all()
    assert (image[joints[:, 1], joints[:, 0]] == 255).all()  # the image itself is as it was
    left, top = part.corner.astype(int)
    np.testing.assert_array_equal(shown[:, :20], image[top:, left:][: len(shown), :20])


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=lambda skeleton: skeleton.name)
def test_every_skeleton_can_be_masked(skeleton):
    pose = np.random.default_rng(0).uniform(50, 250, (len(skeleton), 2)).astype(np.float32)
    part = PersonMasker(skeleton).mask(PICTURE, region(150), [pose])
    assert part.image.shape[2] == 3


def test_keypoints_of_a_part_map_back_to_the_image():
    pose = body(100)
    found = Keypoints2D(pose[None], np.ones((1, 17), np.float32), np.ones(1, np.float32), region(100))
    moved = MaskedCrop(
        PICTURE, np.array([30, 7], np.float32), 1, np.zeros(PICTURE.shape[:2], np.uint8)
    ).keypoints_to_image(found)
    np.testing.assert_allclose(moved.xy[0], pose + np.array([30, 7]))
    np.testing.assert_allclose(moved.next_regions.centers, [[130, 157]])


def test_match_needs_similar_pose_and_appearance():
    model = PersonModel(H36M17)
    image = dressed({100: 20, 300: 230})
    people = {
        x: model.update(None, image, body(x), np.ones(17, np.float32), 0.0, learn_colours=True) for x in (100, 300)
    }
    near = model.distance(people[100], image, body(104), FRAME)
    assert near < 0.1
    assert model.distance(people[300], image, body(104), FRAME) > 5 * near
    assert model.appearance_distance(people[300], image, body(100)) > 0.3
    assert model.appearance_distance(people[100], image, body(100, height=100)) > 0.3


def test_duplicate_poses_are_merged_unless_one_is_occluded():
    front, back = PersonTrack(region(100)), PersonTrack(region(110))
    poses = [body(100), body(118)]
    assert duplicates(seen([front, back], poses)).tolist() == [False, True]
    back.occluders = [front]
    assert duplicates(seen([front, back], poses)).tolist() == [False, False]
    one, two = (seen([front, back], [body(x), body(x + 10)]).boxes for x in (100, 105))
    assert duplicates(seen([front, back], poses), one[:1]).tolist() == [False, True]  # one detection
    assert duplicates(seen([front, back], poses), two).tolist() == [False, False]
    assert duplicates(seen([front, back], [body(100), body(103)])).tolist() == [False, True]


class Encounter:
    """Two people on paths x(t), whose ids stay with rows; `lost` frames miss the second."""

    def __init__(self, colours=(128, 128)):
        self.model = PersonModel(H36M17)
        self.detector = IdSwapDetector(self.model)
        self.colours = colours

    def play(self, paths, seconds=2.0, lost=(), slide=None, lit=None):
        """The frames in which a swap is found. slide: from this frame on each follower is on the other's body.
        lit: from this frame on each wears what looks like the other's.
        """
        tracks, ids, found = [PersonTrack(region(0)), PersonTrack(region(0))], [1, 2], []
        for frame in range(round(seconds / FRAME)):
            time = frame * FRAME
            at = [path(time) for path in paths]
            colours = self.colours[::-1] if lit is not None and frame >= lit else self.colours
            image = dressed(dict(sorted(zip(at, colours, strict=True))))
            if slide is not None and frame >= slide:
                at = at[::-1]
            rows = [0] if frame in lost else [0, 1]
            now = seen([tracks[row] for row in rows], [body(at[row]) for row in rows])
            pair = self.detector.find(now, [ids[row] for row in rows], image, time)
            if pair is not None:
                assert sorted(pair) == [1, 2]
                found.append(frame)
                ids.reverse()
            for row in rows:
                past, pose = tracks[row].state, body(at[row])
                alone = abs(at[0] - at[1]) > 100
                tracks[row].state = self.model.update(past, image, pose, np.ones(17, np.float32), time, alone)
        return found


def test_swapped_ids_after_an_occlusion_are_restored():
    paths = (lambda t: 100 + 150 * t, lambda t: 400 - 150 * t)
    assert Encounter().play(paths) == []
    found = Encounter().play(paths, slide=30)  # they are in one place at 1 s
    assert len(found) == 1
    assert 30 <= found[0] < 45


def test_appearance_restores_ids_after_a_long_overlap():
    def left(time):
        return float(np.interp(time, [0, 1, 4, 5], [100, 240, 240, 100]))

    def right(time):
        return float(np.interp(time, [0, 1, 4, 5], [400, 260, 260, 400]))

    assert Encounter((20, 230)).play((left, right), seconds=5) == []
    assert len(Encounter((20, 230)).play((left, right), seconds=5, slide=90)) == 1


def test_appearance_history_follows_corrected_ids():
    """1 and 2 swapped ids at 1 s, and met 3 as each other after that: 3 met the other of them."""
    model = PersonModel(H36M17)
    pasts = [model.update(None, PICTURE, body(x), np.ones(17, np.float32), 0.0, learn_colours=True) for x in range(6)]
    detector = IdSwapDetector(model)
    known = _Encounter((pasts[0], pasts[1]), 1.0, occluded=True)
    earlier, later = (
        _Encounter((pasts[2], pasts[3]), 0.5, occluded=True),
        _Encounter((pasts[4], pasts[5]), 1.5, occluded=True),
    )
    detector._encounters = {(1, 2): known, (1, 4): earlier, (1, 3): later}
    detector._swap((1, 2), known)
    assert detector._encounters == {(1, 2): known, (1, 4): earlier, (2, 3): later}
    detector._encounters = {(0, 2): later, (1, 2): known}
    detector._swap((1, 2), known)
    assert detector._encounters[0, 1].states == later.states
    detector._encounters = {(1, 3): later, (2, 3): earlier, (1, 2): known}
    detector._swap((1, 2), known)
    assert detector._encounters == {(1, 2): known, (2, 3): earlier}  # what was noted first is more certain


def test_separate_people_are_not_swapped():
    detector = Encounter()
    assert detector.play((lambda t: 100.0, lambda t: 400.0), slide=20) == []
    assert not detector.detector._encounters
