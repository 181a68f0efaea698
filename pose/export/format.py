"""What every export format is: a name for its file, and a function that writes it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pose.export.tracks import Recording, Track


@dataclass(frozen=True, slots=True)
class Written:
    """One file, or folder, that an export made. notes: what its reader must know, for the summary."""

    path: Path
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Its line of a summary."""
        return f"{self.path}: {'; '.join(self.notes)}"


Notes = list[str]


@dataclass(frozen=True, slots=True)
class PersonFormat:
    """One file a person. ending: after the stem and the person. write: makes the file and says what there is to know.

    uniform: it has one rate, so uneven time stamps are resampled. extra: of the distribution that brings its library.
    check: raises PoseError where a program that it needs is missing.
    """

    ending: str
    write: Callable[[Track, Path], Notes]
    uniform: bool = True
    extra: str | None = None
    modules: tuple[str, ...] = field(default=())
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class SceneFormat:
    """One file, or folder, for everybody; else as `PersonFormat`."""

    ending: str
    write: Callable[[Recording, list[int], Path], Notes]
    extra: str | None = None
    modules: tuple[str, ...] = field(default=())
    check: Callable[[], None] = lambda: None


Format = PersonFormat | SceneFormat
