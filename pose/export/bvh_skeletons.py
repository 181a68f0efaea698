"""Skeletons of other programs for BVH: their names, local axes, order of channels, rest pose and unit.

A joint has the rotation of one joint of our rigid skeleton, whose T-pose is the identity, followed by the constant
rotation `rest` of its own axes. Extra joints (spine, collar bones, toes) divide bones, so that all joints that both
skeletons have are at the same places.

Sources: the hierarchy and the first frames of LaFAN1 (Harvey et al., Robust Motion In-betweening, 2020); hierarchies of
Xsens MVN's BVH export; `pose.body.rigs` for the other names.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pose.body.fingers import FINGER_NAMES, HandBones
from pose.body.rigs import bone_names
from pose.body.skeleton import NAMES, Body
from pose.structures import rotations
from pose.structures.rotations import cross, from_matrix
from pose.structures.types import F64
from pose.world.contacts import ANKLE_HEIGHT

PLAIN = "plain"
BVH_SKELETONS = (PLAIN, "blender", "lafan1", "xsens", "mixamo", "unreal")
WITH_FINGERS = ("blender", "mixamo", "unreal")
_COLLAR = 0.35  # fraction of the way from the thorax to the shoulder, sideways, at which collar bones begin
_A_POSE_RAD = np.radians(45)  # angle of the arms below the horizontal in the rest pose of Unreal's mannequin

# Axes x, y, z of LaFAN1's joints in the T-pose, as rows: x left, y up, z forward of the body.
_UP, _LEFT, _FORWARD = np.array([0.0, 1, 0]), np.array([1.0, 0, 0]), np.array([0.0, 0, 1])
_LAFAN1_TRUNK = (_UP, _FORWARD, _LEFT)
_LAFAN1_LEG = (-_UP, _FORWARD, -_LEFT)
_LAFAN1_LEFT_ARM = (_LEFT, -_FORWARD, _UP)
_LAFAN1_RIGHT_ARM = (-_LEFT, -_FORWARD, -_UP)
_LAFAN1_TOE = (_FORWARD, _UP, -_LEFT)

_XSENS = {
    "Hips": "Hips", "Spine": "Chest", "Spine1": "Chest2", "Spine1b": "Chest3", "Spine2": "Chest4", "Neck": "Neck",
    "Head": "Head", "Shoulder": "Collar", "Arm": "Shoulder", "ForeArm": "Elbow", "Hand": "Wrist", "UpLeg": "Hip",
    "Leg": "Knee", "Foot": "Ankle", "ToeBase": "Toe",
}  # fmt: skip
_ARM = (("Shoulder", "thorax"), ("Arm", "shoulder"), ("ForeArm", "elbow"), ("Hand", "wrist"))
_FINGERS = ("Thumb", "Index", "Middle", "Ring", "Pinky")
_LEG = (("UpLeg", "hip"), ("Leg", "knee"), ("Foot", "foot"), ("ToeBase", "foot"))


@dataclass(frozen=True, slots=True, eq=False)
class BvhJoint:
    """A joint of a skeleton in the order of the file."""

    name: str  # name in the file
    key: str  # Mixamo's name, which identifies it
    parent: int  # index of the parent; -1 for the root
    source: str  # joint of `NAMES` whose rotation it has, or 'left_foot', 'left_hand', 'left_index_proximal', ...
    rest: F64  # (4,) quaternion of its axes in the T-pose


@dataclass(frozen=True, slots=True, eq=False)
class BvhSkeleton:
    """A skeleton that other programs expect."""

    joints: tuple[BvhJoint, ...]
    order: str  # order of the rotations, such as 'zyx' for R = Rz Ry Rx
    units_per_m: float

    def offsets(self, body: Body, hands: HandBones | None = None) -> F64:
        """Return the vectors (J, 3) m from the parents to the joints, in the axes of the parents; 0 for the root."""
        found = np.zeros((len(self.joints), 3))
        for at, joint in enumerate(self.joints):
            if joint.parent >= 0:
                back = rotations.inverse(self.joints[joint.parent].rest)
                found[at] = rotations.rotate(back, _vector(joint, body, hands, self))
        return found

    def local_rotations(self, global_quaternions: F64, feet: F64, hands: F64 | None = None) -> F64:
        """Return quaternions (T, J, 4) relative to the parents, of joints, feet (T, 2, 4) and hands (T, 2, 16, 4)."""
        turned = []
        for joint in self.joints:
            side, _, part = joint.source.partition("_")
            if part == "foot":
                own = feet[:, 0 if side == "left" else 1]
            elif joint.source in NAMES:
                own = global_quaternions[:, NAMES.index(joint.source)]
            else:
                assert hands is not None, "a skeleton with fingers has hands"
                own = hands[:, 0 if side == "left" else 1, 0 if part == "hand" else 1 + FINGER_NAMES.index(part)]
            turned.append(rotations.multiply(own, joint.rest))
        whole = np.stack(turned, axis=1)
        local = whole.copy()
        for at, joint in enumerate(self.joints):
            if joint.parent >= 0:
                local[:, at] = rotations.multiply(rotations.inverse(whole[:, joint.parent]), whole[:, at])
        return local


def bvh_skeleton(name: str, fingers: bool = False) -> BvhSkeleton:
    """Return a skeleton of `BVH_SKELETONS` but `PLAIN`, with fingers where `WITH_FINGERS`."""
    fingers = fingers and name in WITH_FINGERS
    spine = ["Spine", "Spine1", "Spine1b", "Spine2"] if name == "xsens" else ["Spine", "Spine1", "Spine2"]
    chains: list[list[tuple[str, str]]] = []
    legs = [[(f"{side}{key}", f"{side.lower()}_{source}") for key, source in _LEG] for side in ("Left", "Right")]
    arms = [
        [(f"{side}{key}", source if source == "thorax" else f"{side.lower()}_{source}") for key, source in _ARM]
        for side in ("Left", "Right")
    ]
    trunk = [(key, "thorax" if key == "Spine2" else "spine") for key in spine] + [("Neck", "neck"), ("Head", "head")]
    chains = [trunk, *arms[::-1], *legs[::-1]] if name == "xsens" else [*legs, trunk, *arms]
    named, rest = _names(name), _rests(name)
    joints = [BvhJoint(named("Hips"), "Hips", -1, "pelvis", rest("Hips"))]
    places = {"Hips": 0}
    for chain in chains:
        parent = places["Spine2"] if chain in arms else 0
        for key, source in chain:
            side = key.removesuffix("Hand").lower()
            with_hand = fingers and key.endswith("Hand")
            joints.append(BvhJoint(named(key), key, parent, f"{side}_hand" if with_hand else source, rest(key)))
            parent = places[key] = len(joints) - 1
            for at, part in enumerate(FINGER_NAMES if with_hand else ()):
                bone = f"{key}{_FINGERS[at // 3]}{at % 3 + 1}"
                above = len(joints) - 1 if at % 3 else parent
                joints.append(BvhJoint(named(bone), bone, above, f"{side}_{part}", rest(bone)))
    order = {"lafan1": "zyx", "xsens": "yxz"}.get(name, "zxy")
    return BvhSkeleton(tuple(joints), order, 1.0 if name == "blender" else 100.0)


def foot_rotations(directions: F64, shanks: F64) -> F64:
    """Return rotations (T, 2, 4) of feet from directions (T, 2, (heel to toe, sole normal), 3); else the shanks'."""
    along, above = directions[:, :, 0], directions[:, :, 1]
    known = (rotations.dot(along, along) > 0.5) & (rotations.dot(above, above) > 0.5)
    feet = rotations.from_axes(cross(above, along), above, along)
    return np.where(known[..., None], feet, shanks)


