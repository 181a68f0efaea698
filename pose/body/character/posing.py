"""The pose of a character: bone rotations that fit its joints to those of the skeleton.

- Hips and upper chest have the orientations of pelvis and thorax.
- The spine bends to reach the joints of spine and thorax, and the neck to reach the base of the skull.
- Collar bones point to the shoulders.
- Arms and legs are two-bone chains to wrists and ankles. Elbow and knee are hinges, whose plane determines the twist of
  the upper bone (`pose.body.skeleton`).
- Hand points determine the rotations of hand and fingers; the forearm gets half of the hand's twist.
- Feet have the directions of `pose.world.foot_points`; the shank gets half of the foot's twist.
- Nose, eyes and ears rotate the head (`pose.body.character.heads`), and the direction of the face twists it.

The twists along a limb add up to the orientation of hand or foot where it is known. A hand that is not detected follows
the forearm, which is closer to recorded hands than a forearm that cancels the upper arm's twist
(docs/studies/exports.md). Toes, and fingers without points, keep their rest pose.
"""

from dataclasses import dataclass

import numpy as np

from pose.body.character.hands import FOREARM_SHARE, HandRotations, finger_bones, interpolated, twist_of
from pose.body.character.heads import from_vectors, lifted_heads
from pose.body.character.rest import Character
from pose.body.rigs import is_finger
from pose.body.skeleton import NAMES, ORDER, aimed, hinged, pelvis_frame, thorax_frame
from pose.structures import rotations
from pose.structures.rotations import cross, dot, unit
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.structures.types import F64

_AT = {name: place for place, name in enumerate(NAMES)}
_Y, _Z = np.eye(3)[1:]
_MAX_TWIST_RAD = np.radians(90)  # maximum twist of the head on the chest; necks reach about 80 degrees
_SPINE_STEPS = 3  # iterations for the bend of the spine
_SHANK_SHARE = 0.5  # fraction of the foot's twist that the shank gets


@dataclass(frozen=True, slots=True)
class Posed:
    """Poses of a character with B bones in T frames. The head of a bone is its start."""

    root: F64  # (T, 3) m, head of the bone Hips
    quaternions: F64  # (T, B, 4) quaternions (w, x, y, z) of the bones, relative to their parent bones
    global_quaternions: F64  # (T, B, 4) quaternions (w, x, y, z) of the bones in file axes (y up)
    heads: F64  # (T, B, 3) m, heads of the bones in file axes


class _Solver:
    """Partial solution for T frames, filled bone by bone from the root: global rotations and heads of the bones."""

    def __init__(self, character: Character, count: int) -> None:
        self.rest, self.model = character.heads, character.model
        self.global_quaternions = np.empty((count, len(self.model.names), 4))
        self.heads = np.empty((count, len(self.model.names), 3))
        self.posed: set[str] = set()  # finger bones whose rotations follow from hand points

    def carry(self, bone: int, point: F64) -> F64:
        """Return the positions (T, 3) m of a rest-pose point (3,) m that moves with `bone`."""
        moved: F64 = self.heads[:, bone] + rotations.rotate(self.global_quaternions[:, bone], point - self.rest[bone])
        return moved

    def set(self, name: str, global_quaternions: F64) -> None:
        """Set the global rotations (T, 4) of a bone, and compute its head from the parent bone."""
        bone = self.model.index(name)
        self.global_quaternions[:, bone] = global_quaternions
        if bone:
            self.heads[:, bone] = self.carry(int(self.model.parents[bone]), self.rest[bone])

    def quaternions_of(self, name: str) -> F64:
        result: F64 = self.global_quaternions[:, self.model.index(name)]
        return result


