"""Directions of faces in 3D, for formats whose characters turn their heads."""

import numpy as np

from pose.body.space import Space
from pose.body.tracks import Track
from pose.structures import rotations
from pose.structures.camera import Camera
from pose.structures.defaults import WORLD
from pose.structures.face_points import Faces, head_turns
from pose.structures.rotations import unit
from pose.structures.types import F64, I64

_Z = np.array([0.0, 0.0, 1.0])


def face_directions(track: Track, at: I64, space: Space) -> F64 | None:
    """Return directions (n, 3) of a person's face in `space`, NaN where undetected; None without faces or camera."""
    table, rows = track.recording.table, track.rows(at)
    faces, camera = table.face_rows(rows), table.camera
    if faces is None or camera is None:
        return None
    directions = directions_of(faces, camera)
    if track.space.name == WORLD and table.camera_rotation is not None:
        frames = np.searchsorted(table.frames, table.frame_index[rows])
        directions = np.einsum("nij,nj->ni", np.asarray(table.camera_rotation[frames]), directions)
    result: F64 = directions @ space.rotation.T
    return result


def directions_of(faces: Faces, camera: Camera) -> F64:
    """Return the directions (n, 3) of faces in camera axes (x right, y down, z forward); NaN where undetected."""
    # Face angles are relative to the line of sight, which follows from the position of the face in the image and the
    # camera intrinsics.
    middles = faces.points[..., :2].mean(axis=1)
    lines_of_sight = unit(camera.unproject(middles) @ np.eye(2, 3) + _Z)
    directions = head_turns(faces.points)[..., 2] * (1, -1, -1)  # relative to the line of sight
    return np.where(
        faces.detected[:, None], rotations.rotate(rotations.shortest_rotation(_Z, lines_of_sight), directions), np.nan
    )
