"""Body meshes for the live page. The shape of a person is sent once, and the pose with each result."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.character.hands import hands_of
from pose.body.character.look import moving_bones
from pose.body.character.posing import pose_character
from pose.body.character.rest import Character
from pose.body.fitted_bodies import FittedBodies, faces_in, hands_in, nearest_rows
from pose.body.space import CAMERA_SPACE
from pose.export.html import mesh_arrays, mesh_metadata, pose_numbers, rest_numbers
from pose.live import LiveResult
from pose.structures.types import F32, F64
from pose.utils.json_values import Json


@dataclass(frozen=True, slots=True, eq=False)
class EncodedShape:
    """The fitted body shape of one person."""

    # `version` is unique among the shapes of a live loop; `rest` is the rest pose (`rest_numbers`), encoded by
    # `packed`.

    character: Character  # fitted character
    version: int  # number that is unique among the shapes of a live loop
    rest: str  # rest pose (`pose.export.html.rest_numbers`), encoded by `packed`


class PageBodies:
    """Encoder of body meshes for the 3D view of the page, for the people of one live loop."""

    def __init__(self) -> None:
        self.shapes: Mapping[int, EncodedShape] = {}  # shapes of the people who have a body in the last result
        self._version = 0
        self._fitted = FittedBodies(self._shape)

    def of(self, live: LiveResult, rows: Sequence[int], stage: F32) -> dict[int, Json]:
        """Return `shape` (version) and `pose` (encoded) of the people nearest to the camera, by index in the result."""
        found: dict[int, Json] = {}
        shapes = {}
        for row in nearest_rows(live.result, list(rows)):
            person = int(live.result.people.ids[row])
            joints = stage[list(rows).index(row)].astype(np.float64)[None][..., [0, 2, 1]] * (1, 1, -1)
            shape = shapes[person] = self._fitted.of(person, joints)
            found[row] = {"shape": shape.version, "pose": self._pose(shape.character, live, row, joints)}
        self.shapes = shapes
        return found

    def _pose(self, character: Character, live: LiveResult, row: int, stage_joints: F64) -> list[Json]:
        """Return the encoded position and rotations of a body, with hands and face if they were estimated."""
        result = live.result
        rows, joints = [(result, row)], (result.poses.joints[row] + result.poses.root[row])[None]
        rotation = _rotation(CAMERA_SPACE.to_file(joints[0].astype(np.float64)), stage_joints[0])
        hands, faces, feet, heads = hands_in(rows, joints), None, None, None
        if live.stream is not None:
            camera, skeleton = live.stream.session.camera, live.skeleton
            faces = faces_in(rows, camera)
            observed = int(result.people.ids[row]), rows, joints, camera, skeleton
            feet, heads = self._fitted.feet(*observed) @ rotation.T, self._fitted.heads(*observed)
        posed = pose_character(
            character,
            stage_joints,
            None if hands is None else hands_of(character, hands @ rotation.T),
            None if faces is None else faces @ rotation.T,
            feet,
            heads,
        )
        moving = moving_bones(character.model, fingers=True)
        numbers: list[Json] = np.rint(pose_numbers(posed.root, posed.quaternions[:, moving])[0]).astype(int).tolist()
        return numbers

    def _shape(self, character: Character) -> EncodedShape:
        self._version += 1
        return EncodedShape(character, self._version, packed(np.rint(rest_numbers(character)).astype("<i2")))


def _rotation(start: F64, goal: F64) -> F64:
    """Return the rotation (3, 3) that best maps `start` (N, 3) to `goal` (Kabsch, Acta Cryst. A32, 1976)."""
    left, _, right = np.linalg.svd((start - start.mean(axis=0)).T @ (goal - goal.mean(axis=0)))
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0])
    rotation: F64 = ((left * signs) @ right).T
    return rotation


def page_mesh() -> dict[str, Json]:
    """Return the mesh that all bodies share, encoded by `packed`, for the first message to the page."""
    from pose.body.character.model import body_model

    moving: list[Json] = list(moving_bones(body_model("light"), fingers=True))
    return mesh_metadata() | {name: packed(values) for name, values in mesh_arrays().items()} | {"moving": moving}


def packed(values: NDArray[np.generic]) -> str:
    """Encode the bytes of an array as base64."""
    return base64.b64encode(values.tobytes()).decode()
