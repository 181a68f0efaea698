"""A pipeline without networks, and frames to push: what the tests of the live loop share."""

import threading
import time
from collections import deque
from types import SimpleNamespace

import numpy as np

from pose.live import LiveLoop, PushedFrames
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import Frame, FrameResult, People, Poses3D


class FakePipeline:
    """One person in every frame, whose keypoints say which frame it was; answers `lookahead` frames later.

    refine: give each frame a second time so many frames later, with x of the root 1 instead of 0; 0 gives it once.
    seconds: that the 2D networks take for a frame. gate: while it is clear, they wait. turns: for how many frames they
    have time, without end where it is None. fails_at: the frame at which they break. begun: frames that they got.
    """

    device, skeleton = "cpu", H36M17

    def __init__(self, seconds: float = 0.0, lookahead: int = 0, fails_at: int | None = None, refine: int = 0) -> None:
        self.refine = refine
        self.config = SimpleNamespace(lookahead=lookahead, lifter="fake", camera="fixed")
        self.seconds, self.fails_at = seconds, fails_at
        self.gate = threading.Event()
        self.gate.set()
        self.turns: threading.Semaphore | None = None
        self.begun = 0
        self.sizes: list[tuple[int, int]] = []

    def for_cameras(self, count: int) -> "list[FakePipeline]":
        return [self] * count

    def session(self, size: tuple[int, int]) -> "FakeSession":
        self.sizes.append(size)
        return FakeSession(self, size)


class FakeSession:
    def __init__(self, pipeline: FakePipeline, size: tuple[int, int]) -> None:
        self.camera = Camera.of(size)
        self._pipeline = pipeline
        self.refines = pipeline.refine > 0
        self._waiting: deque[People] = deque()
        self._unrefined: deque[People] = deque()
        self._ended = False

    def track(self, frame: Frame) -> People:
        self._pipeline.begun += 1
        self._pipeline.gate.wait()
        if self._pipeline.turns is not None:
            self._pipeline.turns.acquire()
        time.sleep(self._pipeline.seconds)
        if frame.index == self._pipeline.fails_at:
            raise RuntimeError("a bug in the estimator")
        keypoints = np.full((1, 17, 2), int(frame.image[0, 0, 0]), np.float32)
        box, one = np.array([[10, 20, 30, 40]], np.float32), np.ones(1, np.float32)
        return People(frame.index, frame.time, np.array([1]), box, one, keypoints, np.ones((1, 17), np.float32))

    def lift(self, people: People) -> list[FrameResult]:
        self._waiting.append(people)
        self._unrefined.append(people)
        return [self._answer()] if len(self._waiting) > self._pipeline.config.lookahead else []

    def flush(self) -> list[FrameResult]:
        self._ended = True
        return [self._answer() for _ in range(len(self._waiting))]

    def take_refined(self) -> list[FrameResult]:
        left = 0 if self._ended else self._pipeline.refine
        return [answer(self._unrefined.popleft(), root=1) for _ in range(len(self._unrefined) - left)]

    def _answer(self) -> FrameResult:
        return answer(self._waiting.popleft())


def answer(people: People, root: float = 0) -> FrameResult:
    zeros = np.zeros((1, 17, 3), np.float32)
    return FrameResult(people, Poses3D(zeros, np.array([[root, 0, 0]], np.float32), zeros[..., 0]))


def picture(number: int, size: tuple[int, int] = (64, 48)) -> np.ndarray:
    return np.full((size[1], size[0], 3), number % 256, np.uint8)


def push(source: PushedFrames, count: int, interval: float = 0.0) -> None:
    for number in range(count):
        source.push(picture(number))
        time.sleep(interval)


def wait_until(condition, seconds: float = 60.0) -> None:
    """seconds: far more than it takes, for a machine that stands still meanwhile."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.005)


def settled(loop: LiveLoop, frames_in: int) -> None:
    """Wait until so many frames were captured and each was processed or dropped."""
    wait_until(lambda: loop.status().frames_in == frames_in)
    wait_until(lambda: (s := loop.status()).processed + s.dropped == frames_in)
