"""Projects of the studio: one folder a clip, with the video, the first result, the edits and their history.

Only files that the studio wrote are replaced: all names in a project's folder are its own.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pose.errors import PoseError, UsageError
from pose.multiview.videos import MAX_CAMERAS
from pose.results.edits import Edit, parse_edits, to_json, write_edits
from pose.utils.json_values import check_type, read_text_file, strict_json
from pose.utils.shown import in_brief, shown
from pose.utils.whole_file import file_errors, whole_file
from pose.utils.written_files import writing

FORMAT, VERSION = "pose-studio", 1
PRESETS = {"fast": "Faster", "standard": "Standard", "best": "More accurate"}
SUFFIXES = (".mp4", ".mov", ".m4v", ".webm", ".mkv", ".avi")
QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
INCOMPLETE = "incomplete"  # videos of further cameras have not arrived
FIRST = "first"  # name of the result without edits
MAX_RESULTS = 20  # results of edits that are kept in files, besides the first
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_RESULT = re.compile(r"first|[0-9a-f]{16}")
_CAMERA = re.compile(r"camera[2-8]\.[a-z0-9]{3,4}")


class ConflictError(PoseError):
    """The edits were changed elsewhere, such as in another tab."""


@dataclass(slots=True)
class Project:
    """A clip and what was made of it."""

    folder: Path
    name: str  # name of the video as sent
    video: str  # name of the video's file in `folder`
    preset: str = "standard"
    height: float | None = None  # body height of all people, m
    state: str = QUEUED
    problem: str = ""
    steps: list[list[dict[str, Any]]] = field(default_factory=list)  # edits of each step of the history
    position: int = 0  # number of steps that are in effect
    revision: int = 0  # grows with every change of the history
    cameras: int = 1  # number of cameras that filmed the moment; `video` is that of the first one

    @property
    def id(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def clip(self) -> Path:
        """Path of the video, of the first camera."""
        return self.folder / self.video

    @property
    def clips(self) -> list[Path]:
        """Paths of the videos of all cameras that have arrived."""
        return [self.clip, *sorted(path for path in self.folder.glob("camera*.*") if _CAMERA.fullmatch(path.name))]

    @property
    def previews(self) -> list[int]:
        """Cameras, from 1 on, with a copy of their video for the page."""
        return [camera for camera in range(1, self.cameras + 1) if self.preview(camera).is_file()]

    @property
    def journal(self) -> Path:
        """Path of what the networks found in a run that is not finished."""
        return self.folder / "journal"

    def preview(self, camera: int) -> Path:
        """Return the path of the copy of a camera's video that the page plays; it may not be there."""
        return self.folder / f"preview{camera}.mp4"

    def camera(self, name: str) -> Path:
        """Return the path of the next camera's video; UsageError for a refused name or one video too many."""
        if self.state != INCOMPLETE:
            raise UsageError(f"the clip has the videos of all {self.cameras} cameras")
        return self.folder / f"camera{len(self.clips) + 1}{_suffix(name)}"

    def edits(self) -> list[Edit]:
        """Return the edits in effect."""
        entries = [entry for step in self.steps[: self.position] for entry in step]
        return parse_edits({"format": "pose-edits", "version": 1, "edits": entries})

    def result(self, name: str) -> Path:
        """Return the path of a result; UsageError if the name is none of a result."""
        if not _RESULT.fullmatch(name):
            raise UsageError(f"result: unknown name {shown(name, 40)!r}")
        return self.folder / f"{name}.npz"

    def trim_results(self, kept: str | None = None) -> None:
        """Delete the oldest results of edits beyond `MAX_RESULTS`, except the one named `kept`; None: delete all."""
        found = [path for path in self.folder.glob("*.npz") if _RESULT.fullmatch(path.stem)]
        edited = sorted((path for path in found if path.stem != FIRST), key=lambda one: one.stat().st_mtime)
        for path in found if kept is None else edited[:-MAX_RESULTS]:
            if path.stem != kept:
                path.unlink(missing_ok=True)

    def change(self, revision: int, position: int | None = None, edits: Sequence[Edit] = ()) -> None:
        """Go to a position of the history, or drop what follows the current one and append a step.

        Raises:
            ConflictError: If `revision` is not the current one.
            UsageError: If there is no such position.
        """
        if revision != self.revision:
            raise ConflictError("the edits were changed in another window; they are loaded again")
        if position is not None:
            if not 0 <= position <= len(self.steps):
                raise UsageError(f"position: expected 0 to {len(self.steps)}, got {position}")
            self.position = position
        else:
            self.steps[self.position :] = [to_json(edits)["edits"]]
            self.position += 1
        self.revision += 1
        self.save()

    def save(self) -> None:
        """Write the project, and the edits in effect to `edits.json`."""
        content = {key: value for key, value in asdict(self).items() if key != "folder"}
        with whole_file(self.folder / "project.json") as hidden:
            hidden.write_text(json.dumps({"format": FORMAT, "version": VERSION, **content}), encoding="utf-8")
        with writing([self.folder / "edits.json"]):  # a file that the user changed is kept under another name
            write_edits(self.folder / "edits.json", self.edits())

    def shown(self) -> dict[str, Any]:
        """Return what the HTTP interface says about the project."""
        return {
            "id": self.id, "name": self.name, "preset": self.preset, "height": self.height, "state": self.state,
            "problem": self.problem, "revision": self.revision, "position": self.position, "steps": len(self.steps),
            "cameras": self.cameras, "previews": self.previews, "edits": to_json(self.edits())["edits"],
            "result": result_name(self.edits()),
        }  # fmt: skip


