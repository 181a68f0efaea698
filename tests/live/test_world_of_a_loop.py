"""People in their world, live: from the loop to recordings, messages and the mirror."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from live_fakes import FakePipeline, FakeSession, picture, settled, wait_until
from pose_fakes import run_info

from pose.body.tracks import open_selection
from pose.live import LiveLoop, PushedFrames
from pose.live import recorder as module
from pose.live.messages import messages
from pose.live.recorder import Recorder
from pose.live.recording import MAX_HEIGHTS, RecordingFolder, finish_interrupted
from pose.results import load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures.camera import project
from pose.structures.types import FrameResult, Poses3D
from pose.world.clean import Steps

FPS = 25


JOINTS = np.zeros((1, 17, 3), np.float32)
JOINTS[0, :, 0] = [0, -0.1, -0.1, -0.1, 0.1, 0.1, 0.1, 0, 0, 0, 0, 0.2, 0.2, 0.2, -0.2, -0.2, -0.2]
JOINTS[0, :, 1] = [0, 0, 0.44, 0.86, 0, 0.44, 0.86, -0.25, -0.5, -0.6, -0.7, -0.4, -0.2, 0, -0.4, -0.2, 0]
JOINTS[0, [3, 6], 2] = 0.07
ROOT = np.array([[0, 0.2, 4]], np.float32)


class Standing(FakePipeline):
    """A person who stands before a level camera, as the lifter would see them."""

    def session(self, size):
        return StandingSession(self, size)


class StandingSession(FakeSession):
    def track(self, frame):
        seen = project(JOINTS + ROOT[:, None], self.camera.matrix).astype(np.float32)
        return replace(super().track(frame), keypoints=seen)

    def _answer(self):
        return FrameResult(self._waiting.popleft(), Poses3D(JOINTS, ROOT, np.full((1, 17), 30, np.float32)))


@pytest.fixture
def source(monkeypatch) -> PushedFrames:
    monkeypatch.setattr(module, "_run_info", lambda loop, pipeline, size: run_info(pipeline.skeleton, size))
    return PushedFrames("test", capacity=200)


def lived(source, count=60, steps=None, pipeline=None):
    """What a loop with a world says of so many frames."""
    with LiveLoop(pipeline or Standing(), source, backlog=200, world=steps or Steps()) as loop:
        mailbox = loop.subscribe(maxlen=count)
        for number in range(count):
            source.push(picture(number), at=50 + number / FPS)
        settled(loop, count)
        status = loop.status()
    return list(mailbox), status


def test_loop_returns_world_coordinates_and_status(source):
    results, status = lived(source)
    first, last = results[0], results[-1]
    assert first.world.world.found_by == "unknown"
    assert last.world.world.found_by in ("bodies", "feet")
    assert last.world.world.confidence > 0.3
    ((height, sigma),) = last.world.heights.values()
    assert height == pytest.approx(1.70, abs=0.02)  # of an adult who is alone
    assert 0 < sigma < 0.15
    np.testing.assert_allclose(last.result.placed.joints[0, [3, 6], 1], 0.08, atol=0.02)
    assert (last.result.placed.contacts > 0.5).all()
    assert status.world.startswith("gravity ±")
    assert status.world in status.line()


def test_loop_without_a_world_returns_lifted_poses(source):
    with LiveLoop(Standing(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=5)
        source.push(picture(0), at=50)
        settled(loop, 1)
        assert loop.status().world == ""
    (live,) = mailbox
    assert live.world is None
    assert live.result.placed is None


def test_given_heights_apply_to_displayed_ids(source):
    """After a change of the images' size the same person is number 2."""
    with LiveLoop(Standing(), source, backlog=100, world=Steps(heights={2: 1.5})) as loop:
        mailbox = loop.subscribe(maxlen=9)
        source.push(picture(0), at=50)
        source.push(picture(1, (32, 24)), at=50.04)
        settled(loop, 2)
    first, second = mailbox
    assert first.world.heights[1][0] != 1.5
    assert second.world.heights == {2: (1.5, 0.0)}


