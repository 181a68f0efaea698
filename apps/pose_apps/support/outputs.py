"""Where `pose-run` puts its files, checked before any work starts."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pose.errors import PoseError, UsageError

FORMATS = {"json": "poses.json", "npz": "poses.npz", "overlay": "overlay.mp4"}
GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files of one run: format -> path, all in one folder."""

    folder: Path
    files: dict[str, Path]

    @property
    def overlay(self) -> Path | None:
        return self.files.get("overlay")

    def check_free(self) -> None:
        """Raises UsageError when a file of this run is there already."""
        for path in self.files.values():
            if path.exists():
                raise UsageError(f"{path} exists; give --overwrite to replace it, or another folder with --out")

    @contextmanager
    def ready_folder(self) -> Iterator[None]:
        """Makes the folder for the time of the work; one that was made for nothing is removed again.

        Raises PoseError when it cannot be made or written.
        """
        made = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise PoseError(f"{self.folder}: is not a folder; name another with --out") from error
        except OSError as error:
            raise PoseError(f"{self.folder}: cannot be made ({error.strerror}); name another with --out") from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PoseError(f"{self.folder}: cannot be written; name another with --out")
        try:
            yield
        finally:
            with suppress(OSError):  # not empty: somebody's results are in it
                for folder in made:
                    folder.rmdir()


def plan_outputs(video: str, out: str | None, formats: str, overlay: bool) -> Outputs:
    """What a run of `video` writes where. Raises UsageError for an unknown format."""
    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    for name in wanted:
        if name not in FORMATS:
            raise UsageError(f"--formats: {name!r} is unknown; known: {', '.join(FORMATS)}")
    if not overlay:
        wanted = [name for name in wanted if name != "overlay"]
    if not wanted:
        raise UsageError(f"--formats: nothing to write; known: {', '.join(FORMATS)}")
    folder = default_folder(video) if out is None else Path(out)
    return Outputs(folder, {name: folder / FORMATS[name] for name in wanted})


def default_folder(video: str) -> Path:
    """Beside the video and named after it; in the working folder for what lies in no folder."""
    path = Path(video)
    if path.is_dir():
        path = path.resolve()
        return path.with_name(f"{path.name}-poses")
    if "://" in video and not path.exists():
        parts = urlsplit(video)
        return Path(f"{Path(parts.path).stem or parts.hostname or 'stream'}-poses")
    if video.isdigit() and not path.exists():
        return Path(f"camera{video}-poses")
    if not path.exists() and GLOB_CHARACTERS & set(video):
        fixed = next(folder for folder in path.parents if not GLOB_CHARACTERS & set(str(folder))).resolve()
        return fixed.with_name(f"{fixed.name}-poses")
    return path.with_suffix("") if path.suffix else path.with_name(f"{path.name}-poses")
