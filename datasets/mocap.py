"""Motion capture as clips of the points we train on, whatever format it came in.

Points: the 17 Human3.6M joints, then the nose and the midpoint of the ears, which detectors see and Human3.6M does not
have. World frame: metres, y up, floor near y = 0.

| point | ASF/AMC (far ends of bones) | BVH for MotionBuilder | BVH for Daz |
|---|---|---|---|
| pelvis | mid of the hips | same | same |
| hips, knees, ankles | hipjoint, femur, tibia | UpLeg, Leg, Foot (or Hip, Knee, Ankle) | Thigh, Shin, Foot |
| spine: mid-trunk | 0.8 lowerback + 0.2 upperback | 0.8 Spine + 0.2 Spine1 | mid of abdomen and chest |
| thorax: where collar bones and neck meet | mid of thorax and lowerneck | mid of collars and Neck1 | same |
| shoulders, elbows, wrists | clavicle, humerus, wrist | Arm, ForeArm, Hand (drawn out) | Shldr, ForeArm, Hand |
| neck / nose, head, nose, ears | in the frame of the head | same | same |

The head is rigid: its four points have fixed places in the frame of the head bone (`HEAD_POINTS`), scaled with it.
"""

import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from datasets import asf_amc, bvh
from pose.errors import PoseError
from pose.skeletons import H36M_NAMES
from pose.types import F32

F64 = NDArray[np.float64]

POINTS = (*H36M_NAMES, "nose", "ears")
NOSE, EARS = 17, 18

# Where points of the head lie from the base of the skull, metres of an adult whose head bone (base of the skull to the
# middle of the head in the CMU skeletons) is 0.0875 m: x to the left, y up, z forward.
HEAD_BONE = 0.0875
HEAD_POINTS = {
    "neck": (0.0, 0.015, 0.03),
    "head": (0.0, 0.13, 0.0),
    "nose": (0.0, 0.035, 0.115),
    "ears": (0.0, 0.05, 0.01),
}

TEST_SUBJECTS = ("08", "12", "16", "35", "60")
VALIDATION_SUBJECTS = ("07", "39")

FPS = 60.0  # of the clips; motion has next to nothing above 30 Hz that is not marker noise
_MAX_SPEED = 13.0  # m/s; a point that is faster was lost by the cameras
_MIN_SECONDS = 0.5
_SIDES = ("left", "right")
_UNITS = (1.0, 0.01, 0.001, asf_amc.INCH, asf_amc.INCH / 0.45)


@dataclass(frozen=True, slots=True)
class Clip:
    """One uninterrupted piece of motion.

    subject: as the database numbers it, such as "07". name: of the trial, "07_01", with "/2" and so on for the later
    pieces of one that was cut. points: (T, 19, 3) m, `POINTS` in the world frame. times: (T,) s from the trial's start.
    """

    subject: str
    name: str
    points: F32
    times: F64


def split(clips: list[Clip], part: str) -> list[Clip]:
    """The clips of "train", "validation" or "test"; whole subjects, so that no body is in two parts."""
    subjects = {"test": TEST_SUBJECTS, "validation": VALIDATION_SUBJECTS}
    if part == "train":
        held_out = {*TEST_SUBJECTS, *VALIDATION_SUBJECTS}
        return [clip for clip in clips if clip.subject not in held_out]
    if part not in subjects:
        raise ValueError(f"part: expected train, validation or test, got {part!r}")
    return [clip for clip in clips if clip.subject in subjects[part]]


def asf_points(skeleton: asf_amc.AsfSkeleton, motion: dict[str, F64], source: str) -> F64:
    """(T, 19, 3) m from an ASF skeleton of the CMU kind and an AMC motion. Raises PoseError for another skeleton."""
    ends, turns = asf_amc.forward_kinematics(skeleton, motion)
    index = _finder(skeleton.names, source)

    def end(name: str) -> F64:
        return ends[:, index(name)]

    points = {
        "spine": 0.8 * end("lowerback") + 0.2 * end("upperback"),
        "thorax": (end("thorax") + end("lowerneck")) / 2,
    }
    for side in _SIDES:
        points |= {f"{side}_{joint}": end(side[0] + bone) for joint, bone in _ASF_LIMBS.items()}
    size = float(np.linalg.norm(skeleton.offsets[index("head")])) / HEAD_BONE
    return _assemble(points, end("upperneck"), turns[:, index("head")], size)


