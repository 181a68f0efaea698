"""The cameras of a result in the coordinate frame of an export: their poses and intrinsics in every frame."""

from dataclasses import dataclass

import numpy as np

from pose.body.selection import without_world
from pose.body.space import Space
from pose.body.tracks import Selection
from pose.results.cameras import result_cameras
from pose.structures.spaces import CAMERA
from pose.structures.types import F64

ONLY = "camera"  # name of the camera in a result with one camera


@dataclass(frozen=True, slots=True, eq=False)
class Viewpoint:
    """A camera in F frames; F = 1 if it is static."""

    name: str  # name, unique among the cameras of a result
    size: tuple[int, int]  # (width, height) of the image, px
    matrix: F64  # (3, 3) intrinsics for zoom 1, px
    times: F64  # (F,) s
    positions: F64  # (F, 3) positions in file axes, m
    rotations: F64  # (F, 3, 3) rotations from camera axes (x right, y down, z forward) to file axes (y up)
    zooms: F64  # (F,) focal length relative to that of `matrix`


def viewpoints(recording: Selection, space: Space) -> list[Viewpoint]:
    """Return the cameras of a recording in `space`; empty if unknown or camera motion is not compensated."""
    table, start = recording.table, recording.times[:1]
    if cameras := result_cameras(table.run):
        return [
            _static(
                result_camera.name,
                result_camera.size,
                result_camera.matrix,
                start,
                result_camera.place,
                result_camera.rotation.T,
                space,
            )
            for result_camera in cameras
        ]
    if (camera := table.camera) is None:
        return []
    # In the camera frame, joints are relative to the camera of each image, so the camera does not move.
    still = space.name == CAMERA
    if not still and table.camera_rotation is None and without_world(table):
        return []
    span = slice(recording.first, recording.last)
    zooms = np.ones(1) if table.camera_zoom is None else np.asarray(table.camera_zoom[span], np.float64)
    if table.camera_rotation is None or (still and not np.ptp(zooms)):
        return [_static(ONLY, camera.size, camera.matrix, start, np.zeros(3), np.eye(3), space)]
    rotations = np.tile(np.eye(3), (len(zooms), 1, 1)) if still else np.asarray(table.camera_rotation[span], np.float64)
    positions = np.zeros((len(rotations), 3))
    if not still and table.camera_position is not None:
        positions += recording.path_scale * np.asarray(table.camera_position[span], np.float64)
    times = recording.times
    if not still and table.camera_sigma is not None:  # readers interpolate over frames with an unknown camera pose
        is_known = np.isfinite(table.camera_sigma[span])
        times, positions, rotations, zooms = times[is_known], positions[is_known], rotations[is_known], zooms[is_known]
        if not len(times):
            return []
    return [
        Viewpoint(ONLY, camera.size, camera.matrix, times, space.to_file(positions), space.rotation @ rotations, zooms)
    ]


def _static(
    name: str, size: tuple[int, int], matrix: F64, start: F64, position: F64, rotation: F64, space: Space
) -> Viewpoint:
    """Create a static camera from a position (3,) m and rotation (3, 3) in the camera axes that `space` converts."""
    positions, rotations = space.to_file(position[None]), (space.rotation @ rotation)[None]
    return Viewpoint(name, size, np.asarray(matrix, np.float64), start, positions, rotations, np.ones(1))
