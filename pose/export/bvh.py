"""BVH: a skeleton with one motion, for Blender, MotionBuilder, Maya, Unreal and others.

By convention, units are degrees and centimetres: the format has no field for units. Rotations are R = Rz Rx Ry. The
root's offset is 0 because readers disagree whether its position channels replace the offset or add to it. Sources: the
importers of Blender and three.js; Meredith and Maddock, Motion Capture File Formats Explained, 2001.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.body.character.hands import interpolated
from pose.body.character.look import character_look
from pose.body.digits import joined, merged, number, to_bytes
from pose.body.fingers import FINGER_NAMES, PARTS, WRIST_JOINTS, Fingers, HandBones
from pose.body.motions import AnimatedSkeleton
from pose.body.rigs import STICKS, is_finger
from pose.body.selection import CHUNK
from pose.body.skeleton import LEAVES, NAMES, PARENTS, Body, forward_kinematics
from pose.body.soles import smooth_feet
from pose.body.tracks import Track
from pose.export.bvh_skeletons import PLAIN, bvh_skeleton, foot_rotations, hierarchy, joint_lines
from pose.export.format import Notes, PersonFormat, list_filled, timing
from pose.structures.defaults import WORLD
from pose.structures.hand_points import FINGERS, SIDES
from pose.structures.rotations import unwrapped_euler
from pose.structures.types import F64
from pose.utils.whole_file import whole_file
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.gravity import ANKLES

CENTIMETRES = 100.0
FEET = [NAMES.index(f"{side}_ankle") for side in ("left", "right")]


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the BVH file `target`, and return notes for the export summary."""
    assert track.rate is not None, "BVH has one rate"
    if track.recording.bvh_skeleton != PLAIN:
        return _write_for_others(track, target)
    if track.recording.bvh_rig not in (None, STICKS):
        return _write_character(track, track.recording.rig, target)
    bones = AnimatedSkeleton(track)
    fingers = Fingers.of(track, bones)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        head = ("HIERARCHY", *_joint(bones.body, fingers, 0, 0), "MOTION", f"Frames: {len(track)}")
        file.write("\n".join((*head, f"Frame Time: {1 / track.rate:.9f}\n")).encode("ascii"))
        previous = None
        for span, motion in bones.spans():
            quaternions = (
                motion.quaternions
                if fingers is None
                else _with_fingers(motion.quaternions, fingers.quaternions(span, motion.quaternions))
            )
            text, previous = _rows(CENTIMETRES * motion.root, quaternions, "zxy", previous)
            file.write(text)
    return [
        f"{timing(track)}; centimetres",
        bones.distance_note(),
        *list_filled(track, target),
    ]


def _write_for_others(track: Track, target: Path) -> Notes:
    """Write the track with a skeleton of `BVH_SKELETONS`, with the feet on the floor."""
    assert track.rate is not None
    bones = AnimatedSkeleton(track)
    fingers = Fingers.of(track, bones)
    skeleton = bvh_skeleton(track.recording.bvh_skeleton, fingers is not None)
    hand_bones = None if fingers is None else fingers.body
    drop = _floor(track)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        head = ("HIERARCHY", *hierarchy(skeleton, bones.body, hand_bones), "MOTION", f"Frames: {len(track)}")
        file.write("\n".join((*head, f"Frame Time: {1 / track.rate:.9f}\n")).encode("ascii"))
        previous = None
        for span, motion in bones.spans():
            _, turned = forward_kinematics(bones.body, motion)
            directions = smooth_feet(track, np.arange(span.start, span.start + len(span.times)), track.space)
            feet = foot_rotations(directions, turned[:, FEET])
            hands = None if fingers is None else fingers.global_quaternions(span, motion.quaternions)
            root, local = motion.root - (0.0, drop, 0.0), skeleton.local_rotations(turned, feet, hands)
            text, previous = _rows(skeleton.units_per_m * root, local, skeleton.order, previous)
            file.write(text)
    unit = "metres" if skeleton.units_per_m == 1 else "centimetres"
    lowered = f"moved by {-drop:+.2f} m, so that the feet are on the floor" if drop else ""
    notes = [f"{timing(track)}; {unit}; skeleton {track.recording.bvh_skeleton}", bones.distance_note(), lowered]
    return [*filter(None, notes), *list_filled(track, target)]


