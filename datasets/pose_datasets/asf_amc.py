"""Acclaim ASF skeletons and AMC motion, as published by the CMU Graphics Lab Motion Capture Database.

A bone rotates about its own axes, the columns of a matrix C. Its global rotation is P @ C @ M @ C^-1, with the rotation
P of the parent and the rotation M of its degrees of freedom. In the rest pose, the far end of a bone is at
`length * direction` from the far end of its parent.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose_datasets import rotations

INCH = 0.0254
_FRAME_NUMBER = re.compile(r"^[ \t]*\d+[ \t\r]*$", re.MULTILINE)
MAX_BONES = 1000  # maximum bones of a skeleton
MAX_VALUE = 1e6  # maximum value of a length, position or angle, in any unit
FPS = 120.0  # sampling rate of the CMU database; AMC files do not contain it


@dataclass(frozen=True, slots=True)
class AsfSkeleton:
    """Bones of an ASF file. The root is first, and each bone comes after its parent."""

    names: tuple[str, ...]  # names of the B bones
    parents: tuple[int, ...]  # (B,) indices of the parent bones; -1 for the root
    # (B, 3) m, vector from the far end of the parent to the far end of the bone, in the rest pose and in the world
    # frame of the file
    offsets: F64
    # (B, 3, 3) rotation matrices. The columns are the axes about which a bone rotates, in the rest pose and in the
    # world frame of the file: x_world = axes @ x_bone.
    axes: F64
    orders: tuple[str, ...]  # order of the rotations of each bone about its fixed axes, such as "xyz": first about x
    # degrees of freedom of each bone in the order of the AMC values, such as ("rx", "rz")
    dofs: tuple[tuple[str, ...], ...]
    metres: float  # metres per unit of the root translation in AMC files


@dataclass
class _Bone:
    direction: tuple[float, ...] = (0.0, 0.0, 0.0)
    length: float = 0.0
    axis: tuple[float, ...] = (0.0, 0.0, 0.0)
    order: str = "xyz"
    dof: tuple[str, ...] = ()


def parse_asf(text: str, source: str) -> AsfSkeleton:
    """Parse the text of an ASF file."""
    section = ""
    bones: dict[str, _Bone] = {"root": _Bone(dof=("tx", "ty", "tz", "rx", "ry", "rz"))}
    bone, name = _Bone(), ""
    parents: dict[str, str] = {}
    unit, radians = 1.0, False
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            section = words[0][1:]
            continue
        try:
            if section == "units":
                unit = _unit(words[1]) if words[0] == "length" else unit
                radians = radians or words[:2] == ["angle", "rad"]
            elif section == "root":
                _root_field(bones["root"], words)
            elif section == "bonedata":
                if words[0] == "begin":
                    bone, name = _Bone(), ""
                elif words[0] == "name":
                    name = words[1]
                elif words[0] == "end":
                    if name in ("", "root"):
                        raise ValueError(f"invalid bone name {name!r}")
                    if len(bones) == MAX_BONES:
                        raise ValueError(f"more than {MAX_BONES} bones")
                    bones[name] = bone
                else:
                    _bone_field(bone, words)
            elif section == "hierarchy" and words[0] not in ("begin", "end"):
                for child in words:
                    if child not in bones:
                        raise ValueError(f"unknown bone {child!r}")
                if "root" in words[1:]:
                    raise ValueError("the root is the child of another bone")
                parents.update(dict.fromkeys(words[1:], words[0]))
        except (ValueError, IndexError) as error:
            raise PoseError(f"{source}, line {number}: {error or 'not understood'}: {line.strip()[:60]!r}") from error
    if not parents:
        raise PoseError(f"{source}: no :hierarchy section; is this an ASF skeleton?")
    return _assemble(bones, parents, INCH / unit, radians, source)


def _unit(word: str) -> float:
    unit = _number(word)
    if not unit > 1e-9:
        raise ValueError("expected a unit of length above 0")
    return unit


def _number(word: str) -> float:
    value = float(word)
    if not abs(value) <= MAX_VALUE:
        raise ValueError(f"{word[:20]} is not a number up to {MAX_VALUE:g}")
    return value


def _triple(words: list[str]) -> tuple[float, ...]:
    if len(words) < 3:
        raise ValueError("expected three numbers")
    return tuple(map(_number, words[:3]))


def _order(word: str) -> str:
    if sorted(word.lower()) != ["x", "y", "z"]:
        raise ValueError("expected a permutation of x, y and z")
    return word.lower()


def _dof(words: list[str]) -> tuple[str, ...]:
    found = tuple(word.lower() for word in words)
    if not {"tx", "ty", "tz", "rx", "ry", "rz", "l"}.issuperset(found) or len(set(found)) != len(found):
        raise ValueError("expected degrees of freedom out of tx, ty, tz, rx, ry, rz and l, each once")
    return found


def _root_field(root: _Bone, words: list[str]) -> None:
    if words[0] == "order":
        root.dof = _dof(words[1:])
        if not {"tx", "ty", "tz"}.issubset(root.dof):
            raise ValueError("the root needs tx, ty and tz")
    elif words[0] == "axis":
        root.order = _order(words[1])
    elif words[0] == "orientation":
        root.axis = _triple(words[1:])


def _bone_field(bone: _Bone, words: list[str]) -> None:
    if words[0] == "direction":
        bone.direction = _triple(words[1:])
    elif words[0] == "length":
        bone.length = _number(words[1])
    elif words[0] == "axis":
        bone.axis = _triple(words[1:])
        bone.order = _order(words[4]) if len(words) > 4 else "xyz"
    elif words[0] == "dof":
        bone.dof = _dof(words[1:])


def _assemble(
    bones: dict[str, _Bone], parents: dict[str, str], metres: float, radians: bool, source: str
) -> AsfSkeleton:
    names = ["root"]
    for name in names:  # grows during the loop: breadth first, so parents precede children
        names += [child for child, parent in parents.items() if parent == name]
    if missing := set(bones) - set(names):
        raise PoseError(f"{source}: bones outside the hierarchy: {', '.join(sorted(missing))}")
    ordered = [bones[name] for name in names]
    degree = 1.0 if radians else math.pi / 180
    axes = [
        rotations.intrinsic(bone.order[::-1], np.array(bone.axis)[_columns(bone.order)] * degree) for bone in ordered
    ]
    return AsfSkeleton(
        names=tuple(names),
        parents=tuple(names.index(parents[name]) if name != "root" else -1 for name in names),
        offsets=np.array([bone.direction for bone in ordered]) * np.array([[bone.length] for bone in ordered]) * metres,
        axes=np.array(axes),
        orders=tuple(bone.order for bone in ordered),
        dofs=tuple(bone.dof for bone in ordered),
        metres=metres,
    )


def _columns(order: str) -> list[int]:
    """Return the indices of angles in an (x, y, z) triple, in intrinsic order: the reverse of the fixed-axis order."""
    return ["xyz".index(axis) for axis in order[::-1]]


def parse_amc(text: str, skeleton: AsfSkeleton, source: str) -> dict[str, F64]:
    """Parse the text of an AMC file: arrays (T, D) of the bones' `dofs` by name, degrees and file units."""
    # Every frame must list the same bones in the same order, as in all published files.
    frame_numbers = _FRAME_NUMBER.finditer(text)
    first, second = next(frame_numbers, None), next(frame_numbers, None)
    if first is None:
        raise PoseError(f"{source}: no frame numbers; is this an AMC motion file?")
    tokens = text[first.start() :].split()
    lines = text[first.end() : second.start() if second else None].splitlines()
    layout = [(words[0], len(words) - 1) for words in map(str.split, lines) if words]
    _check_layout(layout, skeleton, source)
    if "root" not in dict(layout):
        raise PoseError(f"{source}: its frames contain no root position")
    width = 1 + sum(1 + count for _, count in layout)
    if len(tokens) % width:
        raise _locate(text, layout, source)
    table = np.array(tokens, dtype=object).reshape(-1, width)
    motion: dict[str, F64] = {}
    column = 1
    try:
        for name, count in layout:
            if (table[:, column] != name).any():
                raise _locate(text, layout, source)
            values = table[:, column + 1 : column + 1 + count].astype(np.float64)
            if not (np.abs(values) <= MAX_VALUE).all():
                raise _locate(text, layout, source)
            motion[name] = values
            column += 1 + count
    except ValueError:
        raise _locate(text, layout, source) from None
    return motion


