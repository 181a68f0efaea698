"""UI-PRMD: rehabilitation exercises of ten people with optical markers, as published.

Vakanski, Jun, Paul, Baker: A Data Set of Human Body Movements for Physical Rehabilitation Exercises, Data 3(1):2, 2018.
Files are named `mXX_sYY_eZZ_positions.txt`, or `..._inc.txt` for exercises performed incorrectly. Each row is one frame
at 100 Hz: x, y and z in mm (z up) of 39 Plug-in-Gait markers, separated by commas or spaces. A marker that was not
detected has zeros.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.archives import open_archive
from pose.utils.options import REQUIRED, option
from pose.utils.point_rows import parse_point_rows
from pose_datasets.catalogue import CLIPS_FILE, Log, Preparation
from pose_datasets.marker_files import MarkerTrial, marker_clips, require_person
from pose_datasets.markers import MARKERS
from pose_datasets.mocap import Clip, prepare_clips

FPS = 100.0
_FILE = re.compile(r"m(\d+)_s(\d+)_e(\d+)_positions(_inc)?\.txt", re.IGNORECASE)
MAX_DISTANCE_MM = 1e5  # from the origin


def load_ui_prmd(source: Path, log: Log = lambda line: None) -> list[Clip]:
    """Load all recordings of UI-PRMD in or below a folder or ZIP file as clips, named "uiprmd-s01" and so on."""
    # The Kinect half of the data set, whose files have the same names in folders or archives "kinect...", is ignored.
    trials: dict[str, MarkerTrial] = {}
    for folder, name, text in _texts(source):
        movement, subject, episode, incorrect = _FILE.fullmatch(PurePosixPath(name).name).groups()  # type: ignore[union-attr]
        person = f"uiprmd-s{int(subject):02d}"
        trial = f"{person}_m{int(movement):02d}_e{int(episode):02d}{'_inc' if incorrect else ''}"
        if trial in trials:
            raise PoseError(f"{folder}/{name}: duplicate trial; keep one copy of the data")
        markers = parse_positions(text, f"{folder}/{name}")
        require_person(markers, f"{folder}/{name}")
        trials[trial] = MarkerTrial(person, trial, markers, FPS)
    if not trials:
        raise PoseError(
            f"{source}: contains neither Vicon files of UI-PRMD (mXX_sYY_eZZ_positions.txt) nor a ZIP file of them"
        )
    clips = marker_clips([trials[name] for name in sorted(trials)], log)
    if not clips:
        raise PoseError(f"{source}: no recording contains enough markers for joint centres")
    return clips


def _texts(source: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield (folder or ZIP file, file name within it, content) for each position file."""
    if source.is_dir():
        files = sorted(file for file in source.rglob("*") if file.is_file())
        for file in files:
            name = file.relative_to(source).as_posix()
            if _wanted(name):
                yield source, name, file.read_text(encoding="utf-8", errors="replace")
        names = [file.relative_to(source) for file in files if file.suffix.lower() == ".zip"]
        archives = [source / name for name in names if not _is_kinect(name)]
    else:
        archives = [source]
    for archive in archives:
        with open_archive(archive) as opened:
            for name in sorted(filter(_wanted, opened.names)):
                yield archive, name, opened.read(name).decode("utf-8", errors="replace")


def _wanted(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(_FILE.fullmatch(path.name)) and not _is_kinect(path)


def _is_kinect(path: PurePath) -> bool:
    return "kinect" in str(path).lower()


def parse_positions(text: str, source: str) -> F64:
    """Parse markers (T, 39, 3) m: y up, people face z, left is x; NaN where not detected."""
    rows = parse_point_rows(text, len(MARKERS), "markers", source)
    if (np.abs(rows[np.isfinite(rows)]) > MAX_DISTANCE_MM).any():
        raise PoseError(f"{source}: markers beyond {MAX_DISTANCE_MM:g}; expected mm")
    markers = rows[..., [1, 2, 0]] / 1000
    markers[(markers == 0).all(axis=-1) | ~np.isfinite(markers).all(axis=-1)] = np.nan
    return markers


@dataclass(frozen=True, slots=True, kw_only=True)
class UiPrmdPreparation(Preparation):
    """Options of `pose-prepare ui-prmd`, which converts the exercises of UI-PRMD to clips."""

    source: str = option(REQUIRED, "a folder or .zip with the files mXX_sYY_eZZ_positions.txt")
    out: str = option(REQUIRED, CLIPS_FILE, metavar="FILE")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        log(prepare_clips(load_ui_prmd(Path(self.source), log), Path(self.out)))
