"""Hands on the image."""

from dataclasses import replace

import numpy as np
from pose_fakes import seen_result

from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17
from pose.view.overlay import Overlay


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
