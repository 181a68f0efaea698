"""Biovision hierarchy (BVH) motion files."""

from dataclasses import dataclass, field

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose_datasets import rotations

MAX_JOINTS = 1000  # maximum joints of a skeleton
MAX_VALUE = 1e6  # maximum value of a length, position or angle, in any unit


@dataclass(frozen=True, slots=True)
class BvhMotion:
    """Skeleton and motion of a BVH file, in its unit of length, which the format does not specify."""

    names: tuple[str, ...]  # names of the B joints, each after its parent. An end site is called "<parent>_end"
    parents: tuple[int, ...]  # (B,) indices of the parent joints; -1 for the root
    offsets: F64  # (B, 3) offset of each joint from its parent, in the frame of the parent
    channels: tuple[tuple[str, ...], ...]  # names of the channels of each joint in file order, such as "Zrotation"
    values: F64  # (T, C) values of all C channels in T frames, joint by joint; degrees for rotations
    fps: float  # frame rate, frames/s


@dataclass
class _Tree:
    """Joint hierarchy while a file is parsed."""

    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[list[float]] = field(default_factory=list)
    channels: list[tuple[str, ...]] = field(default_factory=list)
    open_joints: list[int] = field(default_factory=list)

    def add(self, words: list[str]) -> None:
        """Parse the words of one line."""
        if words[0] in ("ROOT", "JOINT", "End"):
            parent = self.open_joints[-1] if self.open_joints else -1
            if (parent < 0) == (words[0] != "ROOT") or (parent < 0 and self.names):
                raise ValueError("expected a single ROOT")
            if len(self.names) == MAX_JOINTS:
                raise ValueError(f"expected at most {MAX_JOINTS} joints")
            self.names.append(f"{self.names[parent]}_end" if words[0] == "End" else words[1])
            self.parents.append(parent)
            self.offsets.append([0.0, 0.0, 0.0])
            self.channels.append(())
        elif words[0] == "{":
            self.open_joints.append(len(self.names) - 1)
        elif words[0] == "}":
            self.open_joints.pop()
        elif words[0] == "OFFSET":
            x, y, z = map(float, words[1:])
            if not all(abs(value) <= MAX_VALUE for value in (x, y, z)):
                raise ValueError(f"expected offsets up to {MAX_VALUE:g}")
            self.offsets[self.open_joints[-1]] = [x, y, z]
        elif words[0] == "CHANNELS":
            self.channels[self.open_joints[-1]] = _channels(words)
        elif words[0] != "HIERARCHY":
            raise ValueError("not understood")


def parse_bvh(text: str, source: str) -> BvhMotion:
    """Parse the text of a BVH file."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines, start=1) if line.split() == ["MOTION"]), None)
    if start is None:
        raise PoseError(f"{source}: no MOTION section; is this a BVH file?")
    tree = _Tree()
    for number, line in enumerate(lines[: start - 1], start=1):
        if words := line.split():
            try:
                tree.add(words)
            except (ValueError, IndexError) as error:
                raise PoseError(f"{source}, line {number}: {error}: {line.strip()[:60]!r}") from error
    if not tree.names:
        raise PoseError(f"{source}: contains no joints")
    values, fps = _parse_motion(lines, start, sum(map(len, tree.channels)), source)
    return BvhMotion(tuple(tree.names), tuple(tree.parents), np.array(tree.offsets), tuple(tree.channels), values, fps)


def _channels(words: list[str]) -> tuple[str, ...]:
    known = {axis + kind for axis in "XYZ" for kind in ("position", "rotation")}
    found = tuple(words[2:])
    if int(words[1]) != len(found) or not known.issuperset(found) or len(set(found)) != len(found):
        raise ValueError(f"expected {words[1]} channels out of {', '.join(sorted(known))}")
    return found


def _parse_motion(lines: list[str], start: int, width: int, source: str) -> tuple[F64, float]:
    """Parse the lines after "MOTION"; return values (T, width) and the frame rate in frames/s."""
    try:
        frames = int(lines[start].split()[1])
        seconds = float(lines[start + 1].split()[2])
        if frames < 1 or not 1e-4 <= seconds <= 10:
            raise ValueError("out of range")
    except (ValueError, IndexError) as error:
        raise PoseError(
            f"{source}, line {start + 1}: expected 'Frames: N' and 'Frame Time: seconds' above 0"
        ) from error
    rows = [line for line in lines[start + 2 :] if line and not line.isspace()]
    if len(rows) < frames:
        raise PoseError(f"{source}: {frames} frames announced, {len(rows)} found")
    try:
        values = np.array(" ".join(rows[:frames]).split(), dtype=np.float64)
    except ValueError as error:
        raise PoseError(f"{source}: {error}") from error
    if len(values) != frames * width:
        number, found = next((i, len(r.split())) for i, r in enumerate(rows[:frames]) if len(r.split()) != width)
        raise PoseError(f"{source}, frame {number + 1}: expected {width} numbers, got {found}")
    if not (np.abs(values) <= MAX_VALUE).all():
        raise PoseError(f"{source}: expected numbers up to {MAX_VALUE:g}")
    return values.reshape(frames, width), 1 / seconds


def forward_kinematics(motion: BvhMotion) -> tuple[F64, F64]:
    """Return joint positions (T, B, 3) in the file's unit and rotations (T, B, 3, 3) to its world (y up)."""
    frames = len(motion.values)
    positions = np.empty((frames, len(motion.names), 3))
    turns = np.empty((frames, len(motion.names), 3, 3))
    column = 0
    for b, (parent, channels) in enumerate(zip(motion.parents, motion.channels, strict=True)):
        values = motion.values[:, column : column + len(channels)]
        column += len(channels)
        rotating = [i for i, channel in enumerate(channels) if channel.endswith("rotation")]
        order = "".join(channels[i][0].lower() for i in rotating)
        local = rotations.intrinsic(order, np.radians(values[:, rotating])) if order else np.eye(3)
        offset = np.broadcast_to(motion.offsets[b], (frames, 3)).copy()
        for i, channel in enumerate(channels):
            if channel.endswith("position"):
                # A position channel replaces the offset: always for the root, elsewhere in files of some exporters
                # (the Daz conversions have them for the root only).
                offset[:, "XYZ".index(channel[0])] = values[:, i]
        if parent < 0:
            positions[:, b], turns[:, b] = offset, local
        else:
            positions[:, b] = positions[:, parent] + np.einsum("tij,tj->ti", turns[:, parent], offset)
            turns[:, b] = turns[:, parent] @ local
    return positions, turns