def _write_character(track: Track, rig: str, target: Path) -> Notes:
    """Write the skeleton of the character, with the bone names of its rig; fingers if hands are known."""
    assert track.rate is not None
    look = character_look(rig)(track)
    fingers = any(is_finger(look.keys[bone]) for bone in look.moving)
    kept = [bone for bone, name in enumerate(look.keys) if fingers or not is_finger(name)]
    spans = list(look.spans())
    known = np.concatenate([span.known for span, _ in spans])
    root = np.concatenate([motion.root for _, motion in spans])
    quaternions = interpolated(np.concatenate([motion.quaternions[:, kept] for _, motion in spans]), known)
    at = np.arange(len(known))
    root = np.stack([np.interp(at, at[known], root[known, axis]) for axis in range(3)], axis=1)
    parents = [kept.index(look.parents[bone]) if look.parents[bone] >= 0 else -1 for bone in kept]
    offsets = look.heads[kept] - look.heads[[max(look.parents[bone], 0) for bone in kept]]
    tips = [CENTIMETRES * _tip(offset) for offset in offsets]
    names = [look.names[bone] for bone in kept]
    with whole_file(target) as hidden, hidden.open("wb") as file:
        head = ("HIERARCHY", *joint_lines(names, parents, CENTIMETRES * offsets, tips, "zxy"), "MOTION")
        file.write("\n".join((*head, f"Frames: {len(track)}", f"Frame Time: {1 / track.rate:.9f}\n")).encode("ascii"))
        previous = None
        for first in range(0, len(root), CHUNK):
            part = slice(first, first + CHUNK)
            text, previous = _rows(CENTIMETRES * root[part], quaternions[part], "zxy", previous)
            file.write(text)
    skeleton = f"skeleton of the character with {len(kept)} bones, names of {rig}"
    return [f"{timing(track)}; centimetres; {skeleton}", look.note(), *list_filled(track, target)]


def _tip(offset: F64) -> F64:
    """Return the vector (3,) m to the end of the last bone of a chain, from that of the bone before it."""
    return np.asarray(0.5 * offset if np.linalg.norm(offset) > 1e-6 else [0.0, 0.05, 0.0])


def _rows(root: F64, quaternions: F64, order: str, previous: F64 | None) -> tuple[bytes, F64]:
    """Return the lines of frames, and the last angles; the root (T, 3) has the file's unit, rotations are (T, J, 4)."""
    angles = unwrapped_euler(quaternions, order, previous)
    rows = np.concatenate([root, np.degrees(angles).reshape(len(angles), -1)], axis=1)
    first, others = number(rows[:, 0], 4), number(rows[:, 1:], 4, prefix=" ")
    return to_bytes(joined(first, merged(others), "\n")), angles[-1]


def _floor(track: Track) -> float:
    """Return the height of the floor in file axes, m: 0 in the world, else below the lowest ankles of the track."""
    if track.space.name == WORLD:
        return 0.0
    heights = [track.space.to_file(span.joints)[:, ANKLES, 1] for span in track.sample()]
    return float(np.nanpercentile(np.concatenate(heights), 2)) - ANKLE_HEIGHT


def _with_fingers(quaternions: F64, hands: F64) -> F64:
    """Replace wrist rotations in (T, 17, 4) by those of wrist and fingers (T, 2, 16, 4): (T, 47, 4) quaternions."""
    parts, first = [], 0
    for side, wrist in enumerate(WRIST_JOINTS):
        parts += [quaternions[:, first:wrist], hands[:, side]]
        first = wrist + 1
    return np.concatenate([*parts, quaternions[:, first:]], axis=1)


def _joint(body: Body, fingers: Fingers | None, joint: int, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{'JOINT' if joint else 'ROOT'} {NAMES[joint]}"
    yield f"{indent}{{"
    yield f"{indent}  OFFSET {_offset(body.offsets[joint])}"
    position = "" if joint else "Xposition Yposition Zposition "
    yield f"{indent}  CHANNELS {3 if joint else 6} {position}Zrotation Xrotation Yrotation"
    for child in (child for child, parent in enumerate(PARENTS) if parent == joint):
        yield from _joint(body, fingers, child, depth + 1)
    if fingers is not None and joint in WRIST_JOINTS:
        for finger in range(len(FINGERS)):
            yield from _finger(fingers.body, WRIST_JOINTS.index(joint), finger, depth + 1)
    elif joint in LEAVES:
        yield f"{indent}  End Site"
        yield f"{indent}  {{"
        yield f"{indent}    OFFSET {_offset(body.tips[joint])}"
        yield f"{indent}  }}"
    yield f"{indent}}}"


def _finger(bones: HandBones, side: int, finger: int, depth: int, part: int = 0) -> Iterator[str]:
    """Yield the lines of a finger joint and of the joints after it; `part` indexes `PARTS`."""
    indent, at = "  " * depth, 3 * finger + part
    yield f"{indent}JOINT {SIDES[side]}_{FINGER_NAMES[at]}"
    yield f"{indent}{{"
    yield f"{indent}  OFFSET {_offset(bones.offsets[side, at])}"
    yield f"{indent}  CHANNELS 3 Zrotation Xrotation Yrotation"
    if part < len(PARTS) - 1:
        yield from _finger(bones, side, finger, depth + 1, part + 1)
    else:
        yield f"{indent}  End Site"
        yield f"{indent}  {{"
        yield f"{indent}    OFFSET {_offset(bones.tips[side, finger])}"
        yield f"{indent}  }}"
    yield f"{indent}}}"


def _offset(metres: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in (CENTIMETRES * metres + 0.0).tolist())


FORMAT = PersonFormat(".bvh", write, options=("bvh_skeleton", "rig", "foot_lock"))
