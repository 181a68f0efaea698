"""The real pipeline, live: who comes back soon keeps the id, and the lifter streams."""

import threading

import numpy as np
import pytest
from live_fakes import wait_until

from pose.config import load_preset
from pose.errors import UsageError
from pose.lifting.load import load_lifter
from pose.live import LiveLoop, LiveResult, PushedFrames
from pose.pipeline import Pipeline
from pose.video import open_source


@pytest.fixture(scope="module")
def at_hand(weights_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
        yield


@pytest.fixture(scope="module")
def pipeline(at_hand) -> Pipeline:
    return Pipeline(load_preset("fast"), live=True)


@pytest.fixture(scope="module")
def dancer(videos) -> list[np.ndarray]:
    with open_source(str(videos / "dance.mp4"), end=0.3) as source:
        return [frame.image for frame in source]


def run_live(pipeline: Pipeline, images: list[np.ndarray], times: list[float]) -> list[LiveResult]:
    """What the loop says of images taken at `times` s, pushed as fast as they are read."""
    source = PushedFrames("test", capacity=len(images))
    with LiveLoop(pipeline, source, backlog=len(images)) as loop:
        mailbox = loop.subscribe(maxlen=len(images))
        for image, time in zip(images, times, strict=True):
            source.push(image, at=time)
        wait_until(lambda: loop.status().processed >= len(images) - pipeline.config.lookahead, seconds=120)
    return list(mailbox)


@pytest.mark.parametrize(
    ("away", "shift", "same"), [pytest.param(0.4, 0, True, marks=pytest.mark.slow), (0.9, 25, True), (1.6, 0, False)]
)
def test_person_returning_within_a_second_keeps_the_id(pipeline, dancer, away, shift, same):
    """away: s. shift: px that the person has moved meanwhile."""
    empty = round(away * 30)
    moved = [np.roll(image, shift, axis=1) for image in dancer]
    images = [*dancer, *[np.zeros_like(dancer[0])] * empty, *moved]
    results = run_live(pipeline, images, [n / 30 for n in range(len(images))])
    ids = [live.result.people.ids.tolist() for live in results]
    assert ids[: len(dancer)] == [[1]] * len(dancer)
    assert ids[len(dancer) + 2 : len(dancer) + empty] == [[]] * (empty - 2)
    assert ids[-len(dancer) + 2 :] == [[1] if same else [2]] * (len(dancer) - 2)


def test_look_ahead_delays_the_stream_by_so_many_frames(at_hand, dancer):
    pipeline = Pipeline(load_preset("fast", lookahead=3), live=True)
    session = pipeline.session((384, 496))
    source = PushedFrames("test", capacity=len(dancer))
    given = []
    for index, image in enumerate(dancer[:6]):
        source.push(image, at=index / 30)
    source.close()
    for captured in source.frames(threading.Event()):
        given.append([result.index for result in session.push(captured.frame)])
    assert given == [[], [], [], [0], [1], [2]]
    assert [result.index for result in session.flush()] == [3, 4, 5]


def test_default_lifters_are_offline_for_files_and_streaming_live(at_hand, tiny_lifter):
    assert Pipeline(load_preset("fast")).config.lifter == "offline"
    assert Pipeline(load_preset("fast"), live=True).config.lifter == "sliding"
    assert load_lifter("sliding").streaming
    assert Pipeline(load_preset("fast", lifter="sliding", lookahead=4)).config.lookahead == 4


@pytest.mark.parametrize(
    ("options", "live", "words"),
    [
        ({"lifter": "stream", "steady": True}, True, "steady: smooths the newest poses of live runs"),
        ({"lookahead": 2, "steady": True}, True, "steady: smooths the newest poses of live runs"),
        ({"steady": True}, False, "steady: smooths the newest poses of live runs"),
        ({"lifter": "offline"}, True, "lifter: offline processes whole windows and cannot stream"),
        ({"lookahead": 3}, False, "lookahead: offline processes whole windows and cannot stream"),
        ({"lookahead": -1}, True, "lookahead: -1 is out of range; allowed: 0 to 600"),
    ],
)
def test_non_streaming_lifter_is_rejected(at_hand, options, live, words):
    with pytest.raises(UsageError, match=words):
        Pipeline(load_preset("fast", **options), live=live)