def pose_character(
    character: Character,
    points: F64,
    hands: HandRotations | None = None,
    faces: F64 | None = None,
    feet: F64 | None = None,
    heads: F64 | None = None,
    times: F64 | None = None,
) -> Posed:
    """Fit the pose of a character to lifted points (T, 17, 3) m in file axes (y up), Human3.6M order.

    Rotations of hands are interpolated by slerp where they are not detected, and so is the twist of a head without a
    face. `faces` (T, 3) are directions of the faces, NaN where not detected; `feet` (T, 2, 2, 3) unit vectors of left
    and right foot from heel to toe and up from the sole, by default perpendicular to the shanks; `heads` (T, 3) the
    rotation vectors of `pose.body.character.heads.head_corrections`. With `times` (T,) s the twist of the limbs is
    smoothed.
    """
    ordered = points[:, ORDER]
    solver = _Solver(character, len(points))
    index, rest = solver.model.index, solver.rest
    pelvis = rotations.from_axes(*pelvis_frame(ordered))
    solver.set("Hips", pelvis)
    hips = (ordered[:, _AT["left_hip"]] + ordered[:, _AT["right_hip"]]) / 2
    solver.heads[:, 0] = hips + rotations.rotate(pelvis, rest[0] - character.pelvis)
    _bend_spine(solver, character, ordered, pelvis)
    chest = solver.quaternions_of("Spine2")
    for at, (side, outward) in enumerate((("Left", np.array([1.0, 0, 0])), ("Right", np.array([-1.0, 0, 0])))):
        lower = side.lower()
        bone, arm = index(f"{side}Shoulder"), index(f"{side}Arm")
        solver.set(f"{side}Shoulder", chest)
        goal = unit(ordered[:, _AT[f"{lower}_shoulder"]] - solver.heads[:, bone])
        solver.set(f"{side}Shoulder", aimed(chest, unit(rest[arm] - rest[bone]), goal))
        hinge = np.array([0.0, -outward[0], 0.0])
        joints = [f"{lower}_{joint}" for joint in ("shoulder", "elbow", "wrist")]
        _limb(
            solver,
            ordered,
            joints,
            [f"{side}{bone}" for bone in ("Arm", "ForeArm", "Hand")],
            chest,
            outward,
            hinge,
            times,
        )
        if hands is not None and hands.seen[:, at].any():
            _turn_hand(solver, at, side, hands)
        joints = [f"{lower}_{joint}" for joint in ("hip", "knee", "ankle")]
        bones = [f"{side}{bone}" for bone in ("UpLeg", "Leg", "Foot")]
        _limb(solver, ordered, joints, bones, pelvis, np.array([0.0, -1, 0]), np.array([1.0, 0, 0]), times)
        if feet is not None:
            _turn_foot(solver, side, feet[:, at])
    _turn_head(solver, character, ordered, faces, heads)
    return _finished(solver)


def _turn_head(solver: _Solver, character: Character, ordered: F64, faces: F64 | None, heads: F64 | None) -> None:
    """Align the head with its joints and image points, and twist it, and the neck by half, to the face."""
    chest, skull = solver.quaternions_of("Spine2"), solver.rest[solver.model.index("Head")]
    lifted = lifted_heads(ordered)
    head = lifted if heads is None else rotations.multiply(lifted, from_vectors(heads))
    up = rotations.rotate(head, unit(character.head - character.neck))
    seen = np.zeros(len(ordered), bool) if faces is None else np.asarray(np.isfinite(faces).all(axis=1))
    if faces is not None and seen.any():
        forward = rotations.rotate(head, _Z)
        angle = np.arctan2(dot(cross(forward, faces), up), dot(forward, faces) - dot(forward, up) * dot(faces, up))
        quaternions = interpolated(rotations.about(_Y, np.clip(angle, -_MAX_TWIST_RAD, _MAX_TWIST_RAD)), seen)
        head = rotations.multiply(rotations.about(up, 2 * np.arctan2(quaternions[:, 2], quaternions[:, 0])), head)
    relative = rotations.multiply(rotations.inverse(lifted), head)
    twist = 2 * np.arctan2(relative[:, 2], relative[:, 0])
    twist -= 2 * np.pi * np.round(twist / (2 * np.pi))
    solver.set("Neck", rotations.multiply(chest, rotations.about(_Y, twist / 2)))
    _aim(solver, "Neck", skull, ordered[:, _AT["neck"]] - rotations.rotate(head, character.neck - skull))
    solver.set("Head", head)


