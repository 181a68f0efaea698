"""Single pictures, of whatever sizes: people in each, 3D from that one frame, and a gallery of all.

Every picture has result files of its own, NAME.json and NAME.npz, as a clip of one frame has: its size, its camera, its
people. Ids count within a picture, for nobody is followed from one to the next.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose.view.insets import AUTO
from pose_apps.support.host import Done, Host
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.outputs import Outputs, default_folder, known_files
from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.types import U8, FrameResult
    from pose.video.images import ImageSource

GALLERY = "gallery-{}.jpg"
# What the lifter says of a frame among its neighbours is a little too sure of a frame alone: of test people with a
# detector's errors 61 % of joints lay within their sigma, not 68 % (benchmarks/single_frames.py).
SIGMA_FACTOR = 1.11
LOOKS = 2  # at each picture: the second crops people by their joints, the first by the detector's box


@dataclass(frozen=True, slots=True)
class Request:
    """What `pose-run` was asked for; fields as there."""

    pictures: str
    out: str | None
    formats: str
    overlay: bool
    overwrite: bool
    inset: str = AUTO


def run_stills(request: Request, networks: "Callable[[], Pipeline]", host: Host) -> Done:
    """Process single pictures into their files. Raises PoseError; UsageError where the call names no pictures."""
    from pose.video import open_source
    from pose.video.images import ImageSource

    wanted = _formats(request)
    folder = default_folder(request.pictures) if request.out is None else Path(request.out)
    outputs = Outputs(folder, {}, warn=lambda message: host.warn([message]))
    with open_source(request.pictures) as source, Interrupts(host.heard) as interrupts:
        if not isinstance(source, ImageSource):
            raise UsageError(f"--stills: {request.pictures} is not an image, nor a folder or glob of images")
        if not request.overwrite:
            _check_free(source, folder)
        with outputs.ready_folder(_names(source)) as written:
            pipeline = networks()
            tally = Tally()
            results = host.shown(
                _results(source, pipeline, written.folder, wanted, interrupts, request.inset), source, "poses"
            )
            for result in results:
                tally.add(result, pipeline.skeleton)
                tally.add_sigma(result)
            host.warn(source.problems)
            names = sorted(path.name for path in written.folder.iterdir() if not path.name.startswith("."))
            outputs.settle(written, whole=True)
    left = f"{tally.frames} images finished and kept"
    interruption = KeyboardInterrupt(left) if interrupts.stop.is_set() else None
    return Done(tally, source, pipeline, [folder / name for name in names], [], "nothing", interruption, stills=True)


def _formats(request: Request) -> set[str]:
    names = {name.strip() for name in request.formats.split(",") if name.strip()}
    known = known_files()
    if unknown := sorted(names - set(known)):
        raise UsageError(
            f"--formats: {unknown[0]} is not available for single images; known: {', '.join(known)}; "
            "use pose-convert on the .npz of an image for others"
        )
    return names if request.overlay else names - {"overlay"}


def _check_free(source: "ImageSource", folder: Path) -> None:
    there = [folder / f"{path.name}{ending}" for path in source.paths for ending in (".json", ".npz")]
    for path in [*there, folder / GALLERY.format(1)]:
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; give --overwrite to replace what is there, or another folder with --out")


def _names(source: "ImageSource") -> list[str]:
    """The files that may be written, as globs."""
    names = (f"{path.name}{ending}" for path in source.paths for ending in (".json", ".npz"))
    return [GALLERY.format("*"), *map(escape, names)]


def _results(
    source: "ImageSource",
    pipeline: "Pipeline",
    folder: Path,
    wanted: set[str],
    interrupts: Interrupts,
    inset: str,
) -> "Iterator[FrameResult]":
    """The result of every picture, once its files are written; the gallery with the last of each sheet."""
    from pose.video.lens import focal_35mm
    from pose.view.gallery import Gallery

    with ExitStack() as stack:
        gallery = None
        if "overlay" in wanted:
            gallery = Gallery(lambda number: folder / GALLERY.format(number), inset)
            stack.callback(gallery.close)
        for path, image in source.pictures():
            if interrupts.stop.is_set():
                return
            focal = focal_35mm(path, (image.shape[1], image.shape[0]))
            result = still(pipeline, image, focal)
            with pipeline.times.measure("write"):
                _write(path, (image.shape[1], image.shape[0]), focal, result, pipeline, folder, wanted)
            if gallery is not None:
                with pipeline.times.measure("overlay"):
                    gallery.add(path.name, image, result, pipeline.skeleton)
            yield result


def still(pipeline: "Pipeline", image: "U8", focal_35mm: float | None = None) -> "FrameResult":
    """The people of one picture (H, W, 3) uint8 RGB, in 2D and 3D. focal_35mm: as of `Pipeline.camera`."""
    from pose.types import Frame, FrameResult

    height, width = image.shape[:2]
    session = pipeline.session((width, height), focal_35mm)
    for look in range(LOOKS):
        people = session.track(Frame(image, look, look / 30))
    results = session.lift(replace(people, index=0, time=0.0)) + session.flush()
    (result,) = results
    return FrameResult(result.people, replace(result.poses, sigma=result.poses.sigma * SIGMA_FACTOR))


def _write(
    path: Path,
    size: tuple[int, int],
    focal_35mm: float | None,
    result: "FrameResult",
    pipeline: "Pipeline",
    folder: Path,
    wanted: set[str],
) -> None:
    """The picture's own files. size: (width, height) px. focal_35mm: as of `Pipeline.camera`."""
    from pose.files import WRITERS

    info = pipeline.run_info(str(path), 1.0, size, focal_35mm)
    info = replace(info, settings={"stills": True, "sigma_factor": SIGMA_FACTOR, **info.settings})
    for name, writer in WRITERS.items():
        if name in wanted:
            with writer(folder / f"{path.name}.{name}", info) as file:
                file.write(result)
