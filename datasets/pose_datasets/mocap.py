"""Motion capture clips: reading of databases, cleaning, resampling, storage in one file, and the split by body.

Clips contain the 19 points of `pose_datasets.mapping`. They are in a world frame: metres, y up, floor near y = 0.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path, PurePosixPath

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F32, F64, Array
from pose.utils.archives import open_archive, open_arrays, write_arrays
from pose.utils.options import REQUIRED, option
from pose.utils.written_files import writing
from pose_datasets import asf_amc, bvh, limbs
from pose_datasets.bodies import to_bones
from pose_datasets.catalogue import CLIPS_FILE, Log, Preparation
from pose_datasets.mapping import POINTS, asf_points, bvh_points
from pose_datasets.vectors import norm

# Split by body: no body of one part is in another. CMU subjects 06, 07, 12, 13, 60 and 94 have recordings on one common
# figure (`bodies_in_several_parts` finds such cases), so they are all in the training data.
TEST_SUBJECTS = ("08", "16", "35", "uiprmd-s09", "uiprmd-s10", "snu-woody")
VALIDATION_SUBJECTS = ("05", "09", "17", "39", "131", "135", "uiprmd-s07", "snu-girl")
_BODY_TOLERANCE_M = 5e-4  # equal bones of two recordings differ by less

FPS = 60.0  # rate of the clips; above 30 Hz there is mostly marker noise
_MAX_SPEED_M_S = 13.0  # m/s; faster points are tracking errors
_MIN_DURATION_S = 0.5


@dataclass(frozen=True, slots=True)
class Clip:
    """One uninterrupted piece of motion."""

    subject: str  # number of the subject in the database, such as "07", or a name such as "uiprmd-s01"
    # Name of the recording, such as "07_01". If it was cut, names of later pieces end in "/2", "/3", and so on.
    name: str
    points: F32  # (T, 19, 3) m, points in the order of `pose_datasets.mapping.POINTS`, in a world frame with y up
    times: F64  # (T,) s from the start of the recording


def split(clips: list[Clip], part: str) -> list[Clip]:
    """Return the clips of the subjects of `part`: "train", "validation" or "test"; else ValueError."""
    if part not in ("train", "validation", "test"):
        raise ValueError(f"part: expected train, validation or test, got {part!r}")
    return [clip for clip in clips if _part_of(clip.subject) == part]


def _part_of(subject: str) -> str:
    if subject in TEST_SUBJECTS:
        return "test"
    return "validation" if subject in VALIDATION_SUBJECTS else "train"


def laboratory(subject: str) -> str:
    """Return the laboratory that recorded a subject: "cmu" for a number, otherwise the name's prefix, such as "snu"."""
    return "cmu" if subject.isdigit() else subject.partition("-")[0]


def bodies_in_several_parts(clips: list[Clip]) -> list[tuple[str, str]]:
    """Return pairs of subjects in different parts with equal bone lengths, of clips that are not calibrated."""
    tables = {clip.subject: np.empty((0, len(_RIGID))) for clip in clips}
    for clip in clips:
        tables[clip.subject] = np.vstack([tables[clip.subject], _bone_lengths(clip)])
    return [
        (one, other)
        for one, other in combinations(sorted(tables), 2)
        if _part_of(one) != _part_of(other)
        and (np.abs(tables[one][:, None] - tables[other]).max(axis=-1) < _BODY_TOLERANCE_M).any()
    ]


_RIGID = (2, 3, 5, 6, 12, 13, 15, 16)  # thighs, shanks, upper arms and forearms


def _bone_lengths(clip: Clip) -> F64:
    """Return the median lengths of the rigid bones, m."""
    result: F64 = np.median(norm(to_bones(clip.points)[:, _RIGID]), axis=0).astype(np.float64)
    return result


def clean(points: F64, times: F64) -> list[tuple[F64, F64]]:
    """Cut motion (T, 19, 3) m at NaN or speeds over 13 m/s; return points and times of pieces of half a second."""
    speed = np.linalg.norm(np.diff(points, axis=0), axis=-1).max(axis=-1) / np.diff(times)
    cuts = [0, *(np.flatnonzero(~(speed <= _MAX_SPEED_M_S)) + 1), len(points)]
    pieces = [(points[a:b], times[a:b]) for a, b in pairwise(cuts)]
    return [(p, t) for p, t in pieces if len(t) > 1 and t[-1] - t[0] >= _MIN_DURATION_S]