def _bend_spine(solver: _Solver, character: Character, ordered: F64, pelvis: F64) -> None:
    """Bend the bones Spine and Spine1 to reach the joints spine and thorax, as far as bone lengths allow."""
    chest = rotations.from_axes(*thorax_frame(ordered))
    count, rest = len(ordered), solver.rest
    middle, top = (solver.model.index(name) for name in ("Spine1", "Spine2"))
    solver.set("Spine", rotations.slerp(pelvis, chest, np.full(count, 1 / 3)))
    solver.set("Spine1", rotations.slerp(pelvis, chest, np.full(count, 2 / 3)))
    # Target of the head of Spine2.
    goal = ordered[:, _AT["thorax"]] - rotations.rotate(chest, character.thorax - rest[top])
    for _ in range(_SPINE_STEPS):
        _aim(solver, "Spine1", rest[top], goal)
        beyond = rotations.rotate(solver.quaternions_of("Spine1"), character.spine - rest[middle])
        _aim(solver, "Spine", rest[middle], ordered[:, _AT["spine"]] - beyond)
        solver.set("Spine1", solver.quaternions_of("Spine1"))
    solver.set("Spine1", solver.quaternions_of("Spine1"))
    _aim(solver, "Spine1", rest[top], goal)
    solver.set("Spine2", chest)


def _aim(solver: _Solver, name: str, point: F64, goal: F64) -> None:
    """Rotate a bone by the smallest angle so that its head, a rest-pose point (3,) and `goal` (T, 3) m align."""
    bone = solver.model.index(name)
    start = solver.heads[:, bone]
    more = rotations.shortest_rotation(unit(solver.carry(bone, point) - start), unit(goal - start))
    solver.set(name, rotations.multiply(more, solver.quaternions_of(name)))


def _limb(
    solver: _Solver, ordered: F64, joints: list[str], bones: list[str], parent: F64, rest: F64, hinge: F64,
    times: F64 | None,
) -> None:  # fmt: skip
    """Pose two bones so that they reach the far joint and the hinge bends in the plane of the three joints."""
    upper, lower, end = (solver.model.index(name) for name in bones)
    solver.set(bones[0], parent)  # places the head of the upper bone
    points = ordered[:, [_AT[name] for name in joints]].copy()
    points[:, 0] = solver.heads[:, upper]
    lengths = tuple(float(np.linalg.norm(solver.rest[b] - solver.rest[a])) for a, b in ((upper, lower), (lower, end)))
    place_middle(points, (0, 1, 2), (lengths[0], lengths[1]))
    first, second = unit(points[:, 1] - points[:, 0]), unit(points[:, 2] - points[:, 1])
    solver.set(bones[0], hinged(aimed(parent, rest, first), first, second, hinge, times))
    solver.set(bones[1], aimed(solver.quaternions_of(bones[0]), rest, second))
    solver.set(bones[2], solver.quaternions_of(bones[1]))


def _turn_hand(solver: _Solver, at: int, side: str, hands: HandRotations) -> None:
    """Rotate the hand and its fingers to their points, and apply part of the twist to the forearm."""
    seen, forearm = hands.seen[:, at], solver.quaternions_of(f"{side}ForeArm")
    quaternions = interpolated(rotations.multiply(rotations.inverse(forearm), hands.palms[:, at]), seen)
    hand = rotations.multiply(forearm, quaternions)
    axis = np.array([1.0, 0.0, 0.0])
    solver.set(
        f"{side}ForeArm", rotations.multiply(forearm, rotations.about(axis, FOREARM_SHARE * twist_of(quaternions)))
    )
    solver.set(f"{side}Hand", hand)
    fingers = interpolated(hands.fingers[:, at], seen)
    for joint, name in enumerate(finger_bones(at)):
        own = solver.quaternions_of(solver.model.names[solver.model.parents[solver.model.index(name)]])
        solver.set(name, rotations.multiply(own, fingers[:, joint]))
    solver.posed.update(finger_bones(at))