def test_pipeline_change_keeps_the_world(source):
    with LiveLoop(Standing(), source, backlog=200, world=Steps()) as loop:
        mailbox = loop.subscribe(maxlen=99)
        for number in range(40):
            source.push(picture(number), at=50 + number / FPS)
        settled(loop, 40)
        loop.pipeline = Standing()
        source.push(picture(40), at=50 + 40 / FPS)
        settled(loop, 41)
    *_, before, after = mailbox
    assert after.result.people.ids.tolist() == [2]
    assert after.world.world.found_by == before.world.world.found_by != "unknown"
    assert np.abs(after.result.placed.joints - before.result.placed.joints).max() < 0.08  # of a new person


def test_messages_contain_world_coordinates(source):
    results, _ = lived(source)
    (text,) = messages(results[-1])
    said = json.loads(text)
    placed = results[-1].result.placed
    assert np.abs(np.array(said["world"]) - placed.joints[0]).max() < 1e-4
    assert said["gravity"]["found_by"] in ("bodies", "feet")
    assert said["gravity"]["floor"] == pytest.approx(results[-1].world.world.floor, abs=1e-4)
    assert said["height"] == pytest.approx(1.70, abs=0.02)
    assert len(said["contacts"]) == 2


def test_recording_contains_the_final_world(source, tmp_path):
    with LiveLoop(Standing(), source, backlog=200, world=Steps()) as loop:
        recorder = Recorder(loop, tmp_path)
        mailbox = loop.subscribe(maxlen=1)
        for number in range(60):
            source.push(picture(number), at=50 + number / FPS)
        settled(loop, 60)
        known = next(iter(mailbox)).world
        recorder.close()
    table = load_poses(recorder.folder / "poses.npz")
    assert table.world_info.world.found_by == known.world.found_by != "unknown"
    np.testing.assert_allclose(table.world_info.world.rotation, known.world.rotation, atol=1e-6)
    assert table.world_info.heights[1][0] == pytest.approx(1.70, abs=0.02)
    assert np.isfinite(table.placed.joints).all()
    assert not table.placed.filled.any()
    text = (recorder.folder / "poses.json").read_text()
    document = json.loads(text)
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert document["world"]["found_by"] == known.world.found_by
    assert document["world"]["people"][0]["id"] == 1
    assert np.abs(np.array(document["frames"][-1]["people"][0]["world"]) - table.placed.joints[-1]).max() < 1e-4
    exported = open_selection(recorder.folder / "poses.npz", space="world")
    assert "degrees from the camera's" in exported.space.note


def test_recording_keeps_heights_of_recent_people(source, tmp_path):
    results, _ = lived(source, 3)
    recording = RecordingFolder(tmp_path, lambda live: run_info(live.skeleton, live.size), video=False)
    for number in range(200):
        live = results[min(number, 2)]
        heights = {10_000_000 + number: (1.834, 0.123)}
        result = replace(live.result, people=replace(live.result.people, time=50 + number / FPS))
        recording.write(replace(live, result=result, world=replace(live.world, heights=heights)))
    recording.finish()
    people = load_poses(recording.folder / "poses.npz").world_info.heights
    assert list(people) == list(range(10_000_200 - MAX_HEIGHTS, 10_000_200))
    said = json.loads((recording.folder / "poses.json").read_text())["world"]["people"]
    assert [one["id"] for one in said] == list(people)


def test_killed_recording_is_recovered_with_its_world(source, tmp_path):
    """As it was written down last: here with the first frame."""
    with LiveLoop(Standing(), source, backlog=200, world=Steps()) as loop:
        recorder = Recorder(loop, tmp_path)
        for number in range(30):
            source.push(picture(number), at=50 + number / FPS)
        settled(loop, 30)
        wait_until(lambda: recorder.frames == 30)
        copy = tmp_path / "copy" / recorder.folder.name
        copy.mkdir(parents=True)
        for path in recorder.folder.rglob("*"):
            if path.is_file() and not path.name.endswith(".mp4"):
                other = copy / path.relative_to(recorder.folder)
                other.parent.mkdir(exist_ok=True)
                other.write_bytes(path.read_bytes())
        recorder.close()
    (line,) = finish_interrupted(tmp_path / "copy")
    assert "30 frames" in line
    table = load_poses(copy / "poses.npz")
    assert table.world_info is not None
    np.testing.assert_allclose(table.placed.joints, load_poses(recorder.folder / "poses.npz").placed.joints)