def _names(name: str) -> Callable[[str], str]:
    if name == "lafan1":
        return lambda key: key.replace("ToeBase", "Toe")
    if name == "xsens":
        return lambda key: next((f"{side}{_XSENS[key.removeprefix(side)]}" for side in ("Left", "Right")
                                 if key.startswith(side)), _XSENS.get(key, key))  # fmt: skip
    table = bone_names("rigify" if name == "blender" else name)
    return lambda key: table[key]


def _rests(name: str) -> Callable[[str], F64]:
    """Return the function from keys to the axes of the joints in the T-pose."""

    def lafan1(key: str) -> F64:
        part = key.removeprefix("Left").removeprefix("Right")
        if part in ("UpLeg", "Leg"):
            return _quaternion(_LAFAN1_LEG)
        if part == "ToeBase":
            return _quaternion(_LAFAN1_TOE)
        if part == "Foot":  # x points to the toe
            toe = _toe(None)
            along = toe / np.linalg.norm(toe)
            return _quaternion((along, cross(-_LEFT, along), -_LEFT))
        if part in dict(_ARM):
            return _quaternion(_LAFAN1_LEFT_ARM if key.startswith("Left") else _LAFAN1_RIGHT_ARM)
        return _quaternion(_LAFAN1_TRUNK)

    def unreal(key: str) -> F64:
        part = key.removeprefix("Left").removeprefix("Right")
        if part in ("Arm", "ForeArm") or part.startswith(
            "Hand"
        ):  # identity axes in the A-pose, so turned up in the T-pose
            return rotations.about(_FORWARD, np.array(_A_POSE_RAD if key.startswith("Left") else -_A_POSE_RAD))
        return rotations.IDENTITY

    return {"lafan1": lafan1, "unreal": unreal}.get(name, lambda key: rotations.IDENTITY)


