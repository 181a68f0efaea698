"""Each frame is shown at once, and recorded and sent again as it is known once others have followed."""

import json

import pytest
from live_fakes import FakePipeline, push, settled
from pose_fakes import run_info

from pose.config import LiveConfig
from pose.live import LiveLoop, PushedFrames
from pose.live import recorder as recorder_module
from pose.live.messages import messages
from pose.live.recorder import Recorder
from pose.results import load_poses
from pose.world.clean import Steps

CONFIG = LiveConfig(bridge=0.0)


def start(refine: int = 3, **settings) -> LiveLoop:
    return LiveLoop(FakePipeline(refine=refine), PushedFrames("test", capacity=100), CONFIG, backlog=100, **settings)


def told(mailbox) -> list[tuple[int, bool, float]]:
    """Of each result: which frame, whether it is final, and which of the two answers it has."""
    return [(live.result.index, live.final, float(live.result.poses.root[0, 0])) for live in mailbox]


def test_subscribers_choose_newest_or_final_poses():
    with start() as loop:
        newest = loop.subscribe(maxlen=100)
        final = loop.subscribe(maxlen=100, wanted="final")
        both = loop.subscribe(maxlen=100, wanted="all")
        push(loop.source, 6)
        settled(loop, 6)
    first, second = [(n, False, 0.0) for n in range(6)], [(n, True, 1.0) for n in range(6)]
    assert told(newest) == first
    assert told(final) == second
    assert told(both) == [*first[:4], second[0], first[4], second[1], first[5], *second[2:]]


def test_non_refining_lifter_returns_each_frame_once():
    with start(refine=0) as loop:
        boxes = [loop.subscribe(maxlen=100, wanted=wanted) for wanted in ("newest", "final", "all")]
        push(loop.source, 4)
        settled(loop, 4)
    assert [told(box) for box in boxes] == [[(n, True, 0.0) for n in range(4)]] * 3


def test_refined_frames_have_the_world_of_their_frame():
    with start(world=Steps(up=None)) as loop:
        both = loop.subscribe(maxlen=100, wanted="all")
        push(loop.source, 5)
        settled(loop, 5)
    results = list(both)
    assert all(live.result.placed is not None for live in results)
    newest, final = ({live.result.index: live.world.world for live in results if live.final == done} for done in (0, 1))
    assert newest.keys() == final.keys() == set(range(5))
    assert all(final[index] is world for index, world in newest.items())  # solved once


def test_messages_mark_final_poses():
    with start() as loop:
        both = loop.subscribe(maxlen=100, wanted="all")
        push(loop.source, 4)
        settled(loop, 4)
    said = [json.loads(text) for live in both for text in messages(live)]
    assert [(one["frame"], one["final"]) for one in said if one["frame"] == 0] == [(0, False), (0, True)]
    assert {one["version"] for one in said} == {2}
    first, second = (one for one in said if one["frame"] == 0)
    assert second["time"] == first["time"]
    assert second["latency_ms"] >= first["latency_ms"]


@pytest.mark.parametrize("end_first", [False, True])
def test_recordings_contain_refined_poses(tmp_path, monkeypatch, end_first):
    monkeypatch.setattr(recorder_module, "_run_info", lambda loop, pipeline, size: run_info(pipeline.skeleton, size))
    with start() as loop:
        recorder = Recorder(loop, tmp_path)
        push(loop.source, 8)
        settled(loop, 8)
        if not end_first:
            recorder.close()
    recorder.close()
    poses = load_poses(recorder.folder / "poses.npz")
    assert poses.keypoints[:, 0, 0].tolist() == list(range(8))
    assert poses.root[:, 0].tolist() == [1.0] * (8 if end_first else 5) + [0.0] * (0 if end_first else 3)
