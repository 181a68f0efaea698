"""The T-pose of a fitted character.

The A-pose of the model is rotated to the T-pose. Its bones are then stretched where their lengths still differ from the
person's.

Linear blend skinning shrinks rotated shoulders. Each vertex is therefore the mean of two positions: the skinned one,
and the one that the inverse skinning maps to its place in the A-pose. This halves the loss of volume.
"""

from dataclasses import dataclass

import numpy as np

from pose.body.character.model import BodyModel
from pose.body.character.shape import HEAD_POINT, LENGTHS, NECK_POINT, Shape, lengths_of_body, thorax_of_heads
from pose.body.skeleton import NAMES, Body
from pose.structures.rotations import shortest_rotation
from pose.structures.types import F64

MAX_STRETCH = 1.25  # maximum stretch factor of a bone after the shape is fitted; the minimum is 1 / MAX_STRETCH
MAX_NECK_STRETCH = 1.4  # the same for the neck, whose length is measured less exactly because it is short
# Distance of the Human3.6M-17 spine joint behind the line from pelvis to thorax, in trunk lengths. Its medians for
# lifted people in three clips are 15 to 26 mm.
SPINE_BACK = 0.04
_TRUNK = ("Hips", "Spine", "Spine1", "Spine2")


@dataclass(frozen=True, slots=True)
class Character:
    """Body of a person in the T-pose: soles at y = 0, arms along x, facing z.

    Five joints of Human3.6M-17 are attributes; the other twelve are heads of bones, where bones start.
    """

    model: BodyModel  # body model with the bones and skin weights
    shape: Shape  # fitted shape of the person
    heads: F64  # (B, 3) m, heads of the bones
    vertices: F64  # (V, 3) m, vertices of the mesh
    pelvis: F64  # (3,) m, joint that moves with the bone Hips
    spine: F64  # (3,) m, joint that moves with Spine1
    thorax: F64  # (3,) m, joint that moves with Spine2
    neck: F64  # (3,) m, joint that moves with Head
    head: F64  # (3,) m, joint that moves with Head


def make_character(model: BodyModel, shape: Shape, body: Body) -> Character:
    """Make the character with a fitted shape, and stretch its bones to the lengths of `body`."""
    old = model.heads_of(shape.coefficients)
    parents, index = model.parents, model.index
    offsets = dict(zip(NAMES, body.offsets, strict=True))
    pelvis = (old[index("LeftUpLeg")] + old[index("RightUpLeg")]) / 2
    thorax = thorax_of_heads(model, old)
    trunk = float(np.linalg.norm(offsets["spine"]) + np.linalg.norm(offsets["thorax"]))
    height_factor = _bounded(trunk / float(np.linalg.norm(thorax - pelvis)))
    width_factor = _bounded(offsets["left_hip"][0] / np.abs(old[index("LeftUpLeg")][0] - pelvis[0]))
    new = np.zeros_like(old)
    maps = np.zeros((len(parents), 3, 3))

    def carried(bone: int, point: F64) -> F64:
        """Return where a point (3,) m of the A-pose lies in the T-pose if it moves with `bone`."""
        moved: F64 = new[bone] + maps[bone] @ (point - old[bone])
        return moved

    for bone, name in enumerate(model.names):
        side = 1.0 if name.startswith("Left") else -1.0
        maps[bone] = np.eye(3)
        if name in _TRUNK:
            maps[bone] = np.diag([width_factor if name == "Hips" else 1.0, height_factor, 1.0])
            new[bone] = (maps[bone] @ (old[bone] - pelvis)) if bone == 0 else carried(int(parents[bone]), old[bone])
            continue
        new[bone] = carried(int(parents[bone]), old[bone])
        joint = name.removeprefix("Left").removeprefix("Right")
        if joint in ("UpLeg", "Leg"):
            end, wanted = ("Leg", "knee") if joint == "UpLeg" else ("Foot", "ankle")
            length = float(np.linalg.norm(offsets[f"left_{wanted}"]))
            child = old[index(name.replace(joint, end))]
            maps[bone] = _aimed(child - old[bone], np.array([0.0, -1.0, 0.0]), length)
        elif joint in ("Arm", "ForeArm"):
            end, wanted = ("ForeArm", "elbow") if joint == "Arm" else ("Hand", "wrist")
            length = float(np.linalg.norm(offsets[f"left_{wanted}"]))
            child = old[index(name.replace(joint, end))]
            maps[bone] = _aimed(child - old[bone], np.array([side, 0.0, 0.0]), length)
        elif joint == "Neck":
            longer = _neck_stretch(model, shape, body, old)
            maps[bone] = np.diag([1.0, longer, 1.0])
        elif joint == "Shoulder":
            top = carried(index("Spine2"), thorax)
            goal = top + offsets["left_shoulder"] * (side, 1, 1) - new[bone]
            child = old[index(name.replace("Shoulder", "Arm"))] - old[bone]
            maps[bone] = _aimed(child, goal / np.linalg.norm(goal), float(np.linalg.norm(goal)))
        elif joint.startswith("Hand"):
            arm = "Left" if side > 0 else "Right"
            forearm = old[index(f"{arm}Hand")] - old[index(f"{arm}ForeArm")]
            maps[bone] = _rotation(forearm, np.array([side, 0.0, 0.0]))
    spine = index("Spine2")
    skull = new[index("Head")]
    crown = (HEAD_POINT - NECK_POINT) / np.linalg.norm(HEAD_POINT - NECK_POINT) * np.linalg.norm(offsets["head"])
    chest = carried(spine, thorax)
    middle = chest * (np.linalg.norm(offsets["spine"]) / max(trunk, 1e-9)) + (0, 0, -SPINE_BACK * trunk)
    vertices = _skinned(model, model.vertices_of(shape.coefficients), old, new, maps)
    floor = np.array([0.0, vertices[:, 1].min(), 0.0])
    return Character(
        model, shape, new - floor, vertices - floor, -floor, middle - floor, chest - floor,
        skull + NECK_POINT - floor, skull + NECK_POINT + crown - floor,
    )  # fmt: skip


