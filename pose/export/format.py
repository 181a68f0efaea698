"""Descriptions of export formats: the end of the file name, and the function that writes the file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pose.body.tracks import Selection, Track


@dataclass(frozen=True, slots=True)
class Written:
    """A file or folder written by an export.

    Attributes:
        path: Path of the file or folder.
        notes: Notes for the summary.
    """

    path: Path
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the line of this file in the summary."""
        return f"{self.path}: {'; '.join(self.notes)}"


Notes = list[str]


@dataclass(frozen=True, slots=True)
class PersonFormat:
    """A format with one file per person.

    Attributes:
        ending: End of the file name, after the stem and the person's id.
        write: Function that writes a track to a path, and returns notes for the summary.
        uniform: Whether the format has a constant frame rate; uneven time stamps are then resampled.
        extra: Extra of this package that installs the required library; None if no extra is needed.
        modules: Python modules that the format requires.
        check: Function that raises PoseError if a required program is missing.
        options: Options of pose-convert that apply only to this and a few other formats.
    """

    ending: str
    write: Callable[[Track, Path], Notes]
    uniform: bool = True
    extra: str | None = None
    modules: tuple[str, ...] = field(default=())
    check: Callable[[], None] = lambda: None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SceneFormat:
    """A format with one file or folder for all people."""

    ending: str  # end of the file name, after the stem
    write: Callable[[Selection, list[int], Path], Notes]  # function that writes the people with the given ids to a path
    extra: str | None = None  # extra of this package that installs the required library; None if no extra is needed
    modules: tuple[str, ...] = field(default=())  # python modules that the format requires
    check: Callable[[], None] = lambda: None  # function that raises PoseError if a required program is missing
    options: tuple[str, ...] = ()  # options of pose-convert that apply only to this and a few other formats


Format = PersonFormat | SceneFormat