_ASF_LIMBS = {
    "hip": "hipjoint", "knee": "femur", "ankle": "tibia", "shoulder": "clavicle", "elbow": "humerus", "wrist": "wrist",
}  # fmt: skip


def bvh_points(motion: bvh.BvhMotion, source: str) -> F64:
    """(T, 19, 3) m from a BVH conversion of the CMU database. Raises PoseError for a skeleton of another kind."""
    style = next((style for style in _BVH_STYLES if set(style.values()) <= set(motion.names)), None)
    if style is None:
        raise PoseError(f"{source}: the joint names are not those of a known conversion of the CMU database")
    index = {role: motion.names.index(name) for role, name in style.items()}
    if "left_radius" in index:
        motion = _restore_lost_bones(motion, index)
    positions, turns = bvh.forward_kinematics(motion)
    metres = _unit(motion, index)
    positions = positions * metres

    def at(role: str) -> F64:
        return positions[:, index[role]]

    share = 0.2 if "left_radius" in index else 0.5
    points = {role: at(role) for role in style if role.split("_")[-1] in _ASF_LIMBS}
    if "left_radius" in index:  # the wrist bone, lost as well, goes on straight for half the radius
        points |= {f"{side}_wrist": 1.5 * at(f"{side}_radius") - 0.5 * at(f"{side}_elbow") for side in _SIDES}
    points["spine"] = (1 - share) * at("lower_spine") + share * at("upper_spine")
    points["thorax"] = (at("left_collar") + at("right_collar") + 2 * at("neck")) / 4
    # Skeletons of the CMU kind split the neck and head into three bones of one length; the Daz figure is an adult.
    size = float(np.linalg.norm(motion.offsets[index["head"]])) * metres / HEAD_BONE if share == 0.2 else 1.0
    return _assemble(points, at("head"), turns[:, index["head"]], size)


def _style(limbs: dict[str, str], middle: dict[str, str], sides: tuple[str, str]) -> dict[str, str]:
    return middle | {
        f"{side}_{role}": joint.format(prefix)
        for side, prefix in zip(("left", "right"), sides, strict=True)
        for role, joint in limbs.items()
    }


# Role -> joint in the conversions that circulate: two for MotionBuilder, and one for the figure of Daz Studio.
_BVH_STYLES = (
    _style(
        {
            "hip": "{}UpLeg", "knee": "{}Leg", "ankle": "{}Foot", "collar": "{}Shoulder", "shoulder": "{}Arm",
            "elbow": "{}ForeArm", "radius": "{}Hand",
        },
        {"lower_spine": "Spine", "upper_spine": "Spine1", "neck_root": "Neck", "neck": "Neck1", "head": "Head"},
        ("Left", "Right"),
    ),
    _style(
        {
            "hip": "{}Hip", "knee": "{}Knee", "ankle": "{}Ankle", "collar": "{}Collar", "shoulder": "{}Shoulder",
            "elbow": "{}Elbow", "radius": "{}Wrist",
        },
        {
            "lower_spine": "Chest", "upper_spine": "Chest2", "neck_root": "lowerneck", "neck": "Neck", "head": "Head",
        },
        ("Left", "Right"),
    ),
    _style(
        {
            "hip": "{}Thigh", "knee": "{}Shin", "ankle": "{}Foot", "collar": "{}Collar", "shoulder": "{}Shldr",
            "elbow": "{}ForeArm", "wrist": "{}Hand",
        },
        {"lower_spine": "abdomen", "upper_spine": "chest", "neck": "neck", "head": "head"},
        ("l", "r"),
    ),
)  # fmt: skip


