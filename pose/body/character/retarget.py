"""Motion of a person on another character, by the directions of its bones.

A bone of the target gets the orientation that its counterpart has in our own character (`pose.body.character.posing`),
after both rest poses are brought into the same pose: the target's body faces our way, each limb points where ours
does, feet are flat and palms are down. So the rest pose of the target may be a T-pose, an A-pose or another, and its
bones may have any axes. The directions from joint to joint are those of the person; lengths stay those of the target.

The path is scaled by the length of the legs around its middle, and the soles are held on the floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pose.body.character.hands import finger_bones
from pose.body.character.rest import Character
from pose.body.character.sole_lock import SOLE_M, Soles, locked, lowering, rise_of
from pose.body.fingers import palm_quaternions
from pose.body.skeleton import frame
from pose.structures import rotations
from pose.structures.hand_points import INDEX_KNUCKLE, LITTLE_KNUCKLE, MIDDLE_KNUCKLE, POINTS
from pose.structures.rotations import dot, unit
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.structures.types import F64, I64

_SIDES = ("Left", "Right")
_ANKLES = [H36M17.index(f"{side.lower()}_ankle") for side in _SIDES]
_SPINE_STEPS = 6  # iterations for the bend of the spine
_LEG = (("UpLeg", "Leg"), ("Leg", "Foot"))
_Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True)
class TargetRig:
    """A character with N nodes and the bones that correspond to ours."""

    parents: I64  # (N,) parent of each node, -1 for roots
    order: I64  # (N,) nodes, parents before children
    translations: F64  # (N, 3) relative to the parent, in its units
    quaternions: F64  # (N, 4) rotations relative to the parent
    scales: F64  # (N,) relative to the parent
    heads: F64  # (N, 3) positions in the rest pose of the skin, any unit
    rest: F64  # (N, 4) rotations in that pose
    bones: Mapping[str, int]  # node by our name of the bone
    soles: tuple[F64, F64]  # vertices of the left and right foot in the rest pose of the skin, (S, 3)


@dataclass(frozen=True, slots=True)
class Retargeted:
    """Poses of a target in T frames."""

    moving: tuple[int, ...]  # (M,) nodes that rotate
    quaternions: F64  # (T, M, 4) rotations relative to the parent
    hips: F64  # (T, 3) position of the hips relative to the parent, in its units
    heads: F64  # (T, N, 3) m, positions of all nodes


class Retargeting:
    """The constant part of a retargeting: how the rest poses of our character and of the target correspond."""

    def __init__(self, character: Character, rig: TargetRig, *, hands: bool) -> None:
        self.rig, self._own, self._hands = rig, character, hands
        at, ours = self._at, self._ours
        across = at("LeftUpLeg") - at("RightUpLeg")
        self._hip, self._shoulder = (at("LeftUpLeg") + at("RightUpLeg")) / 2, (at("LeftArm") + at("RightArm")) / 2
        axes = frame(across[None], (self._shoulder - self._hip)[None])
        self.facing = rotations.inverse(rotations.from_axes(*axes)[0])  # from the target's rest pose to ours
        self.aligned = dict.fromkeys(rig.bones, self.facing)
        for side in _SIDES:
            chain = [f"{side}{bone}" for bone in ("Shoulder", "Arm", "ForeArm", "Hand")]
            for bone, end in [*pairwise(chain), (f"{side}UpLeg", f"{side}Leg"),
                              (f"{side}Leg", f"{side}Foot")]:  # fmt: skip
                if bone in rig.bones and end in rig.bones:
                    self._align(bone, self.facing, at(end) - at(bone), ours(end) - ours(bone))
            self._align_foot(side)
            self._align_hand(side)
        if "Neck" in rig.bones and "Head" in rig.bones:
            self._align("Neck", self.facing, at("Head") - at("Neck"), ours("Head") - ours("Neck"))
        self.spine = self._chain("Hips", self._chest())
        head = self._chain(self.spine[-1] if self.spine else self._node("Hips"), self.rig.bones.get("Head", -1))
        self.neck = head[:-1]
        rest_m, own = _world(rig, rig.quaternions[None], None)[1][0], character.heads
        in_metres, in_rest, ours_m = (
            sum(float(np.linalg.norm(places[of(f"{s}{a}")] - places[of(f"{s}{b}")])) for s in _SIDES for a, b in _LEG)
            for places, of in ((rest_m, self._node), (rig.heads, self._node), (own, character.model.index))
        )
        self.scale = in_metres / ours_m  # ratio of the target's legs to ours
        self.unit = in_metres / in_rest  # m per unit of the rest pose of the skin
        self.rise: float | None = None  # m by which the target is raised to stand on the floor

    def _node(self, bone: str) -> int:
        return self.rig.bones[bone]

    def _at(self, bone: str) -> F64:
        result: F64 = self.rig.heads[self.rig.bones[bone]]
        return result

    def _ours(self, bone: str) -> F64:
        result: F64 = self._own.heads[self._own.model.index(bone)]
        return result

    def _align(self, bone: str, base: F64, target: F64, ours: F64) -> None:
        """Make a bone of the target point where ours points, by the smallest rotation after `base`."""
        if np.linalg.norm(target) > 1e-9:
            turned = rotations.rotate(base, unit(target))
            self.aligned[bone] = rotations.multiply(rotations.shortest_rotation(turned, unit(ours)), base)

    def _align_foot(self, side: str) -> None:
        """Turn a foot about the vertical until it points forward; its sole is flat in the rest pose."""
        foot, toes = f"{side}Foot", f"{side}ToeBase"
        if toes in self.rig.bones:
            flat = rotations.rotate(self.facing, self._at(toes) - self._at(foot)) * (1, 0, 1)
            if np.linalg.norm(flat) > 1e-9:
                turn = rotations.shortest_rotation(unit(flat), _Z)
                self.aligned[foot] = rotations.multiply(turn, self.facing)

    def _align_hand(self, side: str) -> None:
        """Bring the palm into the pose of ours, and every finger bone into the direction of ours."""
        hand, at = f"{side}Hand", _SIDES.index(side)
        self.aligned[hand] = self.aligned[f"{side}ForeArm"]
        knuckles = {INDEX_KNUCKLE: "Index1", MIDDLE_KNUCKLE: "Middle1", LITTLE_KNUCKLE: "Pinky1"}
        if all(f"{hand}{name}" in self.rig.bones for name in knuckles.values()):
            palms = []
            for place in (self._at, self._ours):
                points = np.full((1, POINTS, 3), np.nan)
                points[0, 0] = place(hand)
                for knuckle, name in knuckles.items():
                    points[0, knuckle] = place(f"{hand}{name}")
                palms.append(palm_quaternions(points, at)[0])
            self.aligned[hand] = rotations.multiply(palms[1], rotations.inverse(palms[0]))
        for bone in finger_bones(at):
            if bone in self.rig.bones:
                following = f"{bone[:-1]}{int(bone[-1]) + 1}"
                self.aligned[bone] = self.aligned[hand]
                if following in self.rig.bones and bone[-1] != "3":
                    target, ours = (place(following) - place(bone) for place in (self._at, self._ours))
                    self._align(bone, self.aligned[hand], target, ours)
                elif bone[-1] != "1" and (before := f"{bone[:-1]}{int(bone[-1]) - 1}") in self.aligned:
                    self.aligned[bone] = self.aligned[before]

    def _path(self, node: int) -> list[int]:
        """Return the nodes from a root to `node`."""
        found = [node]
        while (above := int(self.rig.parents[found[-1]])) >= 0:
            found.append(above)
        return found[::-1]

    def _chest(self) -> int:
        """Return the last node that bears both arms."""
        left, right = (self._path(self._node(f"{side}Arm")) for side in _SIDES)
        shared = [a for a, b in zip(left, right, strict=False) if a == b]
        return shared[-1] if shared else -1

    def _chain(self, start: str | int, end: int) -> list[int]:
        """Return the nodes below `start` down to `end`; empty if `end` is not below it."""
        first = self._node(start) if isinstance(start, str) else start
        path = self._path(end) if end >= 0 else []
        return path[path.index(first) + 1 :] if first in path else []

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """The nodes that rotate: hips, spine, neck and head, limbs; hands and fingers if hands are known."""
        limbs = [f"{s}{b}" for s in _SIDES for b in ("Shoulder", "Arm", "ForeArm", "UpLeg", "Leg", "Foot")]
        if self._hands:
            limbs += [name for at, s in enumerate(_SIDES) for name in (f"{s}Hand", *finger_bones(at))]
        named = [self.rig.bones[bone] for bone in ("Hips", *limbs, "Head") if bone in self.rig.bones]
        return tuple(dict.fromkeys([*named, *self.spine, *self.neck]))

    def apply(
        self, root: F64, global_quaternions: F64, thorax: F64, contacts: F64 | None, times: F64, middle: F64
    ) -> Retargeted:
        """Pose the target in T frames, from the rotations (T, B, 4) of our character's bones in file axes.

        `root` (T, 3) m is the middle of the hips, `thorax` (T, 3) m the point between collar bones and neck, `middle`
        (3,) m that around which the path is scaled. With `contacts` (T, 2), probabilities in the world, the soles are
        held.
        """
        rig, count, index = self.rig, len(root), self._own.model.index
        wanted = np.tile(rig.quaternions, (count, 1, 1))  # global for nodes in `known`, else relative to the parent
        known = np.zeros(len(rig.parents), bool)

        def orient(node: int, own: F64, aligned: F64) -> None:
            wanted[:, node] = rotations.multiply(own, rotations.multiply(aligned, rig.rest[node]))
            known[node] = True

        hips, chest = (global_quaternions[:, index(name)] for name in ("Hips", "Spine2"))
        for bone, node in rig.bones.items():
            if node in self.moving:
                orient(node, global_quaternions[:, index(bone)], self.aligned[bone])
        for number, node in enumerate(self.spine, start=1):
            orient(node, rotations.slerp(hips, chest, np.full(count, number / len(self.spine))), self.facing)
        for node in self.neck:
            orient(node, global_quaternions[:, index("Neck")], self.aligned.get("Neck", self.facing))
        goal = middle + self.scale * (root - middle)
        self._bend_spine(wanted, known, thorax - root)
        places = self._placed(wanted, known, goal)
        if contacts is not None:
            self._hold_soles(wanted, known, places, global_quaternions, contacts, times, goal)
            places = self._placed(wanted, known, goal)
        whole, heads, scales = _world(rig, wanted, known, self._hips_at(wanted, known, goal))
        local = whole[:, self.moving].copy()
        above = rig.parents[list(self.moving)]
        local[:, above >= 0] = rotations.multiply(
            rotations.inverse(whole[:, above[above >= 0]]), whole[:, list(self.moving)][:, above >= 0]
        )
        return Retargeted(self.moving, local, self._in_parent(whole, heads, scales), heads)

    def _in_parent(self, whole: F64, heads: F64, scales: NDArray[np.float64]) -> F64:
        node = self._node("Hips")
        above = int(self.rig.parents[node])
        if above < 0:
            return heads[:, node]
        back = rotations.rotate(rotations.inverse(whole[:, above]), heads[:, node] - heads[:, above])
        result: F64 = back / scales[above]
        return result

    def _hips_at(self, wanted: F64, known: NDArray[np.bool_], goal: F64) -> F64:
        """Return the positions (T, 3) m of the hips that bring the middle of the legs to `goal`."""
        heads = _world(self.rig, wanted, known, np.zeros_like(goal))[1]
        legs = (heads[:, self._node("LeftUpLeg")] + heads[:, self._node("RightUpLeg")]) / 2
        result: F64 = goal - legs
        return result

    def _placed(self, wanted: F64, known: NDArray[np.bool_], goal: F64) -> F64:
        return _world(self.rig, wanted, known, self._hips_at(wanted, known, goal))[1]

    def _bend_spine(self, wanted: F64, known: NDArray[np.bool_], trunk: F64) -> None:
        """Bend the spine below the chest until the chest lies in the direction `trunk` (T, 3) from the hips."""
        bent = self.spine[:-1]
        if not bent:
            return
        parts = [self._node(name) for name in ("LeftShoulder", "RightShoulder") if name in self.rig.bones]
        parts = parts or [self._node("LeftArm"), self._node("RightArm")]
        point = self.rig.heads[parts].mean(axis=0)
        if self.neck:
            point = (point + self.rig.heads[self.neck[0]]) / 2
        chest = self.spine[-1]
        arm = self.unit * rotations.rotate(rotations.inverse(self.rig.rest[chest]), point - self.rig.heads[chest])
        for _ in range(_SPINE_STEPS):
            heads = self._placed(wanted, known, np.zeros((len(wanted), 3)))
            at = heads[:, chest] + rotations.rotate(wanted[:, chest], arm)
            start = heads[:, bent[0]]
            goal = np.sqrt(dot(at, at))[:, None] * unit(trunk)
            more = rotations.shortest_rotation(unit(at - start), unit(goal - start))
            wanted[:, bent] = rotations.multiply(more[:, None], wanted[:, bent])

    def _hold_soles(
        self, wanted: F64, known: NDArray[np.bool_], places: F64, own: F64, contacts: F64, times: F64, goal: F64
    ) -> None:
        """Change legs and `goal` so that soles in contact stay on the floor."""
        soles, index = self.soles, self._own.model.index
        feet = np.stack(
            [np.stack([rotations.rotate(own[:, index(f"{s}Foot")], axis) for axis in (_Z, np.eye(3)[1])], axis=1)
             for s in _SIDES], axis=1,
        )  # fmt: skip
        joints = np.zeros((len(places), len(H36M17), 3))
        for side, ankle in zip(_SIDES, _ANKLES, strict=True):
            joints[:, ankle] = places[:, self._node(f"{side}Foot")]
        if self.rise is None:
            self.rise = rise_of(joints, feet, contacts, soles)
        rise = np.array([0.0, self.rise, 0.0])
        goal += rise
        held = locked(joints + rise, feet, contacts, times, soles)
        legs = [[self._node(f"{side}{bone}") for bone in ("UpLeg", "Leg", "Foot")] for side in _SIDES]
        lengths = [float(np.linalg.norm(places[0, b] - places[0, a])) for a, b in pairwise(legs[0])]
        drop = np.zeros_like(rise + goal)
        drop[:, 1] = lowering(places[:, [leg[0] for leg in legs]] + rise, held[:, _ANKLES], contacts, times,
                              (lengths[0], lengths[1]))  # fmt: skip
        goal -= drop
        for nodes, ankle in zip(legs, _ANKLES, strict=True):
            before = places[:, nodes] + rise - drop[:, None]
            after = before.copy()
            after[:, 2] = held[:, ankle]
            place_middle(after, (0, 1, 2), (lengths[0], lengths[1]))
            for part in range(2):
                turn = rotations.shortest_rotation(
                    unit(before[:, part + 1] - before[:, part]), unit(after[:, part + 1] - after[:, part])
                )
                wanted[:, nodes[part]] = rotations.multiply(turn, wanted[:, nodes[part]])

    @cached_property
    def soles(self) -> Soles:
        """The soles of the target, relative to its ankles, in metres and in the pose of ours."""
        found = []
        for side, vertices in zip(_SIDES, self.rig.soles, strict=True):
            foot = f"{side}Foot"
            points = self.unit * rotations.rotate(self.aligned[foot], vertices - self._at(foot))
            found.append(points[points[:, 1] <= points[:, 1].min() + SOLE_M])
        return Soles((found[0], found[1]))


def _world(
    rig: TargetRig, turns: F64, known: NDArray[np.bool_] | None, hips: F64 | None = None
) -> tuple[F64, F64, F64]:
    """Return global rotations (T, N, 4), positions (T, N, 3) m and scales (N,) of all nodes.

    `turns` (T, N, 4) are relative to the parents, except for the nodes that are `known` to be global. The position of
    the hips (T, 3) m is by default that of the file.
    """
    whole, heads = turns.copy(), np.tile(rig.translations, (len(turns), 1, 1))
    scales = rig.scales.copy()
    for node in rig.order.tolist():
        above = int(rig.parents[node])
        if above >= 0:
            if known is None or not known[node]:
                whole[:, node] = rotations.multiply(whole[:, above], turns[:, node])
            heads[:, node] = heads[:, above] + scales[above] * rotations.rotate(whole[:, above], rig.translations[node])
            scales[node] *= scales[above]
        if hips is not None and node == rig.bones["Hips"]:
            heads[:, node] = hips
    return whole, heads, scales
