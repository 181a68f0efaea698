"""Processing of single images of any size: 3D people in each image, and a gallery of all images.

Each image has its own result files, NAME.json and NAME.npz, like a clip of one frame. Ids are valid within one image
only, because people are not tracked between images.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose.utils.written_files import check_not_input
from pose.view.insets import AUTO
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.outputs import Outputs, default_folder, known_files
from pose_apps.support.run_context import RunContext, RunOutcome
from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.structures.types import U8, FrameResult
    from pose.video.images import ImageSource

GALLERY = "gallery-{}.jpg"
# Correction of sigma for single frames: on test subjects with detector errors, 61 % of the joints were within their
# sigma instead of 68 % (measured at commit aeebe8c6).
SIGMA_FACTOR = 1.11
PASSES = 2  # estimations per image: the first crops people by the detector's boxes, the second by the joints found


@dataclass(frozen=True, slots=True)
class ImagesRequest:
    """Options of `pose-run` that apply to single images."""

    pictures: str  # image file, folder of images, or glob pattern
    out: str | None  # output folder; None for the default
    formats: str  # formats of the result files, separated by commas
    overlay: bool  # whether to write the gallery: sheets that show all images with their results
    overwrite: bool  # whether existing results may be replaced
    inset: str = AUTO  # position of the 3D view in the gallery; see `pose.view.overlay.Overlay`
    body: bool = False  # whether to draw shaded bodies


def run_stills(request: ImagesRequest, networks: "Callable[[], Pipeline]", context: RunContext) -> RunOutcome:
    """Process single images and write their result files."""
    from pose.video import open_source
    from pose.video.images import ImageSource

    wanted = _formats(request)
    folder = default_folder(request.pictures) if request.out is None else Path(request.out)
    outputs = Outputs(folder, {}, warn=lambda message: context.warn([message]))
    with open_source(request.pictures) as source, Interrupts(context.handles_interrupts) as interrupts:
        if not isinstance(source, ImageSource):
            raise UsageError(f"--stills: {request.pictures} is not an image, nor a folder or glob of images")
        check_not_input(folder.glob(GALLERY.format("*")), source.paths)
        if not request.overwrite:
            _check_free(source, folder)
        with outputs.ready_folder(_names(source)) as written:
            pipeline = networks()
            tally = Tally()
            results = context.with_progress(
                _results(source, pipeline, written.folder, wanted, interrupts, request), source, "poses"
            )
            for result in results:
                tally.add(result, pipeline.skeleton)
                tally.add_sigma(result)
            context.warn(source.problems)
            names = sorted(path.name for path in written.folder.iterdir() if not path.name.startswith("."))
            outputs.settle(written, complete=True)
    left = f"{tally.frames} images finished and kept"
    interruption = KeyboardInterrupt(left) if interrupts.stop.is_set() else None
    return RunOutcome(
        tally, source, pipeline, [folder / name for name in names], [], "nothing", interruption, stills=True
    )


def _formats(request: ImagesRequest) -> set[str]:
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
    """Return glob patterns that match the files to write."""
    names = (f"{path.name}{ending}" for path in source.paths for ending in (".json", ".npz"))
    return [GALLERY.format("*"), *map(escape, names)]


def _results(
    source: "ImageSource",
    pipeline: "Pipeline",
    folder: Path,
    wanted: set[str],
    interrupts: Interrupts,
    request: ImagesRequest,
) -> "Iterator[FrameResult]":
    """Yield the result of each image after writing its files, and each sheet of the gallery as soon as it is full."""
    from pose.video.lens import focal_35mm
    from pose.view.gallery import Gallery
    from pose.view.mesh_overlay import BodyMeshes

    with ExitStack() as stack:
        gallery = None
        if "overlay" in wanted:
            gallery = Gallery(lambda number: folder / GALLERY.format(number), request.inset)
            stack.callback(gallery.close)
        for path, image in source.images_with_paths():
            if interrupts.stop.is_set():
                return
            focal = focal_35mm(path, (image.shape[1], image.shape[0]))
            result = still(pipeline, image, focal)
            with pipeline.times.measure("write"):
                _write(path, (image.shape[1], image.shape[0]), focal, result, pipeline, folder, wanted)
            if gallery is not None:
                with pipeline.times.measure("overlay"):
                    camera = pipeline.camera((image.shape[1], image.shape[0]), focal)
                    bodies = BodyMeshes(camera, pipeline.skeleton).of(result) if request.body else []
                    gallery.add(path.name, image, result, pipeline.skeleton, bodies)
            yield result


def still(pipeline: "Pipeline", image: "U8", focal_35mm: float | None = None) -> "FrameResult":
    """Estimate the 2D and 3D keypoints of the people in one image, in pixels and in the camera frame."""
    from pose.structures.types import Frame, FrameResult

    height, width = image.shape[:2]
    session = pipeline.session((width, height), focal_35mm)
    for look in range(PASSES):
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
    """Write the result files of one image, which get its name."""
    from pose.results import WRITERS
    from pose.results.recorded import write_results

    info = pipeline.run_info(str(path), 1.0, size, focal_35mm)
    info = replace(info, settings={"stills": True, "sigma_factor": SIGMA_FACTOR, **info.settings})
    paths = {name: folder / f"{path.name}.{name}" for name in WRITERS if name in wanted}
    write_results([result], info, paths)