def _restore_lost_bones(motion: bvh.BvhMotion, index: dict[str, int]) -> bvh.BvhMotion:
    """The MotionBuilder conversions lose the length of every bone that has several children: the thorax and the wrists.

    In the original skeletons the thorax is as long as the upper back and goes on in its direction, and the wrist bone
    is half as long as the radius and in line with it (subjects 35 and 131 are there in both formats to check).
    """
    offsets = motion.offsets.copy()
    for role in ("neck_root", "left_collar", "right_collar"):
        offsets[index[role]] = motion.offsets[index["upper_spine"]]
    return replace(motion, offsets=offsets)


def _unit(motion: bvh.BvhMotion, index: dict[str, int]) -> float:
    """Metres of one unit: of those in use, the one that brings the person nearest to 1.6 m from ankle to head."""
    height = 0.0
    for role in ("left_ankle", "head"):
        joint = index[role]
        while joint > 0:
            height += float(np.linalg.norm(motion.offsets[joint]))
            joint = motion.parents[joint]
    return min(_UNITS, key=lambda unit: abs(math.log(unit * height / 1.6)))


def _finder(names: tuple[str, ...], source: str) -> Callable[[str], int]:
    def find(name: str) -> int:
        if name not in names:
            raise PoseError(f"{source}: the skeleton has no {name!r}; expected one of the CMU database")
        return names.index(name)

    return find


def _assemble(points: dict[str, F64], skull: F64, head_turn: F64, head_size: float) -> F64:
    points = points | {name: skull + head_turn @ (np.array(place) * head_size) for name, place in HEAD_POINTS.items()}
    points["pelvis"] = (points["left_hip"] + points["right_hip"]) / 2
    return np.stack([points[name] for name in POINTS], axis=1)


def clean(points: F64, times: F64) -> list[tuple[F64, F64]]:
    """Cut (T, 19, 3) where a point moves faster than 13 m/s, and keep the pieces of at least half a second."""
    speed = np.linalg.norm(np.diff(points, axis=0), axis=-1).max(axis=-1) / np.diff(times)
    cuts = [0, *(np.flatnonzero(speed > _MAX_SPEED) + 1), len(points)]
    pieces = [(points[a:b], times[a:b]) for a, b in pairwise(cuts)]
    return [(p, t) for p, t in pieces if len(t) > 1 and t[-1] - t[0] >= _MIN_SECONDS]


