"""Live, a camera that turns is compensated, and one that is carried or lost ends the world."""

import json
from dataclasses import replace

import numpy as np
import pytest
from live_fakes import FakePipeline, FakeSession, picture, settled
from pose_fakes import run_info

from pose.live import LiveLoop, PushedFrames
from pose.live.messages import messages
from pose.live.recording import RecordingFolder
from pose.results import load_poses
from pose.structures.camera import project
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import NO_LINK, Background, FrameResult, Poses3D
from pose.world.clean import Steps

FPS = 25
JOINTS = np.zeros((1, 17, 3), np.float32)
JOINTS[0, :, 0] = [0, -0.1, -0.1, -0.1, 0.1, 0.1, 0.1, 0, 0, 0, 0, 0.2, 0.2, 0.2, -0.2, -0.2, -0.2]
JOINTS[0, :, 1] = [0, 0, 0.44, 0.86, 0, 0.44, 0.86, -0.25, -0.5, -0.6, -0.7, -0.4, -0.2, 0, -0.4, -0.2, 0]
ROOT = np.array([[0, 0.2, 4]], np.float32)


class Panning(FakePipeline):
    """A person stands before a camera that turns by `degrees` a frame, and whose view is lost at some frame."""

    known = False  # whether the focal length is known

    def __init__(self, degrees: float = 0.0, lost: int = 10**6, slides=None, camera: str = "auto") -> None:
        super().__init__()
        self.config.camera = camera
        self.degrees, self.lost = degrees, lost
        self.slides = slides or (lambda index: 0.0)  # m by which all people move in a frame

    def session(self, size):
        session = PanningSession(self, size)
        session.camera = replace(session.camera, known=self.known)
        return session


class PanningSession(FakeSession):
    def turn(self, index):
        """(3, 3) from the frame's axes to those of the first."""
        return to_matrix(np.radians(np.array([0, self._pipeline.degrees * index, 0])))

    def root(self, index):
        return ROOT + np.array([[self._pipeline.slides(index), 0, 0]], np.float32)

    def track(self, frame):
        links = np.zeros((2, 6))
        links[:, 0] = NO_LINK
        if frame.index < self._pipeline.lost:
            links[0, 2] = np.radians(self._pipeline.degrees * frame.index)
            links[0, 0] = 0
        background = Background(links, 50, 1.0, 0.0)
        joints = ((JOINTS + self.root(frame.index)[:, None]) @ self.turn(frame.index)).astype(np.float32)
        keypoints = project(joints, self.camera.matrix).astype(np.float32)
        return replace(super().track(frame), keypoints=keypoints, background=background)

    def _answer(self):
        people = self._waiting.popleft()
        turn = self.turn(people.index).astype(np.float32)
        root = self.root(people.index) @ turn
        return FrameResult(people, Poses3D(JOINTS @ turn, root, np.full((1, 17), 30, np.float32)))


class WithoutFeet(Panning):
    """The image shows no ankles."""

    def session(self, size):
        return WithoutFeetSession(self, size)


class WithoutFeetSession(PanningSession):
    def track(self, frame):
        people = super().track(frame)
        scores = people.scores.copy()
        scores[:, [H36M17.index("left_ankle"), H36M17.index("right_ankle")]] = 0
        return replace(people, scores=scores)


def lived(pipeline, count):
    source = PushedFrames("test", capacity=count)
    with LiveLoop(pipeline, source, backlog=count, world=Steps()) as loop:
        mailbox = loop.subscribe(maxlen=count)
        for number in range(count):
            source.push(picture(number), at=50 + number / FPS)
        settled(loop, count)
        status = loop.status()
    return list(mailbox), status


def test_person_is_static_in_the_world_during_a_pan(monkeypatch):
    monkeypatch.setattr(Panning, "known", True)  # people determine the focal length of a static camera alone
    results, status = lived(Panning(degrees=0.4), 80)
    stood, _ = lived(Panning(), 80)
    assert results[-1].motion == "rotating"
    assert "camera turns, compensated" in status.line()
    here = np.array([live.result.placed.joints[0] for live in results[40:]])
    there = np.array([live.result.placed.joints[0] for live in stood[40:]])
    assert np.abs(here - there).max() < 0.06  # two estimates of the vertical, each with a sigma of 4 degrees
    assert np.abs(here[-20:] - here[-1]).max() < 0.03
    camera = results[-1].result.poses
    np.testing.assert_allclose(camera.root[0], ROOT[0] @ to_matrix(np.radians(np.array([0, 0.4 * 79, 0]))), atol=0.1)


def test_lost_view_ends_the_world_with_a_warning():
    results, status = lived(Panning(lost=30), 60)
    assert results[29].world is not None
    last = results[-1]
    assert last.world is None
    assert last.result.placed is None
    assert "no world" in status.line()
    said = json.loads(messages(last)[0])
    assert said["camera_motion"] == "unknown"
    assert "gravity" not in said
    assert "world" not in said
    assert json.loads(messages(results[20])[0])["camera_motion"] == "static"


@pytest.mark.parametrize("lost", [30, 0])
def test_recording_has_no_world_after_a_lost_view(lost, tmp_path):
    results, _ = lived(Panning(lost=lost), 60)
    recording = RecordingFolder(tmp_path, lambda live: run_info(live.skeleton, live.size), video=False)
    for live in results:
        recording.write(live)
    recording.finish()
    table = load_poses(recording.files["poses.npz"])
    if lost:
        known = np.isfinite(table.placed.joints).all(axis=(1, 2))
        assert known[:lost].all()
        assert not known[-10:].any()
    else:
        assert table.placed is None


def test_sliding_feet_end_the_world_of_a_rotating_camera():
    def carried(index):
        return 0.5 * index / FPS

    results, status = lived(Panning(degrees=0.1, slides=carried), 10 * FPS)
    assert results[20].world is not None
    assert results[-1].motion == "translating"
    assert results[-1].result.placed is None
    assert "camera moves: no world" in status.line()
    ignored, _ = lived(Panning(degrees=0.1, slides=carried, camera="rotating"), 10 * FPS)
    assert all(live.world is not None for live in ignored)


def test_world_resumes_when_feet_stand():
    stops = 9 * FPS
    results, _ = lived(Panning(degrees=0.05, slides=lambda index: 0.5 * min(index, stops) / FPS), 21 * FPS)
    known = np.array([live.world is not None for live in results])
    assert not known[stops]
    assert known[-1]
    assert np.abs(np.diff(known.astype(int))).sum() == 2  # it ends once and returns once


def test_feet_out_of_view_do_not_support_a_rotation():
    results, _ = lived(WithoutFeet(degrees=0.2), 9 * FPS)
    assert results[20].world is not None
    assert results[-1].motion == "unknown"
