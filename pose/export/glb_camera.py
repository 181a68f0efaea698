"""The cameras of a result in the coordinate frame of an export, and in glTF.

glTF has neither principal point nor lens distortion. A camera with an off-centre principal point is rotated so that its
axis passes through the image centre. The centre is then exact; other points deviate by the difference between a shift
and a rotation. The exact matrix is in `extras`. A changing focal length is animated with the extension
KHR_animation_pointer.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from pose.body.selection import without_world
from pose.body.space import Space
from pose.body.tracks import Selection
from pose.export.gltf import XYZW, Animation, Buffer
from pose.results.cameras import result_cameras
from pose.structures.camera_rotations import to_matrix
from pose.structures.defaults import CAMERA
from pose.structures.rotations import from_matrix, same_sign
from pose.structures.types import F64
from pose.utils.json_values import Json
from pose.utils.shown import shown

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


POINTER = "KHR_animation_pointer"
_NEAR, _FAR = 0.05, 1000.0  # m, clipping planes
_MIN_ZOOM_RATIO = 1.01  # ratio of the longest to the shortest focal length above which zoom is animated
_MIN_NOTED_PX = 1.0  # displacement of image points above which the summary has a note
_AXES = np.diag([1.0, -1.0, -1.0])  # from glTF's camera axes to x right, y down, z forward
_GRID_POINTS = 9  # grid points along each side of the image at which the displacement is evaluated


@dataclass(frozen=True, slots=True, eq=False)
class GlbCamera:
    """A camera in a GLB file, with F poses: one per frame, or F = 1 if the camera is static."""

    # All but `view` approximate the camera, since glTF has neither lens distortion nor a principal point off the
    # centre.

    view: Viewpoint  # the exact camera
    positions: F64  # (F, 3) positions in the file's axes (y up), m
    quaternions: F64
    fields_of_view: F64  # (F,) vertical fields of view, rad
    aspect: float  # aspect ratio of the image plane, width / height
    max_displacement_px: float  # largest distance between an image point of the exact and of the approximate camera, px

    @property
    def moves(self) -> bool:
        """Whether the camera has more than one pose."""
        return len(self.quaternions) > 1

    @property
    def zooms(self) -> bool:
        """Whether the field of view changes enough to be animated."""
        return bool(self.view.zooms.max() / self.view.zooms.min() > _MIN_ZOOM_RATIO)

    @property
    def field_of_view(self) -> float:
        """Median vertical field of view, rad."""
        return float(np.median(self.fields_of_view))

    def document(self) -> dict[str, Json]:
        """Return the camera's entry in the list `cameras` of the glTF document."""
        width, height = self.view.size
        extras = {"K": self.view.matrix.tolist(), "size": [width, height]}
        perspective = {"aspectRatio": self.aspect, "yfov": self.field_of_view, "znear": _NEAR, "zfar": _FAR}
        return cast(
            dict[str, Json],
            {"name": self.view.name, "type": "perspective", "perspective": perspective, "extras": extras},
        )

    def note(self) -> str:
        """Return a note on the approximation of the camera; empty if it is exact."""
        notes = []
        if self.zooms:
            low, high, median = np.degrees([self.fields_of_view.min(), self.fields_of_view.max(), self.field_of_view])
            notes.append(
                f"zoom, {low:.1f} to {high:.1f} degrees, is animated by {POINTER} (Blender 5 reads it); "
                f"elsewhere the field of view is {median:.1f} degrees"
            )
        if self.max_displacement_px > _MIN_NOTED_PX:
            notes.append(
                "the principal point is not at the image centre: points are displaced by up to "
                f"{self.max_displacement_px:.0f} px"
            )
        name = "" if self.view.name == ONLY else f" {shown(self.view.name)}"
        return f"camera{name}: {'; '.join(notes)}" if notes else ""


def glb_camera(view: Viewpoint) -> GlbCamera:
    """Return the glTF camera that approximates a camera with an arbitrary principal point."""
    (width, height), matrix = view.size, view.matrix
    middle = np.linalg.inv(matrix) @ [(width - 1) / 2, (height - 1) / 2, 1]
    distance = float(np.hypot(middle[0], middle[1]))
    axis = np.array([-middle[1], middle[0], 0.0]) / max(distance, 1e-12)
    aim = to_matrix((np.arctan(distance) * axis)[None])[0]
    fields_of_view = 2 * np.arctan(height / (2 * matrix[1, 1] * view.zooms))
    aspect = width / matrix[0, 0] / (height / matrix[1, 1])
    quaternions = same_sign(from_matrix(view.rotations @ aim @ _AXES))
    return GlbCamera(view, view.positions, quaternions, fields_of_view, float(aspect), _max_displacement(view, aim))


def add_camera(
    camera: GlbCamera, start: float, buffer: Buffer, cameras: list[dict[str, Json]], nodes: list[dict[str, Json]],
    scene: list[int], animation: Animation,
) -> None:  # fmt: skip
    """Add a camera and its node to the lists of a file, and its motion and zoom from `start` s on to `animation`."""
    node = len(nodes)
    position, quaternion = camera.positions[0].tolist(), camera.quaternions[0, XYZW].tolist()
    place: dict[str, Json] = {"translation": position, "rotation": quaternion}
    nodes.append({"name": camera.view.name, "camera": len(cameras), **place})
    scene.append(node)
    cameras.append(camera.document())
    if not camera.moves:
        return
    times = buffer.keep_with_range((camera.view.times - start).astype(np.float32), "SCALAR")
    turns = buffer.keep(camera.quaternions[:, XYZW].astype(np.float32), "VEC4")
    animation.move(node, "rotation", times, turns)
    if np.ptp(camera.positions, axis=0).any():
        animation.move(node, "translation", times, buffer.keep(camera.positions.astype(np.float32), "VEC3"))
    if camera.zooms:
        pointer = {"pointer": f"/cameras/{len(cameras) - 1}/perspective/yfov"}
        fields = buffer.keep(camera.fields_of_view.astype(np.float32), "SCALAR")
        animation.add({"path": "pointer", "extensions": {POINTER: pointer}}, times, fields)


def _max_displacement(view: Viewpoint, aim: F64) -> float:
    """Return the largest displacement of an image point by the approximation, px."""
    size, matrix = np.array(view.size), view.matrix
    across = np.linspace(-0.5, size - 0.5, _GRID_POINTS)
    x, y = np.meshgrid(across[:, 0], across[:, 1])
    pixels = np.stack([x.ravel(), y.ravel(), np.ones(x.size)], axis=1)
    seen = (pixels @ np.linalg.inv(matrix).T) @ aim
    shown = matrix[[0, 1], [0, 1]] * seen[:, :2] / seen[:, 2:] + (size - 1) / 2
    return float(np.linalg.norm(shown - pixels[:, :2], axis=1).max())