def _neck_stretch(model: BodyModel, shape: Shape, body: Body, old: F64) -> float:
    """Return the stretch factor of the neck that matches the tracked distance from thorax to base of the skull."""
    neck, head = (old[model.index(name)][1] for name in ("Neck", "Head"))
    missing = lengths_of_body(body)[LENGTHS.index("skull")] - shape.lengths[LENGTHS.index("skull")]
    return float(np.clip((head - neck + missing) / (head - neck), 1 / MAX_NECK_STRETCH, MAX_NECK_STRETCH))


def _bounded(ratio: float) -> float:
    return float(np.clip(ratio, 1 / MAX_STRETCH, MAX_STRETCH))


def _rotation(start: F64, goal: F64) -> F64:
    """Return the shortest rotation (3, 3) from direction `start` to unit vector `goal`."""
    w, x, y, z = shortest_rotation(start / np.linalg.norm(start), goal)
    matrix: F64 = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return matrix


def _aimed(bone: F64, goal: F64, length: float) -> F64:
    """Return the matrix (3, 3) that rotates a bone to `goal` and stretches it to `length` m, within `MAX_STRETCH`."""
    own = float(np.linalg.norm(bone))
    along = bone / own
    return _rotation(along, goal) @ (np.eye(3) + (_bounded(length / own) - 1) * np.outer(along, along))


def _skinned(model: BodyModel, vertices: F64, old: F64, new: F64, maps: F64) -> F64:
    """Move vertices (V, 3) m from the A-pose to the T-pose with less loss of volume than linear blend skinning."""
    # Each result is the mean of two points: the skinned vertex, and the point that skinning maps back to the A-pose
    # vertex.
    there = _blended(model, maps, new - np.einsum("bij,bj->bi", maps, old))
    back: F64 = np.linalg.inv(maps).astype(np.float64)
    again = _blended(model, back, old - np.einsum("bij,bj->bi", back, new))
    forward: F64 = np.einsum("vij,vj->vi", there[0], vertices) + there[1]
    start = np.linalg.solve(again[0], (vertices - again[1])[..., None])[..., 0].astype(np.float64)
    placed: F64 = (forward + start) / 2
    return placed


def _blended(model: BodyModel, maps: F64, shift: F64) -> tuple[F64, F64]:
    """Blend affine maps (B, 3, 3), (B, 3) m of bones by the skin weights to those (V, 3, 3), (V, 3) of vertices."""
    matrix = np.einsum("vk,vkij->vij", model.weights, maps[model.bones])
    return matrix, np.einsum("vk,vkj->vj", model.weights, shift[model.bones])


def vertex_normals(character: Character) -> F64:
    """Compute unit normals (V, 3) of the vertices, weighted by the areas of adjacent triangles."""
    corners = character.vertices[character.model.faces.astype(np.int64)]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros_like(character.vertices)
    for corner in range(3):
        np.add.at(total, character.model.faces[:, corner], across)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0, total / np.maximum(length, 1e-12), (0.0, 1.0, 0.0))