def _quaternion(axes: tuple[F64, F64, F64]) -> F64:
    return from_matrix(np.stack(axes, axis=1))


def _toe(body: Body | None) -> F64:
    """Return the vector from ankle to toe of a flat foot, m; its length is nominal without a body."""
    length = 0.16 if body is None else float(np.abs(body.offsets[NAMES.index("left_ankle"), 1])) * 0.4
    return np.array([0.0, -ANKLE_HEIGHT, length])


def _vector(joint: BvhJoint, body: Body, hands: HandBones | None, skeleton: BvhSkeleton) -> F64:
    """Return the vector from the parent to a joint in the T-pose."""
    side, _, finger = joint.source.partition("_")
    if hands is not None and finger in FINGER_NAMES:
        return np.asarray(hands.offsets[0 if side == "left" else 1, FINGER_NAMES.index(finger)])
    side = "left" if joint.key.startswith("Left") else "right"
    part = joint.key.removeprefix("Left").removeprefix("Right")
    offset = {name: body.offsets[at] for at, name in enumerate(NAMES)}
    divisions = sum(joint.key.startswith("Spine") for joint in skeleton.joints) - 1
    sideways = np.array([1.0, 0.0, 0.0])
    found: dict[str, F64] = {
        "Spine": offset["spine"], "Spine1": offset["thorax"] / divisions, "Spine1b": offset["thorax"] / divisions,
        "Spine2": offset["thorax"] / divisions, "Neck": offset["neck"], "Head": offset["head"],
        "Shoulder": offset[f"{side}_shoulder"] * (_COLLAR, 1, 1),
        "Arm": offset[f"{side}_shoulder"] * (1 - _COLLAR) * sideways, "ForeArm": offset[f"{side}_elbow"],
        "Hand": offset[f"{side}_wrist"], "UpLeg": offset[f"{side}_hip"], "Leg": offset[f"{side}_knee"],
        "Foot": offset[f"{side}_ankle"], "ToeBase": _toe(body),
    }  # fmt: skip
    return found[part]


def hierarchy(skeleton: BvhSkeleton, body: Body, hands: HandBones | None = None) -> Iterator[str]:
    """Yield the lines of the hierarchy."""
    offsets = skeleton.units_per_m * skeleton.offsets(body, hands)
    ends = {"Head": body.tips[NAMES.index("head")], "ToeBase": np.array([0.0, 0.0, 0.03])}
    for side in ("left", "right"):
        ends[f"{side.title()}Hand"] = body.tips[NAMES.index(f"{side}_wrist")]
        if hands is not None:
            tips = hands.tips[0 if side == "left" else 1]
            ends |= {f"{side.title()}Hand{key}3": tip for key, tip in zip(_FINGERS, tips, strict=True)}
    names, parents = [joint.name for joint in skeleton.joints], [joint.parent for joint in skeleton.joints]
    tips = [skeleton.units_per_m * rotations.rotate(rotations.inverse(joint.rest), ends.get(joint.key, ends["ToeBase"]))
            for joint in skeleton.joints]  # fmt: skip
    yield from joint_lines(names, parents, offsets, tips, skeleton.order)


def joint_lines(
    names: Sequence[str], parents: Sequence[int], offsets: F64, tips: Sequence[F64], order: str
) -> Iterator[str]:
    """Yield the lines of a hierarchy of J joints, the root first, whose rotations have an order such as 'zxy'.

    `offsets` (J, 3) are vectors from the parents in the unit of the file, `tips` the ends of joints without children.
    """
    channels = " ".join(f"{axis.upper()}rotation" for axis in order)

    def lines(at: int, depth: int) -> Iterator[str]:
        indent = "  " * depth
        yield f"{indent}{'ROOT' if at == 0 else 'JOINT'} {names[at]}"
        yield f"{indent}{{"
        yield f"{indent}  OFFSET {_text(offsets[at])}"
        yield f"{indent}  CHANNELS {'6 Xposition Yposition Zposition' if at == 0 else '3'} {channels}"
        children = [child for child, parent in enumerate(parents) if parent == at]
        for child in children:
            yield from lines(child, depth + 1)
        if not children:
            yield from (
                f"{indent}  End Site",
                f"{indent}  {{",
                f"{indent}    OFFSET {_text(tips[at])}",
                f"{indent}  }}",
            )
        yield f"{indent}}}"

    yield from lines(0, 0)


def _text(vector: F64) -> str:
    return " ".join(f"{value:.6f}" for value in (vector + 0.0).tolist())
