"""Fusion of the results of several cameras.

One camera is displayed. Each of its frames gives one result. Once the cameras are calibrated, it contains the people
seen by any of them.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from pose.live.counter import RepetitionCounter
from pose.live.result import STALL_SECONDS, LiveResult, Stream
from pose.live.several.bumps import Bumps
from pose.live.several.calibration import Calibration
from pose.live.several.fusion import CurrentPose, Fusion
from pose.live.several.placing import DisplayedCamera, Placing
from pose.live.several.rigging import Rigging
from pose.results import WorldInfo
from pose.structures.camera import Camera
from pose.structures.types import FrameResult
from pose.world.clean import Steps
from pose.world.live import LiveWorld


class FusionStage:
    """Fusion of the results of several single-camera loops. It runs in the caller's thread, except for `rigging`."""

    # `lead` is the displayed camera, whose images and frame times the fused results have. It changes if this camera
    # ends, stalls, or is not calibrated although others are.

    def __init__(self, rigging: Rigging, steps: Steps | None) -> None:
        """Start without results; without `steps` people stay in camera coordinates."""
        self.rigging, self.lead = rigging, 0
        self._steps = steps
        self._fusion: Fusion | None = None
        self._placing: Placing | None = None
        self._bumps: Bumps | None = None
        self._alone: LiveWorld | None = None  # world of the displayed camera alone, without a calibration
        self._streams: tuple[Stream, Stream] | None = None  # streams of the displayed camera's loop and of the results
        self._counter = RepetitionCounter()
        self._began = math.inf  # time of the first result of any camera, s
        self._first, self._last = math.nan, -math.inf  # times of the first and the last published result, s
        self._count = 0

    def take(self, arrived: Iterable[tuple[int, LiveResult]], ended: Collection[int] = ()) -> list[LiveResult]:
        """Return a fused result for each new frame of the displayed camera; without a calibration only its people."""
        # If the lifter refines poses, pass both the newest estimate and the refined result of each frame.
        shown, sightings = [], self.rigging.sightings
        for index, live in arrived:
            if live.captured > sightings[index].newest:
                shown.append((index, live))
            sightings[index].add(live)
        now = max(camera_sightings.newest for camera_sightings in sightings)
        if math.isinf(now):
            return []
        self._began = min(self._began, now)
        live_now = [
            i
            for i, camera_sightings in enumerate(sightings)
            if i not in ended and now - camera_sightings.newest < STALL_SECONDS
        ]
        self._choose_lead(now, live_now, ended)
        if self.rigging.step(now, live_now):
            self._use(self.rigging.calibration)
        return [self._published(live) for index, live in shown if index == self.lead and live.captured > self._last]

    def _choose_lead(self, now: float, live_now: Sequence[int], ended: Collection[int]) -> None:
        """Display another camera if the displayed one ended, stalled, or has no calibration although others have."""
        calibrated = None if self.rigging.calibration is None else self.rigging.calibration.cameras
        seen_at = max(self.rigging.sightings[self.lead].newest, self._began)  # the first image may arrive late
        is_live = self.lead not in ended and now - seen_at < STALL_SECONDS
        if is_live and (calibrated is None or self.lead in calibrated):
            return
        choice = [index for index in live_now if calibrated is None or index in calibrated] or live_now
        if choice and choice[0] != self.lead:
            self.lead, self._streams, self._alone = choice[0], None, None

    def _use(self, calibration: Calibration | None) -> None:
        """Start to use another calibration; None after a camera was moved."""
        self._streams = self._alone = self._fusion = self._placing = self._bumps = None
        self._counter = RepetitionCounter()
        if calibration is not None:
            self._bumps = Bumps(calibration)
            self._fusion = Fusion(calibration, len(self.rigging.sightings))
            self._placing = Placing(calibration, self._steps)

    def _published(self, live: LiveResult) -> LiveResult:
        """Return the fused result for a frame of the displayed camera."""
        if math.isnan(self._first):
            self._first = live.captured
        stream = self._stream(live)
        result, info = self._result(live)
        self._last, self._count = live.captured, self._count + 1
        counts = self._counter.add(result)
        return LiveResult(live.image, result, live.skeleton, live.captured, monotonic(), stream, info, counts=counts)

    def _result(self, live: LiveResult) -> tuple[FrameResult, WorldInfo | None]:
        """Return the fused people at the time of a frame; without a calibration those of its camera alone."""
        time = live.captured - self._first
        calibration = self.rigging.calibration
        if calibration is None or self._fusion is None or self._placing is None:
            return self._single(live, time)
        camera = calibration.cameras.get(self.lead)
        if camera is None:
            return self._single(live, time)
        calibrated = {
            index: camera_sightings
            for index, camera_sightings in enumerate(self.rigging.sightings)
            if index in calibration.cameras
        }
        common = float(camera.common_time(np.array(live.captured)))
        people = self._fusion.at(common, calibrated, self.rigging.identities)
        self._watch(people, common, live.captured)
        shown = DisplayedCamera(self.lead, camera, live.result)
        return self._placing.result(people, shown, self._count, time, live.skeleton)

    def _watch(self, people: Sequence[CurrentPose], time: float, captured: float) -> None:
        """Discard the calibration from the next frame on if a camera was moved."""
        if self._bumps is None:
            return
        if self._bumps.update(time, people, bool(self.rigging.identities.contradicted)):
            self._bumps = None
            self.rigging.discard_calibration(captured)

    def _single(self, live: LiveResult, time: float) -> tuple[FrameResult, WorldInfo | None]:
        """Return the people of the displayed camera alone, at the time `time` (s) of the results."""
        result = replace(live.result, people=replace(live.result.people, index=self._count, time=time))
        if self._steps is None:
            return result, None
        if self._alone is None:
            self._alone = LiveWorld(_camera_of(live), self._steps, background=True)
        placed = self._alone.place(result, live.skeleton)
        return placed, WorldInfo(self._alone.world, self._alone.heights)

    def _stream(self, live: LiveResult) -> Stream:
        """Return the stream of fused results, which changes with the displayed camera's stream and the calibration."""
        assert live.stream is not None, "results of a loop have a stream"
        if self._streams is None or self._streams[0] is not live.stream:
            new = replace(live.stream)
            calibration = self.rigging.calibration
            if calibration is not None and self.lead in calibration.cameras:
                camera = calibration.cameras[self.lead]
                new = replace(new, camera=Camera(camera.matrix, True, camera.size), cameras=calibration.listed)
            self._streams, self._alone = (live.stream, new), None
        return self._streams[1]


def _camera_of(live: LiveResult) -> Camera:
    assert live.stream is not None, "results of a loop have a stream"
    return live.stream.session.camera
