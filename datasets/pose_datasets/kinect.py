"""UI-PRMD's Kinect recordings beside the markers of the same repetitions, aligned in time and about the vertical.

Both systems were cut into repetitions separately, and some repetitions of a name are different performances. A pair is
kept if the motions agree: the correlation of the joints about the pelvis, over time, is at least `MIN_CORRELATION` at
the best offset and rotation about the vertical, no other rate of the camera fits better by `_TOLERANCE`, and the
rotation is that of the person's other pairs. These criteria use the raw recording only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from pose.body.sensors.kinect import FPS, parse_ui_prmd_kinect
from pose.errors import PoseError
from pose.structures.types import F32, F64
from pose.utils.archives import open_archive, open_arrays, write_arrays
from pose.utils.options import REQUIRED, option
from pose.utils.written_files import writing
from pose_datasets.catalogue import Log, Preparation
from pose_datasets.mocap import Clip, load_clips

MIN_CORRELATION = 0.9
MIN_FRAMES = 20
_MAX_OFFSET_S = 0.7
_OTHER_RATES = (0.95, 1.05)  # of the camera, relative to 30 Hz; a better fit shows a different performance
_TOLERANCE = 0.01  # of correlations
_MAX_TURN_RAD = np.radians(12)  # difference of the rotation from the person's median
_FILE = re.compile(r"m(\d+)_s(\d+)_e(\d+)_positions(_inc)?\.txt", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """A repetition as a depth camera and as markers saw it, in T frames at 30 Hz, in the axes of the camera."""

    subject: str
    name: str
    sensor: F32  # (T, 17, 3) m
    truth: F32  # (T, 17, 3) m; its pelvis is where the camera's is on average


@dataclass(frozen=True, slots=True)
class Alignment:
    """How the time and the heading of the markers follow from those of the camera."""

    correlation: float
    offset: float  # s of the markers at the first frame of the camera
    turn: float  # rad about the vertical, from the camera to the markers


def load_kinect(source: Path) -> Iterator[tuple[str, str, F64]]:
    """Yield subject, name as in prepared clips, and joints (T, 17, 3) m of each recording of a folder or ZIP file."""
    archives = sorted(source.glob("*kinect*.zip")) if source.is_dir() else [source]
    if not archives:
        raise PoseError(f"{source}: contains no kinect-sXX.zip")
    for archive in archives:
        with open_archive(archive) as opened:
            names = set(opened.names)
            for name in sorted(names):
                found = _FILE.fullmatch(PurePosixPath(name).name)
                angles = name.replace("positions", "angles")
                if found is None or angles not in names:
                    continue
                movement, subject, episode, incorrect = found.groups()
                texts = [opened.read(member).decode("utf-8", errors="replace") for member in (name, angles)]
                skeleton = parse_ui_prmd_kinect(texts[0], texts[1], f"{archive}/{name}")
                person = f"uiprmd-s{int(subject):02d}"
                clip = f"{person}_m{int(movement):02d}_e{int(episode):02d}{'_inc' if incorrect else ''}"
                yield person, clip, skeleton.joints


def align(sensor: F64, truth: F64, times: F64, rate: float = 1.0) -> Alignment | None:
    """Find the time and heading at which joints (T, 17, 3) of a camera agree best with joints (N, 17, 3) at times (N,).

    `rate` is relative to 30 Hz. None if the recordings do not overlap by 75 % of the shorter one.
    """
    about, reference = (joints[:, 1:] - joints[:, :1] for joints in (sensor, truth))
    step = float(times[1] - times[0])
    best: Alignment | None = None
    coarse = np.arange(-_MAX_OFFSET_S, _MAX_OFFSET_S, 1 / FPS)
    for fine in (False, True):
        if fine and best is None:
            return None
        for offset in best.offset + np.linspace(-1 / FPS, 1 / FPS, 9) if best else coarse:
            at = (np.arange(len(about)) * rate / FPS + offset) / step
            inside = (at >= 0) & (at <= len(reference) - 1)
            if inside.sum() < max(MIN_FRAMES, 0.75 * min(len(about), len(reference) * step * FPS)):
                continue
            moving = [part - part.mean(axis=0) for part in (about[inside], _between(reference, at[inside]))]
            (x, z), (u, w) = ((part[..., 0], part[..., 2]) for part in moving)
            along, across = (x * u + z * w).sum(), (z * u - x * w).sum()
            product = np.hypot(along, across) + (moving[0][..., 1] * moving[1][..., 1]).sum()
            correlation = float(product / np.sqrt((moving[0] ** 2).sum() * (moving[1] ** 2).sum()))
            if best is None or correlation > best.correlation:
                best = Alignment(correlation, float(offset), float(np.arctan2(across, along)))
    return best


def _same_performance(joints: F64, clip: Clip) -> Alignment | None:
    """Return the alignment of a recording and a clip if they show the same performance."""
    truth = clip.points[:, :17].astype(np.float64)
    best = align(joints, truth, clip.times)
    if best is None or best.correlation < MIN_CORRELATION:
        return None
    others = (align(joints, truth, clip.times, rate) for rate in _OTHER_RATES)
    better = any(other is not None and other.correlation > best.correlation + _TOLERANCE for other in others)
    return None if better else best


def _between(values: F64, at: F64) -> F64:
    """Interpolate values (N, ...) at positions (T,) from 0 to N - 1."""
    first = np.minimum(at.astype(int), len(values) - 2)
    share = (at - first).reshape(-1, *[1] * (values.ndim - 1))
    result: F64 = values[first] * (1 - share) + values[first + 1] * share
    return result


def pairs_of(recordings: Iterator[tuple[str, str, F64]], clips: list[Clip], log: Log) -> list[Pair]:
    """Return the pairs of recordings and clips of the same performances."""
    known = {clip.name: clip for clip in clips}
    found: dict[str, list[tuple[str, F64, Clip, Alignment]]] = {}
    count = 0
    for subject, name, joints in recordings:
        count += 1
        if (clip := known.get(name)) is not None and len(joints) >= MIN_FRAMES:
            fitted = _same_performance(joints, clip)
            if fitted is not None:
                found.setdefault(subject, []).append((name, joints, clip, fitted))
    pairs = []
    for subject, rows in sorted(found.items()):
        turn = float(np.median([fitted.turn for *_, fitted in rows]))
        kept = [row for row in rows if abs(row[3].turn - turn) < _MAX_TURN_RAD]
        pairs += [_pair(subject, name, joints, clip, fitted) for name, joints, clip, fitted in kept]
        log(f"{subject}: {len(kept)} pairs")
    log(f"{len(pairs)} of {count} recordings agree with their markers")
    return pairs


def _pair(subject: str, name: str, joints: F64, clip: Clip, fitted: Alignment) -> Pair:
    at = (np.arange(len(joints)) / FPS + fitted.offset) * (len(clip.times) - 1) / (clip.times[-1] - clip.times[0])
    inside = (at >= 0) & (at <= len(clip.times) - 1)
    truth = _between(clip.points[:, :17].astype(np.float64), at[inside])
    cosine, sine = np.cos(fitted.turn), np.sin(fitted.turn)
    truth = truth @ np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])
    sensor = joints[inside]
    truth += (sensor[:, 0] - truth[:, 0]).mean(axis=0)
    return Pair(subject, name, sensor.astype(np.float32), truth.astype(np.float32))


def save_pairs(pairs: list[Pair], path: Path) -> None:
    """Write pairs to one NPZ file atomically."""
    arrays = {
        "subject": np.array([pair.subject for pair in pairs]),
        "name": np.array([pair.name for pair in pairs]),
        "length": np.array([len(pair.sensor) for pair in pairs]),
        "sensor": np.concatenate([pair.sensor for pair in pairs]),
        "truth": np.concatenate([pair.truth for pair in pairs]),
    }
    with writing([path]):
        write_arrays(path, arrays)


def load_pairs(path: Path) -> list[Pair]:
    """Read a file written by `save_pairs`; PoseError if it is missing or not such a file."""
    try:
        with open_arrays(path) as arrays:
            length = arrays["length"].astype(np.int64)
            sensor, truth = arrays["sensor"], arrays["truth"]
            if sensor.shape != truth.shape or sensor.shape != (length.sum(), 17, 3) or not np.isfinite(truth).all():
                raise ValueError("the joints do not match the lengths")
            parts = [np.split(joints.astype(np.float32), np.cumsum(length)[:-1]) for joints in (sensor, truth)]
            rows = zip(arrays["subject"], arrays["name"], *parts, strict=True)
            return [Pair(str(subject), str(name), *joints) for subject, name, *joints in rows]
    except (PoseError, KeyError, ValueError, TypeError) as error:
        raise PoseError(f"{path}: not a file of pairs; make one with `pose-prepare ui-prmd-kinect`") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class KinectPreparation(Preparation):
    """Options of `pose-prepare ui-prmd-kinect`, which aligns Kinect recordings with clips of the same repetitions."""

    source: str = option(REQUIRED, "a folder with kinect-sXX.zip of UI-PRMD, or one of them")
    clips: str = option(REQUIRED, "the clips of UI-PRMD, written by `pose-prepare ui-prmd`", metavar="FILE")
    out: str = option(REQUIRED, "file of pairs to write", metavar="FILE")

    def prepare(self, log: Log) -> None:
        """Write the pairs, and report them by calling `log`."""
        pairs = pairs_of(load_kinect(Path(self.source)), load_clips(Path(self.clips)), log)
        if not pairs:
            raise PoseError(f"{self.source}: no recording agrees with the markers of its repetition")
        save_pairs(pairs, Path(self.out))
