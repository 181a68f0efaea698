"""Descriptions of export formats, and what several formats share: folders, notes, limits on people."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

from pose.body.tracks import Selection, Track
from pose.utils.whole_file import file_errors, write_whole
from pose.utils.work_folder import work_folder
from pose.utils.written_files import WrittenFiles


@dataclass(frozen=True, slots=True)
class Written:
    """A file or folder written by an export."""

    path: Path  # path of the file or folder
    notes: tuple[str, ...] = ()  # notes for the summary

    def __str__(self) -> str:
        """Return the line of this file in the summary."""
        return f"{self.path}: {'; '.join(self.notes)}"


Notes = list[str]


@dataclass(frozen=True, slots=True)
class PersonFormat:
    """A format with one file per person."""

    ending: str  # end of the file name, after the stem and the person's id
    write: Callable[[Track, Path], Notes]  # function that writes a track to a path, and returns notes for the summary
    uniform: bool = True  # whether the format has a constant frame rate; uneven time stamps are then resampled
    extra: str | None = None  # extra of this package that installs the required library; None if no extra is needed
    modules: tuple[str, ...] = field(default=())  # python modules that the format requires
    check: Callable[[], None] = lambda: None  # function that raises PoseError if a required program is missing
    options: tuple[str, ...] = ()  # options of pose-convert that apply only to this and a few other formats


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


@contextmanager
def whole_folder(target: Path, names: Collection[str]) -> Iterator[Path]:
    """Provide an empty hidden folder to write to, and rename it to `target` at the end."""
    # An existing folder is deleted if this program wrote it and it has not been changed since (`WrittenFiles`).
    # Otherwise it is renamed.
    with work_folder(target.parent, [f"{escape(target.name)}/{name}" for name in names]) as work:
        folder = work / target.name
        with file_errors(target):
            folder.mkdir()
            yield folder
            record = WrittenFiles(target.parent)
            record.remove(target)
            record.move_user_file(target)
            folder.replace(target)


LIST = ".filled.csv"  # suffix of the file that lists filled frames, for formats that cannot mark them
FILLED = "first_frame,last_frame,first_time,last_time"


def timing(track: Track) -> str:
    """Return a note with the number of frames, their rate and the start time."""
    rate = f" at {track.rate:.6g} frames/s" if track.rate is not None else ", on their own time stamps"
    resampled = ", resampled" if track.resampled else ""
    start = f"the first at {track.times[0]:.3f} s (frame {track.first + 1} of the result)"
    return f"{len(track)} frames{rate}{resampled}, {start}"


def list_filled(track: Track, target: Path) -> list[str]:
    """Write a list of missing frames, counted from 1, beside `target` and return notes; no file without any."""
    # For formats that cannot mark missing frames, whose values are therefore interpolated.
    listed = target.with_name(f"{target.name}{LIST}")
    if not track.gaps:
        return []
    rows = [f"{a + 1},{b + 1},{track.times[a]:.6f},{track.times[b]:.6f}" for a, b in track.gaps]
    write_whole(listed, "\n".join([FILLED, *rows, ""]))
    filled = sum(b - a + 1 for a, b in track.gaps)
    return [f"{filled} missing frames are filled, listed in {listed.name}"]


def missing(track: Track) -> list[str]:
    """Return notes on missing frames, for a format that can mark them."""
    count = sum(b - a + 1 for a, b in track.gaps)
    return [f"{count} frames are missing and marked so"] if count else []


MAX_PEOPLE = 1000  # maximum per file
MAX_CHARACTERS = 100  # maximum per file of skinned meshes, 0.8 MB each


def people_with_most_frames(recording: Selection, people: list[int], max_people: int) -> tuple[list[int], list[str]]:
    """Select at most `max_people` people with the most frames, in their order, and note omitted people."""
    if len(people) <= max_people:
        return people, []
    frames = {person: len(recording.rows_of(person)) for person in people}
    chosen = set(sorted(people, key=lambda person: -frames[person])[:max_people])
    shown = [person for person in people if person in chosen]
    return shown, [f"the {len(shown)} of {len(people)} people in the most frames; --person chooses others"]
