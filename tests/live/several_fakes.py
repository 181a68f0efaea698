"""Live results of synthetic people in several cameras, without networks or threads."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "multiview"))
import scenes
import setups as setups

from pose.live.result import LiveResult, Stream
from pose.live.several.rigging import Rigging
from pose.live.several.stage import FusionStage
from pose.multiview.types import ViewCamera, ViewTrack
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.clean import Steps

PIPELINE = SimpleNamespace(skeleton=H36M17)
WORK_SECONDS = 120.0  # limit for a calibration on a slow machine
BLACK = np.zeros(3, np.uint8)


def stream_of(camera: ViewCamera) -> Stream:
    return Stream(PIPELINE, SimpleNamespace(camera=Camera(camera.matrix, False, camera.size)), camera.size)


def rigging_of(views, **changes) -> Rigging:
    by_size = {camera.size: camera for camera in scenes.told(views)}
    return Rigging([f"camera {index}" for index in range(len(views))], by_size.__getitem__, **changes)


class Player:
    """Feeds the tracks of each camera to a stage, in the order of their times.

    Attributes:
        shown: The published results.
    """

    def __init__(self, stage: FusionStage, views: list[ViewCamera], begin: float = 1000.0) -> None:
        """begin: capture time of time 0, s."""
        self.stage, self.begin, self.shown = stage, begin, list[LiveResult]()
        self._streams = [stream_of(view) for view in views]
        self._images = [np.broadcast_to(BLACK, (view.size[1], view.size[0], 3)) for view in views]

    def play(self, tracks: list[ViewTrack], ended: frozenset[int] = frozenset(), wait: bool = True) -> list[LiveResult]:
        """Feed tracks; returns what was published. wait: until the threads have finished after each frame."""
        moments: dict[tuple[float, int], list[tuple[ViewTrack, int]]] = {}
        for track in tracks:
            for row, time in enumerate(track.times.tolist()):
                moments.setdefault((time, track.camera), []).append((track, row))
        published = []
        for number, ((time, camera), rows) in enumerate(sorted(moments.items(), key=lambda item: item[0])):
            live = self._live(number, time, camera, rows)
            published += self.stage.take([(camera, live)], ended)
            if wait:
                finish_work()
        self.shown += published
        return published

    def _live(self, number: int, time: float, camera: int, rows: list[tuple[ViewTrack, int]]) -> LiveResult:
        ids = np.array([track.number for track, _ in rows])
        keypoints = np.stack([track.keypoints[row] for track, row in rows])
        scores = np.stack([track.scores[row] for track, row in rows])
        boxes = np.concatenate([keypoints.min(axis=1), keypoints.max(axis=1)], axis=1)
        people = People(number, time, ids, boxes, np.ones(len(rows), np.float32), keypoints, scores)
        poses = Poses3D(*(np.stack([getattr(t, name)[row] for t, row in rows]) for name in ("joints", "root", "sigma")))
        at = self.begin + time
        return LiveResult(self._images[camera], FrameResult(people, poses), H36M17, at, at, self._streams[camera])


def finish_work() -> None:
    """Wait for the calibration and the search for identities."""
    for thread in threading.enumerate():
        if thread.name in ("calibration", "identities"):
            thread.join(WORK_SECONDS)


def stage_of(rigging: Rigging, world: bool = True) -> FusionStage:
    return FusionStage(rigging, Steps() if world else None)