def result_name(edits: Sequence[Edit]) -> str:
    """Return the name of the result with some edits."""
    if not edits:
        return FIRST
    return hashlib.sha256(json.dumps(to_json(edits), sort_keys=True).encode()).hexdigest()[:16]


class Projects:
    """All projects of a folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, and queue unfinished runs; PoseError if it, or a project, is damaged."""
        self.folder = folder
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._projects: dict[str, Project] = {}
        for path in sorted(folder.glob("*/project.json")):
            if _ID.fullmatch(path.parent.name):
                project = _read(path)
                if project.state == RUNNING:
                    project.state = QUEUED
                if project.state == INCOMPLETE:
                    project.state, project.problem = FAILED, "not all cameras arrived; choose their videos again"
                self._projects[project.id] = project

    def __iter__(self) -> Any:
        return iter(self._projects.values())

    def find(self, name: str) -> Project | None:
        """Return the project with an id."""
        return self._projects.get(name)

    def create(self, name: str, preset: str, height: float | None, cameras: int = 1) -> Project:
        """Make the folder of a new video, which `add` makes known; UsageError for a refused value."""
        if not 1 <= cameras <= MAX_CAMERAS:
            raise UsageError(f"cameras: expected 1 to {MAX_CAMERAS}, got {cameras}")
        suffix = _suffix(name)
        if preset not in PRESETS:
            raise UsageError(f"preset: unknown value {shown(preset, 40)!r}; known: {', '.join(PRESETS)}")
        if height is not None:
            from pose.world.given import check_heights

            check_heights({None: height})
        stem = re.sub(r"[^a-z0-9]+", "-", Path(name).stem.lower()).strip("-")[:40] or "clip"
        folder = self.folder / f"{stem}-{secrets.token_hex(3)}"
        with file_errors(folder):
            folder.mkdir()
        return Project(
            folder, name, f"clip{suffix}", preset, height, INCOMPLETE if cameras > 1 else QUEUED, cameras=cameras
        )

    def add(self, project: Project) -> None:
        """Make a project known after its video has arrived."""
        project.save()
        self._projects[project.id] = project


def link_or_copy(video: Path, target: Path) -> None:
    """Make `target` the same file as `video`, or a copy of it on another file system."""
    with file_errors(target):
        try:
            os.link(video.resolve(), target)
        except OSError:
            shutil.copyfile(video, target)


def _suffix(name: str) -> str:
    """Return the ending of a video's name, which may come from elsewhere."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES or not 0 < len(name) <= 200 or not name.isprintable() or set(name) & set("<>&/\\"):
        raise UsageError(f"{shown(name, 60)!r} is not the name of a video; known endings: {', '.join(SUFFIXES)}")
    return suffix


def _read(path: Path) -> Project:
    kinds: dict[str, Any] = {
        "name": str, "video": str, "preset": str, "height": float | None, "state": str, "problem": str,
        "steps": list[list[dict[str, Any]]], "position": int, "revision": int,
        "cameras": int,
    }  # fmt: skip
    try:
        content = strict_json(read_text_file(path))
        if isinstance(content, dict):
            content = {"cameras": 1, **content}  # an older version has none
        if not isinstance(content, Mapping) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise ValueError("not a project of this version of pose-studio")
        for key, kind in kinds.items():
            check_type(content.get(key), kind, key)
        project = Project(path.parent, **{key: content[key] for key in kinds})  # type: ignore[arg-type]
        states = (QUEUED, RUNNING, DONE, FAILED, CANCELLED, INCOMPLETE)
        known = project.preset in PRESETS and project.state in states and 1 <= project.cameras <= MAX_CAMERAS
        if not known or not re.fullmatch(r"clip\.[a-z0-9]{3,4}", project.video) or not project.name.isprintable():
            raise ValueError("contains a value that is not known")
        if not 0 <= project.position <= len(project.steps):
            raise ValueError("position: out of range")
        parse_edits({"format": "pose-edits", "version": 1, "edits": [one for step in project.steps for one in step]})
        project.edits()
        return project
    except (ValueError, TypeError, KeyError, UsageError) as error:
        raise PoseError(f"{path}: {in_brief(error)}; move the folder elsewhere to start without it") from error
