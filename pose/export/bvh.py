"""BVH: a skeleton with one motion, for Blender, MotionBuilder, Maya, Unreal and others.

Degrees and centimetres (custom: the file cannot say). R = Rz Rx Ry. The root's offset is 0 because readers disagree
whether its position channels replace the offset or add to it. Source of the rules: the importers of Blender and
three.js; Meredith and Maddock, Motion Capture File Formats Explained, 2001.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, PersonFormat
from pose.export.motions import Bones
from pose.export.rotations import unwrapped_euler
from pose.export.skeleton import LEAVES, NAMES, PARENTS, Body
from pose.export.text import list_filled, timing
from pose.export.tracks import Track
from pose.system.whole_file import whole_file

CENTIMETRES = 100.0


def write(track: Track, target: Path) -> Notes:
    assert track.rate is not None, "BVH has one rate"
    bones = Bones(track)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        head = ("HIERARCHY", *_joint(bones.body, 0, 0), "MOTION", f"Frames: {len(track)}")
        file.write("\n".join((*head, f"Frame Time: {1 / track.rate:.9f}\n")).encode("ascii"))
        previous = None
        for _, motion in bones.spans():
            angles = unwrapped_euler(motion.turns, "zxy", previous)
            previous = angles[-1]
            degrees = np.degrees(angles).reshape(len(angles), -1)
            rows = np.concatenate([CENTIMETRES * motion.root, degrees], axis=1)
            first, others = number(rows[:, 0], 4), number(rows[:, 1:], 4, prefix=" ")
            file.write(text(joined(first, row(others), "\n")))
    return [
        f"{timing(track)}; centimetres",
        bones.distance_note(),
        *list_filled(track, target),
    ]


def _joint(body: Body, joint: int, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{'JOINT' if joint else 'ROOT'} {NAMES[joint]}"
    yield f"{indent}{{"
    yield f"{indent}  OFFSET {_offset(body.offsets[joint])}"
    position = "" if joint else "Xposition Yposition Zposition "
    yield f"{indent}  CHANNELS {3 if joint else 6} {position}Zrotation Xrotation Yrotation"
    for child in (child for child, parent in enumerate(PARENTS) if parent == joint):
        yield from _joint(body, child, depth + 1)
    if joint in LEAVES:
        yield f"{indent}  End Site"
        yield f"{indent}  {{"
        yield f"{indent}    OFFSET {_offset(body.tips[joint])}"
        yield f"{indent}  }}"
    yield f"{indent}}}"


def _offset(metres: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in (CENTIMETRES * metres + 0.0).tolist())


FORMAT = PersonFormat(".bvh", write)
