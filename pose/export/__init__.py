"""Export of results to other formats, one module per format.

To add a format, write a module with a `FORMAT` and add a line to `FORMATS`. Exports read a `Selection`, a result whose
arrays may be memory-mapped, in portions of a few thousand frames.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pose.body.tracks import Selection, open_selection
from pose.errors import PoseError, UsageError
from pose.export import (
    angles,
    angles_parquet,
    blendshapes,
    bvh,
    c3d,
    coco,
    csv,
    faces,
    fbx,
    glb,
    html,
    mot,
    openpose,
    opensim,
    parquet,
    rrd,
    trc,
    usd,
)
from pose.export.format import LIST, Format, PersonFormat, SceneFormat, Written
from pose.utils.shown import shown
from pose.utils.written_files import print_warning, record_files, writing

# Up to this number of files, the record of written files is saved after each. Beyond, it is saved at growing intervals,
# because each save writes all names. If the process is killed, a later export renames files that are not recorded.
SAVED_EACH = 200

FORMATS: dict[str, Format] = {
    "bvh": bvh.FORMAT,
    "glb": glb.FORMAT,
    "usd": usd.FORMAT,
    "fbx": fbx.FORMAT,
    "blendshapes": blendshapes.FORMAT,
    "trc": trc.FORMAT,
    "c3d": c3d.FORMAT,
    "mot": mot.FORMAT,
    "opensim": opensim.FORMAT,
    "csv": csv.FORMAT,
    "parquet": parquet.FORMAT,
    "angles": angles.FORMAT,
    "angles-parquet": angles_parquet.FORMAT,
    "faces": faces.FORMAT,
    "coco": coco.FORMAT,
    "openpose": openpose.FORMAT,
    "rrd": rrd.FORMAT,
    "html": html.FORMAT,
}


def check_formats(names: Sequence[str], option: str) -> None:
    """Check that formats are known (UsageError) and their libraries installed (PoseError)."""
    for name in names:
        if name not in FORMATS:
            raise UsageError(f"{option}: unknown format {shown(name, 60)!r}; known: {', '.join(FORMATS)}")
        missing = [module for module in FORMATS[name].modules if find_spec(module) is None]
        if missing:
            extra = FORMATS[name].extra
            raise PoseError(f"format {name} needs {missing[0]}: pip install 'pose-run[{extra}]'")
        FORMATS[name].check()


def is_available(name: str) -> bool:
    """Return whether the libraries and programs that a format requires are installed."""
    try:
        check_formats([name], "")
    except PoseError:
        return False
    return True


def targets(recording: Selection, names: Sequence[str], people: list[int], folder: Path, stem: str) -> list[Path]:
    """Return the paths that `export` would write, except lists of filled frames (`pose.export.format.list_filled`)."""
    paths = []
    for name in names:
        form = FORMATS[name]
        stems = [f"{stem}-person{person}" for person in people] if isinstance(form, PersonFormat) else [stem]
        paths += [folder / f"{one}{form.ending}" for one in stems]
    return paths


def export(
    recording: Selection, names: list[str], folder: Path, stem: str, people: list[int] | None = None
) -> Iterator[Written]:
    """Write a recording in one or more formats; PoseError if a file cannot be written."""
    chosen = recording.people if people is None else people
    for name in names:
        form = FORMATS[name]
        if isinstance(form, SceneFormat):
            target = folder / f"{stem}{form.ending}"
            yield Written(target, tuple(form.write(recording, chosen, target)))
            continue
        for person in chosen:
            track = recording.track(person, recording.uniform if form.uniform else recording.timeline)
            if track is not None:
                target = folder / f"{stem}-person{person}{form.ending}"
                yield Written(target, tuple(form.write(track, target)))


def export_all(
    recording: Selection,
    names: Sequence[str],
    people: list[int],
    folder: Path,
    stem: str,
    done: Callable[[Written], None],
    warn: Callable[[str], None] = print_warning,
) -> list[str]:
    """Write a recording in one or more formats, and continue with the next format if one fails."""
    problems = []
    for name in names:
        paths = targets(recording, [name], people, folder, stem)
        lists = [path.with_name(f"{path.name}{LIST}") for path in paths]
        unsaved, saved = list[Path](), 0
        with writing([*paths, *lists], warn):
            record_files(folder, [], gone=lists)
            try:
                for written in export(recording, [name], folder, stem, people):
                    unsaved += [written.path, written.path.with_name(f"{written.path.name}{LIST}")]
                    if len(unsaved) > 2 * (saved - SAVED_EACH):
                        record_files(folder, unsaved)
                        unsaved, saved = [], saved + len(unsaved) // 2
                    done(written)
            except PoseError as error:
                problems.append(f"{name}: {error}")
    return problems


__all__ = [
    "FORMATS",
    "Selection",
    "Written",
    "check_formats",
    "export",
    "export_all",
    "is_available",
    "open_selection",
    "targets",
]
