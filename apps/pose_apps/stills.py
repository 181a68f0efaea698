"""Processing of single images of any size: 3D people in each image, and a gallery of all images.

Each image has its own result files, NAME.json and NAME.npz, like a clip of one frame. Ids are valid within one image
only, because people are not tracked between images.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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
    from pose.structures.types import FrameResult
    from pose.video.images import ImageSource

GALLERY = "gallery-{}.jpg"


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
    from pose.results import WRITERS
    from pose.results.recorded import write_results
    from pose.results.run import record_still
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
            result, info = record_still(pipeline, image, str(path), focal)
            with pipeline.times.measure("write"):
                write_results(
                    [result], info, {name: folder / f"{path.name}.{name}" for name in WRITERS if name in wanted}
                )
            if gallery is not None:
                with pipeline.times.measure("overlay"):
                    bodies = BodyMeshes(info.camera, info.skeleton).of(result) if request.body else []
                    gallery.add(path.name, image, result, pipeline.skeleton, bodies)
            yield result
