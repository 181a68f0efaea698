"""Repetitions counted while they happen, and in the messages of the live loop."""

import json

import numpy as np
import pytest
from stick_figures import motion, squats, standing, walk

from pose.live import LiveResult
from pose.live.counter import WINDOW_S, Count, RepetitionCounter
from pose.live.messages import messages
from pose.live.web import messages as web
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.upright import Upright


def frames(mover, person=7):
    """A person as the live loop sees them, in the frame of a level camera 4 m away."""
    places = (mover.joints * np.array([1.0, -1.0, -1.0]) + np.array([0.0, 1.0, 4.0])).astype(np.float32)
    for index, (time, joints) in enumerate(zip(mover.times, places, strict=True)):
        people = People(
            index, float(time), np.array([person]), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
            np.full((1, 17, 2), 50, np.float32), np.ones((1, 17), np.float32),
        )  # fmt: skip
        poses = Poses3D(joints[None] - joints[None, :1], joints[None, 0], np.full((1, 17), 30.0, np.float32))
        yield FrameResult(people, poses)


def counted(mover):
    counter = RepetitionCounter()
    return [dict(counter.add(frame)) for frame in frames(mover)]


@pytest.mark.parametrize("count", [3, 6])
def test_live_counter_counts_squats(count):
    counts = [seen[7].count for seen in counted(squats(count)[0]) if seen]
    assert counts == sorted(counts), "a count never falls"
    assert set(counts) == set(range(2, count + 1)), "the first counts with the second"


@pytest.mark.parametrize(("period", "rest"), [(3.0, 1.0), (2.7, 0.3)])
def test_live_counter_counts_once_what_outlasts_its_window(period, rest):
    """The window may start at the lowest position, which find_repetitions then takes for rest."""
    mover, _ = squats(30, period=period, rest=rest, rate=10)
    assert mover.times[-1] > 2 * WINDOW_S - 5
    assert counted(mover)[-1][7].count == 30


def test_a_movement_has_a_name_if_its_repetitions_agree(monkeypatch):
    """Repetitions of a dance are alike, but one alone has another name than the next."""
    names = [[count.movement for count in seen.values()] for seen in counted(squats(4)[0]) if seen]
    assert names[0] == ["movement A"], "two repetitions are too few"
    assert names[-1] == ["squat"]
    turns = iter(range(10_000))
    monkeypatch.setattr(
        "pose.analysis.repetitions._name_of",
        lambda course: ("forward bend", "forward bend", "lunge")[next(turns) % 3],
    )
    assert {count.movement for seen in counted(squats(4)[0]) for count in seen.values()} == {"movement A"}


def test_live_counter_ignores_standing_and_walking():
    times = np.arange(0, 8, 1 / 30)
    assert not any(counted(motion(times, standing(times))))
    assert not any(counted(walk(seconds=8)[0]))


def test_live_messages_and_page_contain_the_count():
    frame = next(frames(squats(2)[0]))
    image = np.zeros((480, 640, 3), np.uint8)
    live = LiveResult(image, frame, H36M17, 0.0, 0.1, counts={7: Count("squat", 4)})
    said = {"movement": "squat", "count": 4}
    assert json.loads(messages(live)[0])["repetitions"] == said
    assert json.loads(web.result(live, Upright()))["people"][0]["repetitions"] == said
    nothing = LiveResult(image, frame, H36M17, 0.0, 0.1)
    assert "repetitions" not in json.loads(messages(nothing)[0])
