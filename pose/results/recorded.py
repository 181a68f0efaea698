"""All results of one run: collected frame by frame, transformed to the world, and written.

Every run goes this way: videos and single images (`pose.results.run`), several cameras (`pose.multiview.run`) and
keypoints (`pose.functions`), from a command or Python.
Memory does not grow with the length of the recording.
"""

import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from pose.lifting.fit.directions import WornSensors
from pose.results import MotionInfo, ResultFiles, RunInfo, WorldInfo
from pose.results.cache.run import Found
from pose.structures.result_store import ResultStore
from pose.structures.types import F64, FrameResult
from pose.utils.progress import StageTimes
from pose.world.camera_motion.decision import AUTO, FREE, Decision, decide
from pose.world.camera_motion.log import MotionLog
from pose.world.carried import Images, RunData
from pose.world.clean import Steps
from pose.world.measured import DepthImages, Measured, measure
from pose.world.placing import place_run
from pose.world.run import PlacedRun, doubtful_tracks

MAX_RATE_ERROR = 0.02  # maximum relative difference of a declared frame rate from the average


class RecordedRun:
    """Results of a run; must be closed.

    Attributes:
        info: Metadata of the run; `place` adds world, camera motion and doubtful tracks.
        lifted: Results of all frames in camera coordinates.
        results: Results of all frames; can be iterated repeatedly.
        decision: Decision on the camera motion; None before `place`.
        world: The run in world coordinates; None if it has none.
        error: Error that ended the run early; the results contain the frames before it.
        measured: What depth images say; None without them.
        worn: What inertial sensors of a person say; None without them.
        cached: Part of the results that was read from a cache.
        cut_short: Message that the end of the video is missing; None if it is complete.
        problems: Messages about edits that do not apply to this run.
    """

    def __init__(self, info: RunInfo, folder: Path | None = None) -> None:
        """Create the temporary files in a folder, or in the system's; PoseError if it cannot be written."""
        self.info, self._folder = info, folder or Path(tempfile.gettempdir())
        self.lifted, self._log, self._stack = ResultStore(self._folder, info.skeleton), MotionLog(), ExitStack()
        self._stack.callback(self.lifted.close)
        self.results: Iterable[FrameResult] = self.lifted
        self._covered = 0, 0.0, 0.0  # number of frames, and times in s of the first and the last one
        self.decision: Decision | None = None
        self.world: PlacedRun | None = None
        self.error: BaseException | None = None
        self.cached: Found = "nothing"
        self.measured: Measured | None = None
        self.worn: WornSensors | None = None
        self.cut_short: str | None = None
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary files."""
        self._stack.close()

    def __len__(self) -> int:
        return len(self.lifted)

    @property
    def times(self) -> F64:
        """Times (F,) of the frames, s."""
        return self._log.times

    def add(self, result: FrameResult) -> None:
        """Append the result of a frame; PoseError if it cannot be stored, for example because the disk is full."""
        count, first, _ = self._covered
        self._covered = count + 1, first if count else result.time, result.time
        self.lifted.write(result)
        self._log.add(result.people)

    def place(self, steps: Steps | None, *, join: bool = True, images: Images | None = None) -> None:
        """Transform the results to the world, if the camera motion allows it, and find doubtful tracks.

        `images` returns an iterator over the same frames again, to estimate the translation of a carried camera.
        """
        info = replace(self.info, fps=average_rate(self.info.fps, *self._covered))
        camera = str(info.settings.get("camera", AUTO))
        if steps is None:
            self.decision = decide(self._log, camera)
        else:
            data = RunData(self.lifted, info.skeleton, info.camera, images, self._folder)
            self.world, self.decision = place_run(data, self._log, camera, steps, join)
        self.info = replace(info, motion=MotionInfo.of(self.decision, self.world))
        if self.world is None:
            tracks = doubtful_tracks(self.lifted, info.skeleton, info.camera, folder=self._folder)
            self.info = replace(self.info, doubtful=tuple(sorted(tracks)))
        else:
            self._stack.callback(self.world.close)
            self.results, self.info = self.world, replace(self.info, world=_described(self.world, steps))


def _described(world: PlacedRun, steps: Steps | None) -> WorldInfo:
    """Describe the world of a run; heights from depth images get their uncertainty."""
    info = WorldInfo.of(world)
    measured = {} if steps is None else steps.measured
    heights = {
        number: (height, height * measured[number].scale_sigma if sigma == 0 and number in measured else sigma)
        for number, (height, sigma) in info.heights.items()
    }
    return replace(info, heights=heights)


def record(
    results: Iterable[FrameResult],
    info: RunInfo,
    steps: Steps | None = None,
    *,
    join: bool = True,
    images: Images | None = None,
    stop: threading.Event | None = None,
    times: StageTimes | None = None,
    folder: Path | None = None,
    keep: bool = False,
    collected: Callable[[ResultStore], None] = lambda results: None,
    depth: DepthImages | None = None,
) -> RecordedRun:
    """Collect the results of a run and transform them to the world; the caller closes the run.

    Without `steps`, results stay in camera coordinates; `join` joins tracks of one person and drops those of no person.
    `images` returns the same frames again (`RecordedRun.place`), unless `stop` ended the run early. `collected` is
    called with all results before the transformation. `keep`: an error in `results` ends them, and `RecordedRun.error`
    has it.
    """
    recorded, times = RecordedRun(info, folder), times or StageTimes()
    try:
        try:
            for result in results:
                with times.measure("write"):
                    recorded.add(result)
        except BaseException as error:
            if not keep or not len(recorded):
                raise
            recorded.error = error
        finally:
            if close := getattr(results, "close", None):  # ends the contexts of a generator
                close()
        if recorded.error is None:
            collected(recorded.lifted)
        if depth is not None and steps is not None:
            with times.measure("depth images"):
                followed = str(info.settings.get("camera", AUTO)) in (AUTO, FREE)
                found = recorded.measured = measure(
                    recorded.lifted, depth, info.camera, recorded.times if followed else None
                )
            up = steps.up if steps.up is not None else found.up
            steps = replace(steps, measured=found.people, up=up, path=found.path)
        with times.measure("world"):
            recorded.place(steps, join=join, images=None if stop is not None and stop.is_set() else images)
    except BaseException:
        recorded.close()
        raise
    return recorded


def average_rate(declared: float, count: int, first: float, last: float) -> float:
    """Return the average rate of `count` frames from `first` to `last` (s), or the declared one if it agrees."""
    if count < 2:
        return declared
    average = (count - 1) / (last - first)
    return declared if abs(average / declared - 1) <= MAX_RATE_ERROR else average


def write_results(
    results: Iterable[FrameResult],
    info: RunInfo,
    paths: Mapping[str, Path],
    *,
    complete: bool = True,
    texts: Mapping[Path, str] | None = None,
    seen: Callable[[FrameResult], None] = lambda result: None,
) -> None:
    """Write the result files of a run, by format, and further files that get their names together with them.

    `complete` tells whether the results contain all frames of the input; `seen` is called with each. PoseError if a
    file cannot be written.
    """
    with ResultFiles(paths, info) as files:
        for path, text in (texts or {}).items():
            files.add_text(path, text)
        for result in results:
            seen(result)
            files.write(result)
        files.close(complete)
