"""Where faces of a track point to, in 3D: for formats whose characters turn their heads."""

import numpy as np
from numpy.typing import NDArray

from pose.export import rotations
from pose.export.rotations import unit
from pose.export.tracks import Track
from pose.face_points import head_turns
from pose.spaces import WORLD
from pose.types import I64

F64 = NDArray[np.float64]

_Z = np.array([0.0, 0.0, 1.0])


def face_directions(track: Track, at: I64) -> F64 | None:
    """(n, 3) directions in file axes that the faces in the frames `at` point to, NaN where a face is not seen.

    None for a result without faces. The angles of a face are relative to the line of sight, which is known of its place
    in the image and the camera's intrinsics.
    """
    table, rows = track.recording.table, track.rows(at)
    faces, camera = table.face_rows(rows), table.camera
    if faces is None or camera is None:
        return None
    middles = faces.points[..., :2].mean(axis=1)
    sight = unit((middles - camera.matrix[:2, 2]) @ np.diag(1 / np.diag(camera.matrix)[:2]) @ np.eye(2, 3) + _Z)
    out = head_turns(faces.points)[..., 2] * (1, -1, -1)  # in the camera's axes, if it looked straight at the face
    ways = rotations.rotate(rotations.between(_Z, sight), out)
    if track.space.name == WORLD and table.camera_rotation is not None:
        frames = np.searchsorted(table.frames, table.frame_index[rows])
        ways = np.einsum("nij,nj->ni", np.asarray(table.camera_rotation[frames]), ways)
    result: F64 = np.where(faces.seen[:, None], ways @ track.space.turn.T, np.nan)
    return result
