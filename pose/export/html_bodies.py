"""Bodies and hands of the HTML report: meshes, bone rotations and hand points, as numbers in script elements."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pose.body.character.look import CharacterMotion, character_of, moving_bones
from pose.body.character.model import body_model
from pose.body.character.rest import Character
from pose.body.space import Space
from pose.body.tracks import Track
from pose.utils.json_values import Json

MAX_BODIES = 20  # maximum per page; the first people on the page have a body
_REST_UNIT_M = 1e-4  # m; unit of vertices and bones in the rest pose
QUATERNION_SCALE = 32767  # scale factor of x, y and z of a quaternion, whose sign is chosen so that w >= 0


class PageBody:
    """The body mesh of a person on the page: its rest pose and its motion."""

    def __init__(self, track: Track, space: Space) -> None:
        self._character: Character = character_of(track, "light")
        self._motion = CharacterMotion(track, self._character, space)
        self._moving = moving_bones(self._character.model, fingers=self._motion.hands)

    def rest(self) -> NDArray[np.float64]:
        """Return the rest pose (B + V, 3) in tenths of a millimetre: start points of the B bones, then V vertices."""
        return rest_numbers(self._character)

    def frames(self) -> Iterator[NDArray[np.float64]]:
        """Yield poses (n, 3 + 3 M) of each portion: root in mm, then x, y, z of M scaled quaternions; NaN in gaps."""
        for span, motion in self._motion.spans():
            rows = pose_numbers(motion.root, motion.quaternions[:, self._moving])
            rows[~span.known] = np.nan
            yield rows

    @property
    def moving(self) -> list[int]:
        """Indices of the bones that rotate."""
        return self._moving


def rest_numbers(character: Character) -> NDArray[np.float64]:
    """Return the rest pose (B + V, 3) in tenths of a millimetre: start points of the B bones, then V vertices."""
    return np.concatenate([character.heads, character.vertices]) / _REST_UNIT_M


def pose_numbers(root: NDArray[np.float64], quaternions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Encode poses (n, 3 + 3 M) for the page: the root in mm, then x, y, z of quaternions * `QUATERNION_SCALE`."""
    quaternions = np.where(quaternions[..., :1] < 0, -quaternions, quaternions)[..., 1:] * QUATERNION_SCALE
    return np.concatenate([1000 * root, quaternions.reshape(len(quaternions), -1)], axis=1)


def mesh_arrays() -> dict[str, NDArray[np.generic]]:
    """Return the arrays of the mesh that all bodies share.

    Returns:
        `triangles`: (F, 3) vertex indices. `bones`: (V, 4) indices of the bones that move each vertex. `weights`: (V,
        4) skin weights times 65535.
    """
    model = body_model("light")
    return {
        "triangles": model.faces.astype("<u2"),
        "bones": model.bones,
        "weights": np.rint(model.weights * 65535).astype("<u2"),
    }


def mesh_metadata() -> dict[str, Json]:
    """Return what the page needs to decode bodies.

    Returns:
        `parents`: Index of the parent of each bone, -1 for the root. `unit`: Length unit of the rest pose in m.
        `turn`: Scale factor of x, y and z of the quaternions.
    """
    return {"parents": body_model("light").parents.tolist(), "unit": _REST_UNIT_M, "turn": QUATERNION_SCALE}


def hand_rows(track: Track, space: Space) -> Iterator[NDArray[np.float64]]:
    """Yield hand points (n, 126) mm (2 hands x 21 x 3, z up) of each portion of a track; NaN if undetected."""
    for span in track.spans():
        at = span.start + np.arange(len(span.times))
        points = space.to_file(track.hands(at).points)
        points = np.stack([points[..., 0], -points[..., 2], points[..., 1]], axis=-1)
        yield 1000 * points.reshape(len(points), -1)
