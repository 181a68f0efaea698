"""Hands in the report, in Rerun's recordings and in the inset of the overlay."""

import base64
import re
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import run_info, seen_result

from pose.export import export, open_selection
from pose.results import NpzWriter
from pose.structures.hand_points import WRISTS, Hands, lengths, sized_to_body
from pose.structures.skeletons import H36M17
from pose.view.hands import hands_in_scene
from pose.view.inset import Inset
from pose.view.overlay import Overlay


@pytest.fixture
def frames(rng):
    """Ten frames of a person; the left hand is not seen in the first three, the right never."""
    shapes = np.cumsum(0.02 * rng.standard_normal((21, 3)), axis=0).astype(np.float32)
    results = []
    for index in range(10):
        result = seen_result([(0, 0, 4)], index=index, time=index / 25)
        hands = Hands.unknown(1)
        if index >= 3:
            hands.shapes[0, 0] = shapes - shapes[0]
            hands.scores[0, 0] = 0.9
        results.append(replace(result, people=replace(result.people, hands=hands)))
    return results


@pytest.fixture
def recording(tmp_path, frames):
    info = run_info(H36M17)
    info = replace(info, settings={**info.settings, "hands": True})
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for frame in frames:
            writer.write(frame)
    return open_selection(tmp_path / "poses.npz")


def _numbers(page, identity, width):
    text = re.search(rf'id="{identity}">(.*?)</script>', page, re.DOTALL)[1]
    parts = [np.frombuffer(base64.b64decode(part), "<i2") for part in text.split(" ")]
    return np.concatenate(parts).reshape(-1, *width)


def test_report_places_hands_on_wrists(recording, frames, tmp_path):
    (made,) = export(recording, ["html"], tmp_path, "page")
    page = made.path.read_text(encoding="utf-8")
    hands, stage = _numbers(page, "p1-hands", (2, 21, 3)), _numbers(page, "p1-stage", (17, 3))
    assert (hands[:, 1] == -32768).all()
    assert (hands[:3, 0] == -32768).all()
    np.testing.assert_allclose(hands[3:, 0, 0], stage[3:, WRISTS[0]], atol=1)
    expected = sized_to_body(frames[5].people.hands, frames[5].poses.joints, np.zeros((1, 2), bool))[0, 0]
    apart = np.linalg.norm(hands[5, 0, :, None].astype(float) - hands[5, 0], axis=2)
    np.testing.assert_allclose(apart, 1000 * np.linalg.norm(expected[:, None] - expected, axis=2), atol=2)


def test_rerun_contains_hands(recording, tmp_path):
    pytest.importorskip("rerun")
    (made,) = export(recording, ["rrd"], tmp_path, "poses")
    assert b"world/person1/hands" in made.path.read_bytes()


def test_scene_hands_rotate_with_the_body(frames, rng):
    result = frames[5]
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    # The body of the tests is flat; a body that is not has one turn only.
    joints = result.poses.joints + 0.1 * rng.standard_normal((1, 17, 3)).astype(np.float32)
    result = replace(result, poses=replace(result.poses, joints=joints))
    placed = (joints @ turn.T + np.array([1.0, 2, 3])).astype(np.float32)
    hands = hands_in_scene(result, np.arange(1), placed)
    expected = sized_to_body(result.people.hands, joints, np.zeros((1, 2), bool))[0, 0] @ turn.T + placed[0, WRISTS[0]]
    np.testing.assert_allclose(hands[0, 0], expected, atol=1e-5)
    assert np.isnan(hands[0, 1]).all()
    np.testing.assert_allclose(lengths(hands)[0, 0], lengths(expected), rtol=1e-4)
    assert hands_in_scene(replace(result, people=replace(result.people, hands=None)), np.arange(1), placed) is None


def test_the_inset_draws_hands_that_are_seen(frames):
    def inset(result):
        return Inset((300, 300)).render(result).astype(int)

    unseen = replace(frames[5], people=replace(frames[5].people, hands=Hands.unknown(1)))
    without = replace(frames[5], people=replace(frames[5].people, hands=None))
    assert (inset(unseen) == inset(without)).all()
    differs = (inset(frames[5]) != inset(without)).any(axis=2)
    assert 10 < differs.sum() < 1500


def test_only_detected_hands_are_drawn():
    result = seen_result([(0, 0, 4)])
    hands = Hands.unknown(1)
    hands.points[0, 0] = (560, 400) + 30 * np.random.default_rng(0).random((21, 2))
    hands.points[0, 1] = (60, 400)
    hands.scores[0, 0] = 0.9
    blank = np.full((480, 640, 3), 128, np.uint8)
    with_hands = replace(result, people=replace(result.people, hands=hands))
    drawn = [Overlay((640, 480), H36M17, inset="off").draw(blank, one) for one in (result, with_hands)]
    changed = np.argwhere((drawn[0] != drawn[1]).any(axis=2))[:, ::-1]
    assert len(changed) > 100
    near_hand = (changed >= (550, 390)).all(axis=1)
    assert near_hand.any()
    assert not (changed[:, 0] < 100).any()