def decimate(points: F64, times: F64, fps: float = FPS) -> tuple[F64, F64]:
    """Bring (T, J, 3) at a constant rate down to about `fps`, without aliasing (windowed-sinc low pass).

    The rate is divided by a whole number, the nearest; slower input stays as it is.
    """
    rate = (len(times) - 1) / (times[-1] - times[0])
    factor = max(1, round(rate / fps))
    if factor == 1:
        return points, times
    reach = 4 * factor
    n = np.arange(-reach, reach + 1)
    kernel = np.sinc(n / factor) * np.hanning(2 * reach + 3)[1:-1]
    kernel /= kernel.sum()
    # Point reflection at the ends keeps position and speed there.
    first, last = points[:1], points[-1:]
    reach = min(reach, len(points) - 1)
    kernel = kernel[len(kernel) // 2 - reach : len(kernel) // 2 + reach + 1]
    padded = np.concatenate([2 * first - points[reach:0:-1], points, 2 * last - points[-2 : -reach - 2 : -1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=0)[::factor]
    return windows @ kernel, times[::factor]


def read_trials(source: Path) -> Iterator[tuple[str, str, F64, float]]:
    """All trials below a folder: (subject, trial, points (T, 19, 3) m, frames a second).

    The folder holds one sub-folder or ZIP file for each subject, as the CMU database publishes them. Raises PoseError
    when there is none, or for a broken file.
    """
    folders = (
        sorted(path for path in source.iterdir() if path.suffix == ".zip" or path.is_dir()) if source.is_dir() else []
    )
    found = False
    for folder in folders:
        for trial in _read_subject(folder):
            found = True
            yield trial
    if not found:
        raise PoseError(f"{source}: no .amc or .bvh files in its sub-folders or ZIP files")


def _read_subject(folder: Path) -> Iterator[tuple[str, str, F64, float]]:
    with _opened(folder) as files:
        skeletons = {PurePosixPath(name).stem: name for name in files.names if name.lower().endswith(".asf")}
        for name in files.names:
            trial, kind = PurePosixPath(name).stem, PurePosixPath(name).suffix.lower()
            subject = trial.split("_")[0]
            source = f"{folder}/{name}"
            if kind == ".amc":
                # A trial with a skeleton of its own does not use the subject's.
                if (stem := trial if trial in skeletons else subject) not in skeletons:
                    raise PoseError(f"{source}: no skeleton {subject}.asf or {trial}.asf beside it")
                skeleton = asf_amc.parse_asf(files.read(skeletons[stem]), f"{folder}/{skeletons[stem]}")
                motion = asf_amc.parse_amc(files.read(name), skeleton, source)
                yield subject, trial, asf_points(skeleton, motion, source), asf_amc.FPS
            elif kind == ".bvh":
                figure = bvh.parse_bvh(files.read(name), source)
                # The conversions begin with one frame of rest pose.
                yield subject, trial, bvh_points(figure, source)[1:], figure.fps


class _Files:
    """The files of a folder or ZIP, by name. A ZIP is read in memory: nothing is unpacked."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path) if path.suffix == ".zip" else None
        self._path = path
        if self._zip:
            self.names = sorted(self._zip.namelist())
        else:
            self.names = sorted(str(file.relative_to(path)) for file in path.rglob("*.*") if file.is_file())

    def read(self, name: str) -> str:
        data = self._zip.read(name) if self._zip else (self._path / name).read_bytes()
        return data.decode("utf-8", errors="replace")

    def close(self) -> None:
        if self._zip:
            self._zip.close()


def _opened(path: Path) -> "closing[_Files]":
    try:
        return closing(_Files(path))
    except zipfile.BadZipFile as error:
        raise PoseError(f"{path}: not a ZIP file") from error


def load_source(source: Path) -> list[Clip]:
    """Read, clean and bring to about 60 Hz every trial below `source` (see `read_trials`)."""
    clips = []
    for subject, trial, points, fps in read_trials(source):
        pieces = clean(points, np.arange(len(points)) / fps)
        for i, (piece, times) in enumerate(pieces, start=1):
            piece, times = decimate(piece, times)
            clips.append(Clip(subject, trial if i == 1 else f"{trial}/{i}", piece.astype(np.float32), times))
    return clips


def save_clips(clips: list[Clip], path: Path) -> None:
    """Write clips to one NPZ file without pickles, through a temporary name."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(
                file,
                subject=np.array([clip.subject for clip in clips]),
                name=np.array([clip.name for clip in clips]),
                length=np.array([len(clip.times) for clip in clips]),
                points=np.concatenate([clip.points for clip in clips]),
                times=np.concatenate([clip.times for clip in clips]),
            )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_clips(path: Path) -> list[Clip]:
    """Read what `save_clips` wrote. Raises PoseError when the file is not there or of another kind."""
    try:
        with np.load(path, allow_pickle=False) as file:
            ends = np.cumsum(file["length"])
            points = np.split(file["points"], ends[:-1])
            times = np.split(file["times"], ends[:-1])
            return [
                Clip(str(s), str(n), p, t)
                for s, n, p, t in zip(file["subject"], file["name"], points, times, strict=True)
            ]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise PoseError(f"{path}: not a motion file; make one with `pose-prepare mocap`") from error


def prepare_mocap(source: Path, out: Path) -> str:
    """Make the cache `out` from the database in `source`; returns a line that says what is in it."""
    clips = load_source(source)
    save_clips(clips, out)
    seconds = sum(clip.times[-1] - clip.times[0] for clip in clips)
    subjects = len({clip.subject for clip in clips})
    return f"{out}: {len(clips)} clips, {subjects} subjects, {seconds / 60:.1f} minutes"