def decimate(points: F64, times: F64, fps: float = FPS) -> tuple[F64, F64]:
    """Reduce the constant frame rate of points (T, J, 3) to about `fps` without aliasing; return them and times."""
    # The rate is divided by the integer nearest to rate / `fps`. If this integer is below 2, the motion is unchanged.
    rate = (len(times) - 1) / (times[-1] - times[0])
    factor = max(1, round(rate / fps))
    if factor == 1:
        return points, times
    reach = min(4 * factor, len(points) - 1)
    n = np.arange(-reach, reach + 1)
    kernel = np.sinc(n / factor) * np.hanning(2 * reach + 3)[1:-1]
    kernel /= kernel.sum()
    # Point reflection keeps position and velocity at the ends.
    first, last = points[:1], points[-1:]
    padded = np.concatenate([2 * first - points[reach:0:-1], points, 2 * last - points[-2 : -reach - 2 : -1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=0)[::factor]
    return windows @ kernel, times[::factor]


def read_trials(source: Path) -> Iterator[tuple[str, str, F64, float]]:
    """Yield subject, recording, points (T, 19, 3) m in the world and frames/s of a database's folders or ZIP files."""
    entries = sorted(source.iterdir()) if source.is_dir() else []
    found = False
    for folder in (path for path in entries if path.suffix == ".zip" or path.is_dir()):
        for trial in read_subject(folder):
            found = True
            yield trial
    if not found:
        raise PoseError(f"{source}: no .amc or .bvh files in its sub-folders or ZIP files")


def read_subject(folder: Path) -> Iterator[tuple[str, str, F64, float]]:
    """Yield subject, recording, points (T, 19, 3) m in the world and frames/s of a subject's .amc or .bvh files."""
    with closing(MotionFiles(folder)) as files:
        skeletons = {PurePosixPath(name).stem: name for name in files.names if name.lower().endswith(".asf")}
        for name in files.names:
            trial, kind = PurePosixPath(name).stem, PurePosixPath(name).suffix.lower()
            subject = trial.split("_")[0]
            source = f"{folder}/{name}"
            if kind == ".amc":
                # A trial's own skeleton has precedence over the subject's.
                if (stem := trial if trial in skeletons else subject) not in skeletons:
                    raise PoseError(f"{source}: no skeleton {subject}.asf or {trial}.asf beside it")
                skeleton = asf_amc.parse_asf(files.read(skeletons[stem]), f"{folder}/{skeletons[stem]}")
                motion = asf_amc.parse_amc(files.read(name), skeleton, source)
                yield subject, trial, asf_points(skeleton, motion, source), asf_amc.FPS
            elif kind == ".bvh":
                figure = bvh.parse_bvh(files.read(name), source)
                # The conversions start with one frame of rest pose.
                yield subject, trial, bvh_points(figure, source)[1:], figure.fps


class MotionFiles:
    """Text files in a folder or ZIP archive. ZIP members are read into memory."""

    def __init__(self, path: Path) -> None:
        self._opened = ExitStack()
        self._path = path
        self._zip = self._opened.enter_context(open_archive(path)) if path.suffix == ".zip" else None
        if self._zip:
            self.names = sorted(self._zip.names)
        else:
            self.names = sorted(str(file.relative_to(path)) for file in path.rglob("*.*") if file.is_file())

    def read(self, name: str) -> str:
        """Return the content of a file, decoded as UTF-8. `name` is one of `names`."""
        data = self._zip.read(name) if self._zip else (self._path / name).read_bytes()
        return data.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Close the archive."""
        self._opened.close()


def load_source(source: Path, calibrated: bool = True) -> list[Clip]:
    """Read all recordings of a database, and return clips of valid motion at about 60 Hz."""
    clips = [clip for trial in read_trials(source) for clip in trial_clips(*trial)]
    return calibrate_limbs(clips) if calibrated else clips


def trial_clips(subject: str, trial: str, points: F64, fps: float) -> list[Clip]:
    """Cut a recording (T, 19, 3) m at NaN frames, and return the pieces as clips at about 60 Hz."""
    clips = []
    for i, (piece, times) in enumerate(clean(points, np.arange(len(points)) / fps), start=1):
        piece, times = decimate(piece, times)
        clips.append(Clip(subject, trial if i == 1 else f"{trial}/{i}", piece.astype(np.float32), times))
    return clips


def calibrate_limbs(clips: list[Clip]) -> list[Clip]:
    """Correct the lengths of arms and legs of each subject, so that standing people have straight knees."""
    points = [clip.points for clip in clips]
    for subject in {clip.subject for clip in clips}:
        rows = [i for i, clip in enumerate(clips) if clip.subject == subject]
        for i, moved in zip(rows, limbs.calibrate([clips[i].points for i in rows]), strict=True):
            points[i] = moved.astype(np.float32)
    return [replace(clip, points=moved) for clip, moved in zip(clips, points, strict=True)]


def save_clips(clips: list[Clip], path: Path) -> None:
    """Write clips to one NPZ file atomically, without pickles."""
    arrays = {
        "subject": np.array([clip.subject for clip in clips]),
        "name": np.array([clip.name for clip in clips]),
        "length": np.array([len(clip.times) for clip in clips]),
        "points": np.concatenate([clip.points for clip in clips]),
        "times": np.concatenate([clip.times for clip in clips]),
    }
    with writing([path]):
        write_arrays(path, arrays)


def load_clips(path: Path) -> list[Clip]:
    """Read a file written by `save_clips`; PoseError if the file is missing or is not a motion file."""
    try:
        with open_arrays(path) as arrays:
            clips = _split_clips(arrays)
    except (PoseError, KeyError, ValueError, TypeError) as error:
        why = "" if isinstance(error, KeyError) else f" ({str(error).removeprefix(f'{path}: ')})"
        raise PoseError(f"{path}: not a motion file{why}; make one with `pose-prepare mocap` or `ui-prmd`") from error
    return clips


def _split_clips(arrays: Mapping[str, Array]) -> list[Clip]:
    """Split the arrays of a motion file into clips."""
    lengths, points, times = arrays["length"].astype(np.int64), arrays["points"], arrays["times"]
    ends = np.cumsum(lengths)
    if points.shape != (len(times), len(POINTS), 3) or points.dtype.kind != "f" or times.dtype.kind != "f":
        raise ValueError(f"expected points (T, {len(POINTS)}, 3) and times (T,), got {points.shape} and {times.shape}")
    if len(ends) == 0 or (lengths < 1).any() or ends[-1] != len(times):
        raise ValueError("the clip lengths do not match the points")
    if not (np.isfinite(points).all() and np.isfinite(times).all()):
        raise ValueError("contains NaN or infinity")
    clips = [
        Clip(str(subject), str(name), places.astype(np.float32), seconds.astype(np.float64))
        for subject, name, places, seconds in zip(
            arrays["subject"], arrays["name"], np.split(points, ends[:-1]), np.split(times, ends[:-1]), strict=True
        )
    ]
    if not all((np.diff(clip.times) > 0).all() for clip in clips):
        raise ValueError("its times do not increase")
    return clips


def prepare_clips(clips: list[Clip], out: Path) -> str:
    """Write clips to the file `out`, and return a summary line."""
    save_clips(clips, out)
    seconds = sum(clip.times[-1] - clip.times[0] for clip in clips)
    subjects = len({clip.subject for clip in clips})
    return f"{out}: {len(clips)} clips, {subjects} subjects, {seconds / 60:.1f} minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MocapPreparation(Preparation):
    """Options of `pose-prepare mocap`, which converts ASF/AMC or BVH motion capture to clips."""

    source: str = option(REQUIRED, "a folder with a sub-folder or .zip of ASF/AMC or BVH files for each subject")
    out: str = option(REQUIRED, CLIPS_FILE, metavar="FILE")
    calibrate: bool = option(
        True, "correct the recorded limb lengths so that the limbs of standing people are straight"
    )

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        log(prepare_clips(load_source(Path(self.source), self.calibrate), Path(self.out)))
