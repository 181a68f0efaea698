"""Readers of optical markers in C3D or TRC files, for the full-body Plug-in-Gait set, and their clips.

The formats are documented in the user guide of c3d.org and on OpenSim's page on marker files (.trc). The package `c3d`
reads C3D files.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.options import REQUIRED, option
from pose_datasets.catalogue import CLIPS_FILE, Log, Preparation
from pose_datasets.markers import MARKERS, UNUSED, joint_centres, plausibility, rigid_bones
from pose_datasets.mocap import Clip, prepare_clips, trial_clips
from pose_datasets.vectors import norm

_PLAUSIBLE_LEG_RANGE_M = (0.35, 1.3)  # distance from ASI to ankle
_MAX_GAP_S = 0.1  # longer gaps are not interpolated
_MAX_PLACEMENT_CHANGE_M = 0.008  # distances of head markers vary by less than 1 mm within one placement

# Rigid groups of markers: missing ones are reconstructed from at least three others.
_RIGID_GROUPS = (
    ("LFHD", "RFHD", "LBHD", "RBHD"),
    ("LASI", "RASI", "LPSI", "RPSI"),
    ("C7", "T10", "CLAV", "STRN", "RBAK"),
)


@dataclass(frozen=True, slots=True)
class MarkerTrial:
    """One recording of the markers of a person."""

    subject: str  # name of the subject, such as "uiprmd-s01"
    name: str  # name of the recording
    markers: F64  # (T, 39, 3) m, y up, in the order of `markers.MARKERS`, NaN where not detected
    fps: float  # frame rate, frames/s


def marker_clips(trials: Sequence[MarkerTrial], log: Callable[[str], None] = lambda line: None) -> list[Clip]:
    """Return the joint centres of recordings, cut at gaps of more than 0.1 s, as clips in their order."""
    placements: list[list[MarkerTrial]] = []
    for trial in trials:
        placement = next((p for p in placements if _same_placement(p[0], trial)), None)
        if placement is None:
            placements.append(placement := [])
        placement.append(trial)
    points: dict[int, F64] = {}
    for placement in placements:
        whole = fill_rigid(np.concatenate([trial.markers for trial in placement]))
        ends = np.cumsum([len(trial.markers) for trial in placement])
        filled = [bridge(p, t.fps) for p, t in zip(np.split(whole, ends[:-1]), placement, strict=True)]
        whole = np.concatenate(filled)
        centres = joint_centres(whole, rigid=False)
        if np.isfinite(centres).any():
            log(f"{placement[0].subject}, {len(placement)} recordings: {plausibility(whole, centres)}")
            centres = rigid_bones(centres)
        points |= {id(trial): p for trial, p in zip(placement, np.split(centres, ends[:-1]), strict=True)}
    return [clip for t in trials for clip in trial_clips(t.subject, t.name, points[id(t)], t.fps)]


def require_person(markers: F64, source: str) -> None:
    """Check that the leg lengths between markers (T, 39, 3) m are plausible for a person."""
    hip, knee, ankle = (markers[:, MARKERS.index(name)] for name in ("LASI", "LKNE", "LANK"))
    legs = norm(hip - knee) + norm(knee - ankle)
    legs = legs[np.isfinite(legs)]
    if len(legs) and not _PLAUSIBLE_LEG_RANGE_M[0] < (leg := float(np.median(legs))) < _PLAUSIBLE_LEG_RANGE_M[1]:
        raise PoseError(f"{source}: the distance of LASI and LANK is {leg:.3g} m; check the unit and the marker names")


def _same_placement(a: MarkerTrial, b: MarkerTrial) -> bool:
    if a.subject != b.subject:
        return False
    changes = []
    for front, back in (("LFHD", "LBHD"), ("RFHD", "RBHD")):
        i, j = MARKERS.index(front), MARKERS.index(back)
        depths = [norm(t.markers[:, i] - t.markers[:, j]) for t in (a, b)]
        seen = [depth[np.isfinite(depth)] for depth in depths]
        if all(len(depth) for depth in seen):
            changes.append(abs(np.median(seen[0]) - np.median(seen[1])))
    return not changes or max(changes) < _MAX_PLACEMENT_CHANGE_M


def fill_rigid(markers: F64) -> F64:
    """Return markers (T, 39, 3) m with missing ones of head, pelvis and trunk reconstructed from their segment."""
    # The shape of a segment is its mean shape in complete frames. Reconstruction needs at least three other markers;
    # without, markers stay NaN.
    markers = markers.copy()
    for names in _RIGID_GROUPS:
        index = [i for i in map(MARKERS.index, names) if np.isfinite(markers[:, i]).any()]
        if len(index) < 4:
            continue
        segment = markers[:, index]
        seen = np.asarray(np.isfinite(segment).all(axis=-1))
        complete = np.asarray(seen.all(axis=1))
        if not complete.any():
            continue
        shape = _mean_shape(segment[complete])
        for pattern in np.unique(seen[~complete & (seen.sum(axis=1) >= 3)], axis=0):
            frames = np.flatnonzero((seen == pattern).all(axis=1))
            turn, place = _fit(shape[pattern], segment[frames][:, pattern])
            placed = shape @ np.swapaxes(turn, -1, -2) + place[:, None]
            for k in np.flatnonzero(~pattern):
                markers[frames, index[k]] = placed[:, k]
    return markers


def _mean_shape(segment: F64) -> F64:
    """Compute the mean shape (n, 3) m of one segment (T, n, 3) m after alignment of the frames."""
    shape = segment[0] - segment[0].mean(axis=0)
    for _ in range(2):
        turn, place = _fit(shape, segment)
        shape = ((segment - place[:, None]) @ turn).mean(axis=0)
    result: F64 = shape
    return result


def _fit(shape: F64, segment: F64) -> tuple[F64, F64]:
    """Fit `shape` (n, 3) to `segment` (T, n, 3) by rotations (T, 3, 3) and translations (T, 3) (Kabsch)."""
    centre, place = shape.mean(axis=0), segment.mean(axis=1)
    u, _, vt = np.linalg.svd(np.swapaxes(segment - place[:, None], -1, -2) @ (shape - centre))
    sign = np.ones((len(u), 1, 3))
    sign[:, 0, 2] = np.linalg.det(u @ vt)
    turn = (u * sign) @ vt
    return turn, place - turn @ centre


def bridge(markers: F64, fps: float) -> F64:
    """Interpolate gaps of markers (T, 39, 3) m of up to 0.1 s, but not at the ends."""
    markers = markers.copy()
    for points in np.swapaxes(markers, 0, 1):
        seen = np.flatnonzero(np.isfinite(points).all(axis=-1))
        for before in np.flatnonzero((np.diff(seen) > 1) & (np.diff(seen) <= _MAX_GAP_S * fps + 1)):
            first, last = seen[before], seen[before + 1]
            share = (np.arange(first + 1, last) - first)[:, None] / (last - first)
            points[first + 1 : last] = (1 - share) * points[first] + share * points[last]
    return markers


_METRES_PER_UNIT = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048}
_MAX_DISTANCE_M = 1000.0  # from the origin
_TRC_HEADER = 5  # lines: file type, names of values, values, names of markers, names of coordinates


@dataclass(frozen=True, slots=True)
class MarkerRecording:
    """Recording of optical markers."""

    names: Sequence[str]  # names of the N markers
    positions: F64  # (T, N, 3) m, positions in T frames, in the axes of the file; NaN where not detected
    fps: float  # frame rate, frames/s


def load_markers(source: Path, log: Log = lambda line: None) -> list[Clip]:
    """Load all .c3d and .trc files of a file or folder as clips."""
    # Each sub-folder contains one person, and so do the files in the folder itself. A file with markers named like
    # "Anna:LASI" may contain several people. Subjects are named "markers-" and the name of the folder or file. The
    # vertical axis is the one on which heads are farthest above ankles.
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    trials: dict[str, MarkerTrial] = {}
    for path in (path for path in files if path.suffix.lower() in _READERS):
        recording = _READERS[path.suffix.lower()](path)
        place = path.parent.relative_to(source).parts or (source.resolve().name,) if path != source else (path.stem,)
        person = "-".join(("markers", *place))
        for prefix, markers in _people(recording, path):
            subject = f"{person}-{prefix}" if prefix else person
            name = f"{subject}_{path.stem}"
            if name in trials:
                raise PoseError(f"{path}: a recording of this name exists in another format; keep one of them")
            trials[name] = MarkerTrial(subject, name, markers, recording.fps)
    if not trials:
        raise PoseError(f"{source}: no .c3d or .trc file")
    clips = marker_clips(_upright(list(trials.values()), source), log)
    if not clips:
        raise PoseError(f"{source}: no interval of 0.5 s contains all required markers")
    return clips


def read_c3d(path: Path) -> MarkerRecording:
    """Read the markers of a C3D file."""
    try:
        import c3d
    except ImportError as error:
        raise PoseError("reading C3D files needs c3d: pip install 'pose-run[markers]'") from error
    try:
        # The reader warns of problems checked below, and of analog channels, which are not used.
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            reader = c3d.Reader(file)
            names = [name.strip() for name in reader.point_labels][: reader.point_used]
            unit = reader.get("POINT:UNITS")
            unit = unit.string_value.strip() if unit else "mm"  # C3D's default
            fps = float(reader.point_rate)
            frames = [points[: len(names), :4] for _, points, _ in reader.read_frames()] if names else []
            expected = reader.last_frame - reader.first_frame + 1
    except Exception as error:  # the reader can raise any exception for invalid files
        raise PoseError(f"{path}: not a readable C3D file ({type(error).__name__}: {error})".splitlines()[0]) from error
    if len(frames) < expected:
        raise PoseError(f"{path}: the file ends after {len(frames)} of {expected} frames")
    positions = np.array(frames, dtype=float).reshape(len(frames), len(names), 4)
    positions[positions[..., 3] < 0] = np.nan  # a negative residual means not detected
    return _recording(names, positions[..., :3], unit, fps, path)


def read_trc(path: Path) -> MarkerRecording:
    """Read the markers of a TRC file."""
    lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    if len(lines) <= _TRC_HEADER or not lines[0].startswith("PathFileType"):
        raise PoseError(f"{path}: not a TRC file (expected a header of five lines that begins with PathFileType)")
    header = dict(zip(lines[1].split(), lines[2].split(), strict=False))
    try:
        fps = float(header["DataRate"])
        unit = header["Units"]
    except (KeyError, ValueError) as error:
        raise PoseError(f"{path}: lines 2 and 3 contain no DataRate and Units") from error
    names = [name for field in lines[3].split("\t")[2:] if (name := field.strip())]
    rows = [
        _trc_row(line, len(names), f"{path}, line {number}")
        for number, line in enumerate(lines[_TRC_HEADER:], start=_TRC_HEADER + 1)
        if line.strip()
    ]
    return _recording(names, np.array(rows, dtype=float).reshape(len(rows), len(names), 3), unit, fps, path)


def _trc_row(line: str, markers: int, where: str) -> list[float]:
    """Parse the coordinates of one frame. Empty fields are missing markers and become NaN."""
    fields = line.split("\t") if "\t" in line else line.split()
    fields = [field.strip() for field in fields[2:]]
    while len(fields) > 3 * markers and not fields[-1]:
        fields.pop()
    fields += [""] * (3 * markers - len(fields)) if "\t" in line else []
    if len(fields) != 3 * markers:
        raise PoseError(f"{where}: {len(fields)} coordinates; expected {3 * markers}, of {markers} markers")
    try:
        return [float(field or "nan") for field in fields]
    except ValueError as error:
        raise PoseError(f"{where}: {error}") from error


def _recording(names: list[str], positions: F64, unit: str, fps: float, path: Path) -> MarkerRecording:
    if unit.lower() not in _METRES_PER_UNIT:
        raise PoseError(f"{path}: unknown unit {unit!r}; expected one of {', '.join(_METRES_PER_UNIT)}")
    if not 1 <= fps <= 10_000:
        raise PoseError(f"{path}: frame rate {fps:g}; expected 1 to 10000 frames/s")
    positions = positions * _METRES_PER_UNIT[unit.lower()]
    positions[~np.isfinite(positions).all(axis=-1) | (positions == 0).all(axis=-1)] = np.nan
    if np.nanmax(np.abs(positions), initial=0) > _MAX_DISTANCE_M:
        raise PoseError(f"{path}: markers lie more than {_MAX_DISTANCE_M:g} m from the origin; is {unit} the unit?")
    return MarkerRecording(names, positions, fps)


_READERS = {".c3d": read_c3d, ".trc": read_trc}


def _people(recording: MarkerRecording, path: Path) -> Iterator[tuple[str, F64]]:
    """Yield (prefix, markers (T, 39, 3) m) of each person in a recording. The prefix is empty for a single person."""
    places: dict[str, dict[str, int]] = {}
    for i, label in enumerate(recording.names):
        prefix, _, name = label.rpartition(":")
        if name in MARKERS:
            places.setdefault(prefix, {}).setdefault(name, i)
    for i, label in enumerate(recording.names):
        prefix, _, name = label.rpartition(":")
        if name == "SACR" and prefix in places and not {"LPSI", "RPSI"} & set(places[prefix]):
            places[prefix] |= {"LPSI": i, "RPSI": i}
    needed = [name for name in MARKERS if name not in UNUSED]
    complete = {prefix: found for prefix, found in places.items() if set(needed) <= set(found)}
    if not complete:
        best = max(places.values(), key=len, default={})
        missing = [name for name in needed if name not in best]
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise PoseError(
            f"{path}: missing markers {shown}; expected the full-body Plug-in-Gait set (docs/guides/markers.md)"
        )
    for prefix, found in complete.items():
        markers = np.full((len(recording.positions), len(MARKERS), 3), np.nan)
        markers[:, [MARKERS.index(name) for name in found]] = recording.positions[:, list(found.values())]
        if found["LPSI"] == found["RPSI"]:
            _part_psi(markers)
        require_person(markers, str(path))
        yield (prefix if len(complete) > 1 else ""), markers


def _part_psi(markers: F64) -> None:
    """Move LPSI and RPSI 10 cm apart along RASI to LASI, in place, where both have the position of SACR."""
    left, right = (MARKERS.index(name) for name in ("LPSI", "RPSI"))
    across = markers[:, MARKERS.index("LASI")] - markers[:, MARKERS.index("RASI")]
    half = 0.05 * across / norm(across)[:, None]
    markers[:, left] += half
    markers[:, right] -= half


def _upright(trials: list[MarkerTrial], source: Path) -> list[MarkerTrial]:
    """Rotate trials so that y is up: the axis on which heads are on average farthest above ankles, over all trials."""
    heads = [MARKERS.index(name) for name in ("LFHD", "RFHD", "LBHD", "RBHD")]
    ankles = [MARKERS.index(name) for name in ("LANK", "RANK")]
    rise = np.concatenate([t.markers[:, heads].mean(axis=1) - t.markers[:, ankles].mean(axis=1) for t in trials])
    rise = rise[np.isfinite(rise).all(axis=-1)]
    if not len(rise):
        raise PoseError(f"{source}: no frame contains head and ankles")
    mean = rise.mean(axis=0)
    axis = int(np.argmax(np.abs(mean)))
    if abs(mean[axis]) < 0.8 * norm(mean) or abs(mean[axis]) < 0.3:
        raise PoseError(f"{source}: cannot determine the vertical axis; add a recording of a standing person")
    order, signs = np.roll([0, 1, 2], 1 - axis), np.array([1, 1, 1] if mean[axis] > 0 else [1, -1, -1])
    return [replace(trial, markers=trial.markers[..., order] * signs) for trial in trials]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerPreparation(Preparation):
    """Options of `pose-prepare markers`, which converts recordings of optical markers to clips."""

    source: str = option(REQUIRED, "a .c3d or .trc file, or a folder with one sub-folder per person")
    out: str = option(REQUIRED, CLIPS_FILE, metavar="FILE")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        log(prepare_clips(load_markers(Path(self.source), log), Path(self.out)))