def _turn_foot(solver: _Solver, side: str, frames: F64) -> None:
    """Rotate the foot to `frames` (T, 2, 3), direction and sole normal, and twist the shank; zeros are unknown."""
    shank = solver.quaternions_of(f"{side}Leg")
    along, above = frames[:, 0], frames[:, 1]
    known = np.linalg.norm(cross(above, along), axis=-1) > 0.5
    foot = np.where(known[:, None], rotations.from_axes(cross(above, along), above, along), shank)
    relative = rotations.multiply(rotations.inverse(shank), foot)
    twist = 2 * np.arctan2(relative[:, 2], relative[:, 0])
    twist -= 2 * np.pi * np.round(twist / (2 * np.pi))
    solver.set(f"{side}Leg", rotations.multiply(shank, rotations.about(_Y, _SHANK_SHARE * twist)))
    solver.set(f"{side}Foot", foot)


def _finished(solver: _Solver) -> Posed:
    """Set the remaining fingers and toes, and convert rotations to the parents' frames."""
    parents, names = solver.model.parents, solver.model.names
    for bone, name in enumerate(names):
        if name not in solver.posed and ("ToeBase" in name or is_finger(name)):
            solver.set(name, solver.global_quaternions[:, parents[bone]])
    quaternions = solver.global_quaternions.copy()
    quaternions[:, 1:] = rotations.multiply(
        rotations.inverse(solver.global_quaternions[:, parents[1:]]), solver.global_quaternions[:, 1:]
    )
    return Posed(solver.heads[:, 0].copy(), quaternions, solver.global_quaternions, solver.heads)


def joints_of(character: Character, posed: Posed) -> F64:
    """Return the joints of a posed character, (T, 17, 3) m, in the order of Human3.6M-17."""
    index, rest = character.model.index, character.heads
    joints = np.empty((len(posed.root), len(H36M17), 3))
    for name, bone, point in (
        ("pelvis", "Hips", character.pelvis), ("spine", "Spine1", character.spine),
        ("thorax", "Spine2", character.thorax), ("neck", "Head", character.neck), ("head", "Head", character.head),
    ):  # fmt: skip
        at = index(bone)
        rotated = rotations.rotate(posed.global_quaternions[:, at], point - rest[at])
        joints[:, H36M17.index(name)] = posed.heads[:, at] + rotated
    ends = {"hip": "UpLeg", "knee": "Leg", "ankle": "Foot", "shoulder": "Arm", "elbow": "ForeArm", "wrist": "Hand"}
    for joint, bone in ends.items():
        for side in ("left", "right"):
            joints[:, H36M17.index(f"{side}_{joint}")] = posed.heads[:, index(f"{side.title()}{bone}")]
    return joints


def skin(character: Character, posed: Posed, frame: int) -> F64:
    """Compute the vertices (V, 3) m of the posed mesh in a frame by linear blend skinning, as 3D viewers do."""
    global_quaternions = posed.global_quaternions[frame]
    axes = np.eye(3)
    matrices = np.stack(
        [rotations.rotate(global_quaternions, np.broadcast_to(axis, (len(global_quaternions), 3))) for axis in axes],
        axis=-1,
    )
    shift = posed.heads[frame] - np.einsum("bij,bj->bi", matrices, character.heads)
    model = character.model
    matrix = np.einsum("vk,vkij->vij", model.weights, matrices[model.bones])
    offset = np.einsum("vk,vkj->vj", model.weights, shift[model.bones])
    result: F64 = np.einsum("vij,vj->vi", matrix, character.vertices) + offset
    return result
