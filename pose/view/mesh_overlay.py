"""Shaded body meshes of tracked people for the image overlay.

A body mesh with few vertices is fitted to each person and posed in each frame.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from pose.body.character.hands import hands_of
from pose.body.character.posing import Posed, pose_character
from pose.body.character.rest import Character, vertex_normals
from pose.body.fitted_bodies import FittedBodies, faces_in, hands_in, nearest_rows, visible_rows
from pose.body.space import CAMERA_SPACE
from pose.structures import rotations
from pose.structures.camera import Camera
from pose.structures.defaults import DRAWN_SCORE
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, FrameResult
from pose.view.bodies import BodyMesh
from pose.view.draw import MAX_COORDINATE_PX
from pose.view.insets import AUTO, OFF
from pose.view.overlay import Overlay

BATCH_FRAMES = 32  # frames per batch
_MIN_DEPTH_M = 0.15  # triangles nearer to the camera are not drawn
# Direction to the light (x right, y up, z towards the camera): mostly above, and on the camera's side.
_LIGHT = rotations.unit(np.array([-0.45, 0.7, 0.55]))
_AMBIENT = 0.35  # light on a surface parallel to the rays


class BodyMeshes:
    """Body meshes of the tracked people of a video, computed frame by frame. Implements `pose.view.bodies.Bodies`.

    The body shape of a person is fitted to the median bone lengths of the frames so far. It can change in the first
    seconds of a stream, unless the bone lengths are constant.
    """

    def __init__(self, camera: Camera, skeleton: Skeleton, *, live: bool = False) -> None:
        """Start without people; `live` draws only the `LIVE_PEOPLE` nearest to the camera."""
        self._live = live
        self._camera, self._skeleton = camera, skeleton
        self._fitted = FittedBodies(_Skin)
        self._meshes_by_frame: dict[int, list[BodyMesh]] = {}

    def of(self, result: FrameResult) -> list[BodyMesh]:
        """Return the meshes of the people in a frame who have a 3D pose and a visible keypoint."""
        if result.index not in self._meshes_by_frame:
            self._meshes_by_frame = {}
            self._prepare([result])
        return self._meshes_by_frame[result.index]

    def in_batches(self, results: Iterable[FrameResult]) -> Iterator[FrameResult]:
        """Yield the results unchanged, and compute their meshes for `of` in batches of `BATCH_FRAMES` frames."""
        remaining = iter(results)
        while batch := list(islice(remaining, BATCH_FRAMES)):
            self._meshes_by_frame = {}
            self._prepare(batch)
            yield from batch

    def _prepare(self, results: list[FrameResult]) -> None:
        self._meshes_by_frame.update({result.index: [] for result in results})
        by_person: dict[int, list[tuple[FrameResult, int]]] = {}
        for result in results:
            visible = visible_rows(result, DRAWN_SCORE)
            for row in nearest_rows(result, visible) if self._live else visible:
                by_person.setdefault(int(result.people.ids[row]), []).append((result, row))
        for track_id, observations in by_person.items():
            joints = np.stack([result.poses.joints[row] + result.poses.root[row] for result, row in observations])
            skin = self._fitted.of(track_id, CAMERA_SPACE.to_file(joints.astype(np.float64)))
            for (result, _), mesh in zip(observations, self._meshes(track_id, skin, observations, joints), strict=True):
                self._meshes_by_frame[result.index].append(mesh)

    def _meshes(
        self, track_id: int, skin: "_Skin", observations: list[tuple[FrameResult, int]], joints: F32
    ) -> Iterator[BodyMesh]:
        space_joints = CAMERA_SPACE.to_file(joints.astype(np.float64))
        hands = hands_in(observations, joints)
        turns = None if hands is None else hands_of(skin.character, hands)
        observed = track_id, observations, joints, self._camera, self._skeleton
        faces = faces_in(observations, self._camera)
        feet, heads = self._fitted.feet(*observed), self._fitted.heads(*observed)
        posed = pose_character(skin.character, space_joints, turns, faces, feet, heads)
        zooms = [1.0 if result.view is None else result.view.zoom for result, _ in observations]
        yield from skin.meshes(track_id, posed, [_zoomed(self._camera, zoom) for zoom in zooms])


def make_overlay(camera: Camera, skeleton: Skeleton, *, inset: bool, body: bool) -> Overlay:
    """Make the overlay for the RGB images of a camera."""
    return Overlay(camera.size, skeleton, AUTO if inset else OFF, bodies=BodyMeshes(camera, skeleton) if body else None)


def _zoomed(camera: Camera, zoom: float) -> Camera:
    """Return the camera with its focal length multiplied by `zoom`."""
    matrix = camera.matrix.copy()
    matrix[[0, 1], [0, 1]] *= zoom
    return replace(camera, matrix=matrix)


class _Skin:
    """The mesh of a character (skinned body model), prepared for fast posing."""

    def __init__(self, character: Character) -> None:
        self.character = character
        model = character.model
        self._faces = model.faces.astype(np.int64)
        count = len(character.vertices)
        self._weights = np.zeros((count, len(model.names)), np.float32)
        np.add.at(self._weights, (np.arange(count)[:, None], model.bones), model.weights.astype(np.float32))
        self._vertices = np.concatenate([character.vertices, np.ones((count, 1))], axis=1).astype(np.float32)
        self._normals = vertex_normals(character).astype(np.float32)

    def meshes(self, track_id: int, posed: Posed, cameras: list[Camera]) -> Iterator[BodyMesh]:
        """Yield the mesh of each posed frame, projected to the image by its camera."""
        turned = np.swapaxes(rotations.rotate(posed.global_quaternions[:, :, None], np.eye(3)), -1, -2)
        shift = posed.heads - (turned @ self.character.heads[..., None])[..., 0]
        # Per bone: the map from the rest pose, and the direction of the light in the rest pose.
        bones = np.concatenate([turned, shift[..., None]], axis=-1).reshape(*shift.shape[:2], 12)
        bones = np.concatenate([bones, _LIGHT @ turned], axis=-1).astype(np.float32)
        for frame, camera in enumerate(cameras):
            maps = self._weights @ bones[frame]
            vertices = (maps[:, :12].reshape(-1, 3, 4) * self._vertices[:, None]).sum(axis=2)
            yield self._visible_triangles(track_id, vertices, (maps[:, 12:] * self._normals).sum(axis=1), camera)

    def _visible_triangles(self, track_id: int, vertices: F32, facing: F32, camera: Camera) -> BodyMesh:
        """Return the visible triangles of one frame, of vertices (V, 3) m: x right, y up, z towards the camera."""
        depth = -vertices[:, 2]
        too_near = depth < _MIN_DEPTH_M
        matrix, flip, depths = camera.matrix, np.array([1, -1]), np.where(too_near, 1, depth)[:, None]
        if camera.distorted:
            pixels = camera.project(np.concatenate([vertices[:, :2] * flip, depths], axis=1).astype(np.float64))
        else:
            pixels = vertices[:, :2] * (matrix[[0, 1], [0, 1]] * flip / depths) + matrix[:2, 2]
        pixels = np.clip(pixels, -MAX_COORDINATE_PX, MAX_COORDINATE_PX).astype(np.float32)
        # Counter-clockwise from outside; y points down in the image.
        (ax, ay), (bx, by), (cx, cy) = (pixels[column].T for column in self._faces.T)
        visible = self._faces[(bx - ax) * (cy - ay) < (by - ay) * (cx - ax)]
        if too_near.any():
            visible = visible[~too_near[visible].any(axis=1)]
        light = np.clip(_AMBIENT + (1 - _AMBIENT) * facing[visible].mean(axis=1), 0, 1)
        return BodyMesh(track_id, pixels[visible], depth[visible].mean(axis=1), light)
