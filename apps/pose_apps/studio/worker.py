"""Worker process of the studio: reads requests from standard input, one JSON object a line, and answers likewise.

A run writes one result file. The networks stay loaded, and results in 2D come from the cache of the studio's folder, so
that a request with other edits computes only 3D and world.
"""

import itertools
import json
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pose.config import WorldConfig, for_each_camera, load_preset
from pose.errors import PoseError
from pose.multiview.fitting import Calibrations
from pose.pipeline import Pipeline
from pose.structures.camera import Camera
from pose.utils.shown import in_brief
from pose_apps.support.run_context import RunContext
from pose_apps.support.world import steps_of

MAX_ANALYSED = 20_000  # maximum number of frames whose events are found when a clip is opened
MAX_EVENTS = 5000  # maximum number of events of the analysis
LOW_PRIORITY = 5  # of copies of videos, as for `nice`
REPORT_INTERVAL_S = 0.2  # minimum time between two reports of progress, s
Report = Callable[[Mapping[str, Any]], None]


class StudioWorker:
    """Runs of one process, which keeps the pipeline of the last preset."""

    def __init__(self) -> None:
        self._pipeline: tuple[str, Pipeline] | None = None
        self._calibrations = Calibrations()

    def process(self, request: Mapping[str, Any], report: Report) -> dict[str, Any]:
        """Run a video or write files, as `request["do"]` says; return the answer."""
        if request["do"] == "run":
            return self._run(request, report)
        if request["do"] == "warm":
            return self._warm(request)
        if request["do"] == "preview":
            return _preview(request)
        if request["do"] == "send":
            return _send(request, report)
        return _export(request) if request["do"] == "export" else _events(request)

    def _warm(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Import what a run needs, and for corrections load the lifter, which is not fetched."""
        import pose.networks.litert
        import pose.networks.onnx
        import pose.results.recorded
        import pose.results.run
        import pose.video  # noqa: F401

        if request.get("preset"):
            self._loaded(request["preset"]).lifter_stage(Camera.of((640, 480)))
        return {}

    def _loaded(self, preset: str) -> Pipeline:
        if self._pipeline is None or self._pipeline[0] != preset:
            self._pipeline = preset, Pipeline(load_preset(preset), lazy=True)
        return self._pipeline[1]

    def _run(self, request: Mapping[str, Any], report: Report) -> dict[str, Any]:
        if len(request["videos"]) > 1:
            return self._run_cameras(request, report)
        from pose.results.cache import open_cache
        from pose.results.edits import parse_edits
        from pose.results.recorded import write_results
        from pose.results.run import counted, record_video
        from pose.video import open_source

        config, target, begun = WorldConfig(height=request.get("height")), Path(request["target"]), time.perf_counter()
        settings = {entry.name: getattr(config, entry.name) for entry in fields(WorldConfig)}
        with (
            open_source(request["videos"][0], keep=bool(request.get("overlay"))) as source,
            open_cache(request["cache"]) as cache,
            record_video(
                self._loaded(request["preset"]), source, steps_of(config), settings=settings, cache=cache,
                progress=counted(_reporter(report, begun)), edits=parse_edits(request["edits"]),
                journal=Path(request["journal"]),
            ) as recorded,
        ):  # fmt: skip
            if not len(recorded):
                raise PoseError("the video has no readable frame")
            if request.get("overlay"):
                _draw(source, recorded, Path(request["overlay"]), self._loaded(request["preset"]))
            else:
                write_results(recorded.results, recorded.info, {"npz": target}, complete=source.cut_short is None)
            problems = recorded.problems if request["edits"]["edits"] else _known(source.cut_short)
        return {"problems": problems, "seconds": time.perf_counter() - begun}

    def _run_cameras(self, request: Mapping[str, Any], report: Report) -> dict[str, Any]:
        """Run the videos of several cameras that filmed the same moment."""
        from pose.multiview.run import RecordedCameras, camera_workers, known_setup
        from pose.results.cache import open_cache
        from pose.results.edits import parse_edits
        from pose.results.recorded import write_results
        from pose.results.run import counted

        begun, videos, height = time.perf_counter(), request["videos"], request.get("height")
        setup = known_setup(videos, None, heights=None if height is None else {None: float(height)})
        workers = camera_workers(len(videos), "auto")
        pipeline = Pipeline(for_each_camera(load_preset(request["preset"]), len(videos)), lazy=True)
        progress, frames, total = _reporter(report, begun), itertools.count(1), _frames_of(videos)
        watched = counted(lambda count, of: progress(next(frames), total))
        with (
            open_cache(request["cache"]) as cache,
            RecordedCameras(
                videos, pipeline, setup, cache=cache, progress=watched, workers=workers,
                edits=parse_edits(request["edits"]), calibrations=self._calibrations,
            ) as run,
        ):  # fmt: skip
            problems = [problem for camera in run.track() for problem in camera.problems]
            run.fuse()
            if request.get("overlay"):
                from pose_apps.cameras.command import draw_cameras

                draw_cameras([videos[index] for index in run.scene.kept], run, Path(request["overlay"]), _quiet())
            else:
                write_results(run.results, run.info, {"npz": Path(request["target"])}, complete=run.cut_short is None)
            problems += [*run.scene.rig.notes, *_known(run.cut_short)]
            problems = run.problems if request["edits"]["edits"] else problems  # the first result said the others
        return {"problems": problems, "seconds": time.perf_counter() - begun}


def _reporter(report: Report, begun: float) -> Callable[[int, int | None], None]:
    """Return a function that reports the number of frames, but not too often."""
    last = 0.0

    def progress(count: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_INTERVAL_S:
            last = time.monotonic()
            report({"frames": count, "of": total, "seconds": time.perf_counter() - begun})

    return progress


def _frames_of(videos: Sequence[str]) -> int | None:
    """Return the number of frames of all videos; None if one is unknown."""
    from pose.video import open_source

    counts = []
    for video in videos:
        with open_source(video) as source:
            counts.append(source.info.frame_count)
    return None if None in counts else sum(count or 0 for count in counts)


def _draw(source: Any, recorded: Any, target: Path, pipeline: Pipeline) -> None:
    from pose.view.insets import INSETS
    from pose_apps.support.drawn_overlay import draw_overlay

    doubtful = recorded.info.doubtful if recorded.info.world is None else recorded.info.world.doubtful
    draw_overlay(source, recorded.results, recorded.info, target, _quiet(), pipeline.times, INSETS[0], False, doubtful)


def _known(problem: str | None) -> list[str]:
    return [] if problem is None else [problem]


def _quiet() -> RunContext:
    """Return a context that reports nothing."""
    return RunContext(lambda results, *_: iter(results), lambda problems: None)


def _preview(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write copies of videos for the page, at low priority; `made` says which videos needed one."""
    from pose_apps.studio.preview import is_quick, write_preview

    if hasattr(os, "nice"):
        os.nice(max(0, LOW_PRIORITY - os.nice(0)))
    video, target = Path(request["video"]), Path(request["target"])
    if is_quick(video):
        return {"made": False}
    write_preview(video, target)
    return {"made": True}


def _send(request: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Send a result to other programs in real time, again and again; the first report says that it runs."""
    from pose.live.links import open_links
    from pose.live.links.playback import Playback
    from pose.results import load_poses

    table = load_poses(Path(request["poses"]), mapped=True)
    if len(table) == 0:
        raise PoseError("the result contains no frame")
    playback = Playback(table, 1.0)
    links = open_links(playback, request["send"])

    def sent(position: int) -> None:
        if position == 0:
            report({})
        if broken := next((link.problem for link in links if link.problem), None):
            raise PoseError(broken)

    try:
        playback.run(sent, True)
    finally:
        for link in links:
            link.close()
    return {}


def _events(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the events that the analysis finds, such as foot strikes; none without world coordinates."""
    from pose.analysis import analyse
    from pose.results import load_poses

    table = load_poses(Path(request["poses"]))
    events = [] if table.placed is None or len(table) > MAX_ANALYSED else analyse(table).events
    return {"events": [asdict(event) for event in events[:MAX_EVENTS]]}


def _export(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write a result in one format into an empty folder."""
    folder, poses, video = Path(request["folder"]), Path(request["poses"]), Path(request["video"])
    if request["format"] == "report":
        from pose_apps.support.analysis import write_analysis

        write_analysis(poses, folder, ["html", "csv"], video=video)
    elif request["format"] == "compare":
        from pose.analysis import DEFAULT_GROUPS
        from pose_apps.support.analysis import write_compared

        one, two = request["people"] or (None, None)
        write_compared((poses, Path(request["other"])), (one, two), folder, DEFAULT_GROUPS, overwrite=True)
    else:
        from pose.export import export_all, open_selection

        selection = open_selection(poses, video=video)
        name = request["format"]
        problems = export_all(selection, [name], selection.people, folder, request["stem"], lambda written: None)
        if problems:
            raise PoseError("; ".join(problems))
    return {"files": sorted(path.name for path in folder.iterdir())}


def main() -> None:
    """Answer requests until standard input ends, which also ends a run in progress."""
    warnings.simplefilter("ignore")
    answers, requests = os.fdopen(os.dup(1), "w", encoding="utf-8"), queue.SimpleQueue[str | None]()
    os.dup2(2, 1)  # other prints do not mix with the answers

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)  # the studio ended

    def answer(content: Mapping[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    threading.Thread(target=read, daemon=True).start()
    worker = StudioWorker()
    while (line := requests.get()) is not None:
        try:
            answer({"done": worker.process(json.loads(line), lambda content: answer({"progress": content}))})
        except (PoseError, OSError) as error:
            answer({"error": in_brief(error)})
        except Exception as error:
            answer({"error": f"unexpected error: {type(error).__name__}: {in_brief(error)}"})
            raise


if __name__ == "__main__":
    main()
