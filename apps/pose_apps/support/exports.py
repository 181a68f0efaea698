"""What `pose-run` writes beyond its own files: the formats of `pose.export`, once poses.npz is whole."""

from pathlib import Path

from pose.errors import UsageError
from pose.export import FORMATS, check_formats, export, open_recording

STEM = "poses"


def check_exports(names: list[str], folder: Path, *, overwrite: bool) -> None:
    """Raises UsageError where files of such formats are there already, PoseError where a library is missing."""
    check_formats(names, "--formats")
    there = _earlier(names, folder)
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists; give --overwrite to replace what is there, or another folder with --out")


def write_exports(names: list[str], folder: Path, video: str, space: str | None = None) -> tuple[list[Path], list[str]]:
    """Write every format from the folder's poses.npz, in place of earlier ones. Raises PoseError.

    space: as of `pose.export.Recording`.

    Returns the files, and the lines that say what to know of each.
    """
    source = Path(video)
    recording = open_recording(folder / f"{STEM}.npz", video=source if source.is_file() else None, space=space)
    old = set(_earlier(names, folder))
    made = list(export(recording, names, folder, STEM))
    files = [written.path for written in made]
    for path in old - set(files):  # of people whom this run does not have
        if path.is_file():
            path.unlink()
    return files, [f"space: {recording.space.note}", *map(str, made)]


def _earlier(names: list[str], folder: Path) -> list[Path]:
    endings = [FORMATS[name].ending for name in names]
    patterns = [f"{STEM}{ending}" for ending in endings] + [f"{STEM}-person*{ending}" for ending in endings]
    return sorted(path for pattern in patterns for path in folder.glob(pattern)) if folder.is_dir() else []
