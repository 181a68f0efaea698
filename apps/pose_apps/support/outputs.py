"""Where `pose-run` puts its files, checked before any work starts."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pose.errors import UsageError
from pose_apps.support.folders import made_folder

FORMATS = {"json": "poses.json", "npz": "poses.npz", "overlay": "overlay.mp4"}
UNFINISHED = "unfinished"  # the folder for what an interrupted run leaves beside an older result
GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files of one run: format -> path, all in one folder. exports: formats of `pose.export` to write from them."""

    folder: Path
    files: dict[str, Path]
    exports: tuple[str, ...] = ()

    @property
    def overlay(self) -> Path | None:
        return self.files.get("overlay")

    def check_free(self) -> None:
        """Raises UsageError when results are there already: files of two runs side by side would belong to neither."""
        for path in self._there():
            raise UsageError(f"{path} exists; give --overwrite to replace what is there, or another folder with --out")

    @contextmanager
    def ready_folder(self) -> Iterator["Outputs"]:
        """Makes the folder for the time of the work, and gives what to write: these files or, where results lie that
        stay until new ones are whole, the same in a hidden folder.

        Raises PoseError when the folder cannot be made or written.
        """
        with made_folder(self.folder):
            written = self._beside(f".new-{uuid.uuid4().hex[:8]}") if self._there() else self
            written.folder.mkdir(exist_ok=True)
            try:
                yield written
            finally:
                self.settle(written, whole=False)

    def settle(self, written: "Outputs", *, whole: bool) -> "Outputs":
        """Put what was written in the place of the old result or, where it is not whole, beside it. Returns where.

        What `ready_folder` gave without an old result is in its place already. A second call does nothing.
        """
        if written is self or not written.folder.is_dir():
            return self
        target = self if whole else self._beside(UNFINISHED)
        if whole or written._there():
            target.folder.mkdir(exist_ok=True)
            for name, place in target._all().items():
                new = written._all()[name]
                if new.exists():
                    new.replace(place)
                else:
                    place.unlink(missing_ok=True)
        with suppress(OSError):
            written.folder.rmdir()
        return target

    def _beside(self, folder: str) -> "Outputs":
        return Outputs(
            self.folder / folder, {name: self.folder / folder / path.name for name, path in self.files.items()}
        )

    def _all(self) -> dict[str, Path]:
        """Every file that a run may write into the folder."""
        return {name: self.folder / file for name, file in FORMATS.items()}

    def _there(self) -> list[Path]:
        return [path for path in self._all().values() if path.exists()]


def plan_outputs(video: str, out: str | None, formats: str, overlay: bool) -> Outputs:
    """What a run of `video` writes where. Raises UsageError for an unknown format."""
    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    exports = [name for name in wanted if name not in FORMATS]
    if exports:
        from pose.export import FORMATS as EXPORTS

        for name in exports:
            if name not in EXPORTS:
                raise UsageError(f"--formats: {name!r} is unknown; known: {', '.join([*FORMATS, *EXPORTS])}")
        wanted = [name for name in FORMATS if name in wanted or name == "npz"]  # npz: what exports are made of
    if not overlay:
        wanted = [name for name in wanted if name != "overlay"]
    if not wanted:
        raise UsageError(f"--formats: nothing to write; known: {', '.join(FORMATS)}")
    folder = default_folder(video) if out is None else Path(out)
    return Outputs(folder, {name: folder / FORMATS[name] for name in wanted}, tuple(dict.fromkeys(exports)))


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
