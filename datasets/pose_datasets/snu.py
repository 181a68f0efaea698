"""Motion of the Movement Research Lab of Seoul National University, from its public repositories: sport and walks.

There are four groups, each a ZIP file or folder of BVH files at 30 Hz. Points and world frame are those of
`pose_datasets.mapping`. The first frame of each file, often a T-pose, is dropped.

| group | what | skeleton |
|---|---|---|
| `vsports` | basketball; `s_SESSION_SCENE_PERSON.bvh`, the people of a scene in one world at the same time | A |
| `cmu-69` | walks of CMU subject 69 on the body of `vsports` | A |
| `woody` | one actor: table tennis, boxing, pushes, jumps, walks | B, in inches or cm |
| `woody-walks` | the same actor: walks with turns, on slopes | B |

| point | A | B |
|---|---|---|
| hips, knees, ankles | UpLeg, Leg, Foot | same |
| shoulders, elbows, wrists | Arm, ForeArm, Hand | same |
| pelvis | middle of the hips | same |
| spine | Spine1 | Spine |
| thorax | middle of the collar bones' roots | Spine1, 3 cm towards Spine |
| base of the skull | 3 cm above Head, along the head | same |
| neck / nose, head, nose, ears | in the frame of the head, as in `mapping` | same |

Relative to mid-shoulders and the top of the head, thorax and skull have the same positions as in the CMU skeletons.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.options import REQUIRED, option
from pose_datasets import bvh, rotations
from pose_datasets.catalogue import CLIPS_FILE, Log, Preparation
from pose_datasets.mapping import assemble_points
from pose_datasets.mocap import Clip, MotionFiles, calibrate_limbs, prepare_clips, trial_clips
from pose_datasets.vectors import norm

_LIMBS = {
    "hip": "upleg", "knee": "leg", "ankle": "foot", "shoulder": "arm", "elbow": "forearm", "wrist": "hand",
}  # fmt: skip
_SIDES = ("left", "right")
_MAX_LEG_INCHES = 60.0
_INCH = 0.0254
_SKULL = 0.03  # base of the skull above the head joint, m


@dataclass(frozen=True, slots=True)
class _Group:
    """Properties of a group of recordings."""

    subject: str  # subject of the clips
    head: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    pitch: float = 0.0  # upward pitch correction of the head, degrees


_ALONG_X = ((0, 1, 0), (0, 0, 1), (1, 0, 0))  # skeleton A: x along the bone, z to the left
_UPRIGHT = ((1, 0, 0), (0, 1, 0), (0, 0, 1))  # skeleton B: the axes of the world in a T-pose

GROUPS = {
    "vsports": _Group("snu-vsports", _ALONG_X),
    "cmu-69": _Group("snu-cmu69", _ALONG_X, pitch=20.0),
    "woody": _Group("snu-woody", _UPRIGHT),
    "woody-walks": _Group("snu-woody", _UPRIGHT),
}

_OTHER_PERSON = re.compile(r"boxing_round_round_girl")  # two files in `woody`


def load_snu(source: Path, calibrated: bool = True) -> list[Clip]:
    """Load the motion of Seoul National University as clips."""
    clips: list[Clip] = []
    for name, group in GROUPS.items():
        for folder in (source / f"{name}.zip", source / name):
            if folder.exists():
                clips += [clip for trial in read_group(folder, group) for clip in trial_clips(*trial)]
                break
    if not clips:
        raise PoseError(f"{source}: none of {', '.join(f'{name}.zip' for name in GROUPS)}, nor folders of these names")
    return calibrate_limbs(clips) if calibrated else clips


def read_group(folder: Path, group: _Group) -> Iterator[tuple[str, str, F64, float]]:
    """Yield subject, recording, points (T, 19, 3) m in the world and frames/s of a group's .bvh files."""
    with closing(MotionFiles(folder)) as files:
        for name in files.names:
            path = PurePosixPath(name)
            if path.suffix.lower() != ".bvh":
                continue
            source = f"{folder}/{name}"
            motion = bvh.parse_bvh(files.read(name), source)
            subject = "snu-girl" if _OTHER_PERSON.match(path.name) else group.subject
            yield subject, f"{subject}/{path.parent.name}/{path.stem}", snu_points(motion, group, source), motion.fps


def snu_points(motion: bvh.BvhMotion, group: _Group, source: str) -> F64:
    """Return points (T, 19, 3) m (world, y up) of a recording without its first frame, which is often a T-pose."""
    positions, turns = bvh.forward_kinematics(motion)
    names = [name.lower() for name in motion.names]

    def index(name: str) -> int:
        if name not in names:
            raise PoseError(f"{source}: the skeleton has no {name!r}; expected one of the groups {', '.join(GROUPS)}")
        return names.index(name)

    metres = _unit(motion, index("leftleg"), index("leftfoot"))
    positions, turns = positions[1:] * metres, turns[1:]

    def at(name: str) -> F64:
        return positions[:, index(name)]

    points = {f"{side}_{role}": at(f"{side}{bone}") for side in _SIDES for role, bone in _LIMBS.items()}
    if "spine2" in names:
        points["spine"], points["thorax"] = at("spine1"), (at("leftshoulder") + at("rightshoulder")) / 2
    else:
        points["spine"], points["thorax"] = at("spine"), _towards(at("spine1"), at("spine"), 0.03)
    level = np.array(group.head, float) @ rotations.about_axis("x", np.radians(-group.pitch))
    head = turns[:, index("head")] @ level
    return assemble_points(points, at("head") + _SKULL * head[..., 1], head, 1.0)


def _unit(motion: bvh.BvhMotion, knee: int, ankle: int) -> float:
    """Return the metres per unit of a file from a leg of about 80 (centimetres) or 34 (inches) units."""
    leg = sum(float(np.linalg.norm(motion.offsets[joint])) for joint in (knee, ankle))
    return 0.01 if leg > _MAX_LEG_INCHES else _INCH


def _towards(start: F64, end: F64, metres: float) -> F64:
    """Return the points (T, 3) at a distance of `metres` from `start` in the direction of `end`."""
    way = end - start
    return start + metres * way / norm(way)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnuPreparation(Preparation):
    """Options of `pose-prepare snu`, which converts sport and walks of Seoul National University to clips."""

    source: str = option(
        REQUIRED, "the folder with vsports.zip, woody.zip, woody-walks.zip and cmu-69.zip, or some of them"
    )
    out: str = option(REQUIRED, CLIPS_FILE, metavar="FILE")
    calibrate: bool = option(True, "correct limb lengths so that limbs of standing people are straight")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        log(prepare_clips(load_snu(Path(self.source), self.calibrate), Path(self.out)))