def _check_layout(layout: list[tuple[str, int]], skeleton: AsfSkeleton, source: str) -> None:
    for name, count in layout:
        if name not in skeleton.names:
            raise PoseError(f"{source}: bone {name!r} is not in the skeleton")
        if count != len(dofs := skeleton.dofs[skeleton.names.index(name)]):
            raise PoseError(f"{source}: bone {name!r} has {count} values, the skeleton defines {len(dofs)}")


def _locate(text: str, layout: list[tuple[str, int]], source: str) -> PoseError:
    """Return an error on the first line of an AMC file that differs in structure; slow, for invalid files."""
    expected = [(None, 0), *layout]
    position = -1
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if position < 0:
            if not (len(words) == 1 and words[0].isdigit()):
                continue
            position = 0
        name, count = expected[position]
        good = len(words) == 1 + count and (words[0] == name if name else words[0].isdigit())
        try:
            good = good and all(abs(float(word)) <= MAX_VALUE for word in words[1:])
        except ValueError:
            good = False
        if not good:
            wanted = f"{name!r} and {count} numbers" if name else "a frame number"
            return PoseError(f"{source}, line {number}: expected {wanted}, got {line.strip()[:60]!r}")
        position = (position + 1) % len(expected)
    return PoseError(f"{source}: the last frame is incomplete")


def forward_kinematics(skeleton: AsfSkeleton, motion: dict[str, F64]) -> tuple[F64, F64]:
    """Return far ends (T, B, 3) m and rotations (T, B, 3, 3) of all bones in the file's world (y up)."""
    frames = len(motion["root"])
    ends = np.empty((frames, len(skeleton.names), 3))
    turns = np.empty((frames, len(skeleton.names), 3, 3))
    for b, name in enumerate(skeleton.names):
        local = skeleton.axes[b] @ _motion(skeleton, b, motion, frames)
        parent = skeleton.parents[b]
        if parent < 0:
            shift = [skeleton.dofs[b].index(channel) for channel in ("tx", "ty", "tz")]
            turns[:, b], ends[:, b] = local, motion[name][:, shift] * skeleton.metres
        else:
            turns[:, b] = turns[:, parent] @ (local @ skeleton.axes[b].T)
            ends[:, b] = ends[:, parent] + turns[:, b] @ skeleton.offsets[b]
    return ends, turns


def _motion(skeleton: AsfSkeleton, bone: int, motion: dict[str, F64], frames: int) -> F64:
    """Compute the rotations (T, 3, 3) of a bone about its own axes from its degrees of freedom."""
    values = motion.get(skeleton.names[bone])
    angles = np.zeros((frames, 3))
    for i, channel in enumerate(skeleton.dofs[bone]):
        if channel[0] == "r" and values is not None:
            angles[:, "xyz".index(channel[1])] = np.radians(values[:, i])
    order = skeleton.orders[bone]
    return rotations.intrinsic(order[::-1], angles[:, _columns(order)])
