"""3D scene with the people and cameras of a run, as NumPy arrays of joints and meshes, independent of Open3D.

All coordinates are in metres, aligned with gravity: x right, y away from the camera, z up, floor at z = 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.results import Recording
from pose.results.cameras import ResultCamera, result_cameras
from pose.structures.colours import RGB, SIDE_COLOURS, edge_side, person_colour
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, I64, Flags
from pose.view.head import HEAD_RADIUS
from pose.world.frame import World
from pose.world.measured import DepthImages, scaled_matrix
from pose.world.upright import Upright, is_reliable, mean_up, to_stage

_MAX_POINTS = 60_000
_MAX_STEP_SHARE = 0.05  # of the depth, between neighbouring pixels of one surface
_COLOUR = np.array([0.86, 0.89, 0.94], np.float32)


class DepthCloud:
    """Points of the depth images of a run, in the axes of the 3D view."""

    def __init__(self, depth: DepthImages, table: Recording) -> None:
        """Use depth images of a result with world coordinates."""
        assert table.world_info is not None
        assert table.run is not None
        self._depth, self._table, self._world, self._camera = depth, table, table.world_info.world, table.run.camera
        self._pose = np.eye(4) if depth.extrinsics is None else np.linalg.inv(depth.extrinsics)

    def at(self, position: int) -> tuple[F32, F32]:
        """Return points (N, 3) m and colours (N, 3), 0 to 1, at frame `position`; PoseError if damaged."""
        index = self._depth.at(float(self._table.timestamps[position]))
        if index is None:
            return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)
        image = self._depth.read(index)
        step = max(1, int(np.ceil(np.sqrt(image.size / _MAX_POINTS))))
        matrix, z = scaled_matrix(self._depth, self._camera, image), image[::step, ::step].astype(np.float64)
        v, u = np.mgrid[: image.shape[0] : step, : image.shape[1] : step]
        rays = np.stack([(u - matrix[0, 2]) / matrix[0, 0], (v - matrix[1, 2]) / matrix[1, 1], np.ones(z.shape)], -1)
        points = (rays * z[..., None]) @ self._pose[:3, :3].T + self._pose[:3, 3]
        # Shaded by the normal; pixels beside an edge, some of which fly between two surfaces, are left out.
        across, down = np.gradient(points, axis=1), np.gradient(points, axis=0)
        normal = np.cross(across, down)
        length = np.maximum(np.linalg.norm(normal, axis=-1), 1e-12)
        shade = 0.35 + 0.65 * np.abs((normal * points).sum(axis=-1)) / (
            length * np.linalg.norm(points, axis=-1) + 1e-12
        )
        jump = np.maximum(np.abs(np.gradient(z, axis=0)), np.abs(np.gradient(z, axis=1)))
        kept = (z > 0) & (jump < _MAX_STEP_SHARE * z)
        static = points[kept]
        if (view := self._table.view(position)) is not None:
            static = static @ view.rotation.T + (0.0 if view.position is None else view.position)
        return to_stage(self._world.place(static)), (shade[kept][:, None] * _COLOUR).astype(np.float32)


_SIDES = 14  # sides of a tube
_RINGS = 8  # rings of a ball, from the lower pole to the upper one
_TUBE_RADIUS = 0.032  # m
_BALL_RADIUS = 0.042
_MARK_RADII = (0.36, 0.33)
_CAMERA_DEPTH = 0.35  # m, distance from the centre of a drawn camera to its image
HEAD = H36M17.index("head")


@dataclass(frozen=True, slots=True)
class Mesh:
    """A coloured surface."""

    vertices: F32  # (V, 3) m, positions of the vertices
    normals: F32  # (V, 3) unit normals of the vertices
    triangles: I64  # (F, 3) vertex indices
    colours: F32  # (V, 3) RGB colours of the vertices, 0 to 1

    @classmethod
    def join(cls, parts: list["Mesh"]) -> "Mesh":
        """Return one mesh with the triangles of all meshes in `parts`."""
        starts = np.cumsum([0] + [len(part.vertices) for part in parts])
        return cls(
            np.concatenate([part.vertices for part in parts]),
            np.concatenate([part.normals for part in parts]),
            np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=False)]),
            np.concatenate([part.colours for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class SceneCamera:
    """One of several cameras in gravity-aligned coordinates: x right, y away from the first camera, z up."""

    name: str  # name of the camera
    centre: F32  # (3,) m, optical centre
    corners: F32  # (4, 3) m, corners of its image at a fixed depth: top left, top right, bottom right, bottom left

    @classmethod
    def of(cls, camera: ResultCamera, world: World) -> "SceneCamera":
        """Convert a camera of a result to gravity-aligned coordinates."""
        width, height = camera.size
        pixels = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1]], np.float64)
        rays = _CAMERA_DEPTH * pixels @ np.linalg.inv(camera.matrix).T
        points = np.concatenate([np.zeros((1, 3)), rays])
        placed = to_stage(world.place((points - camera.translation) @ camera.rotation))
        return cls(camera.name, placed[0], placed[1:])


class SceneData:
    """The people and cameras of a run in gravity-aligned coordinates.

    Attributes:
        times: (F,) time stamps of the frames, s.
        end: End of the last frame, s.
        cameras: Cameras of the result if it has several and world coordinates, otherwise empty.
        middle: (3,) m, centre of a ball that contains nearly all joint positions, without `doubtful` people and
            `partial` frames if there are others, and every camera in `cameras`.
        radius: Radius of that ball in m.
        cloud: Surfaces in depth images; None without.
    """

    def __init__(self, table: Recording, cloud: DepthCloud | None = None) -> None:
        self.cloud = cloud
        known = np.isfinite(table.joints3d.sum(axis=(1, 2)) + table.root.sum(axis=1))
        upright = Upright(mean_up(table.joints3d[known]))
        self.times = table.timestamps
        self.end = float(self.times[-1] + (self.times[-1] - self.times[0]) / max(len(table) - 1, 1))
        info = table.world_info
        several = [] if info is None else result_cameras(table.run)
        self.cameras = [] if info is None else [SceneCamera.of(camera, info.world) for camera in several]
        self._people: list[tuple[list[int], F32]] = []
        reliable = []
        for result in table:
            rows = np.isfinite(result.poses.joints.sum(axis=(1, 2)) + result.poses.root.sum(axis=1))
            ids = result.people.ids[rows].tolist()
            placed = upright.place(result, np.flatnonzero(rows))
            self._people.append((ids, placed))
            reliable.append(is_reliable(result, table.doubtful_ids)[rows])
        self.middle, self.radius = self._extent(np.concatenate([np.zeros(0, bool), *reliable]))

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._people)

    def people(self, position: int) -> tuple[list[int], F32]:
        """Return the ids and the joints (P, 17, 3) m, aligned with gravity, of the people in frame `position`."""
        return self._people[position]

    def position_at(self, time: float) -> int:
        """Return the index of the frame to show at `time` s, the last one that has begun."""
        return int(np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(self) - 1))

    def _extent(self, reliable: Flags) -> tuple[F32, float]:
        roots = np.concatenate([placed[:, 0, :2] for _, placed in self._people] + [np.zeros((0, 2), np.float32)])
        roots = roots[reliable] if reliable.any() else roots
        centres = np.array([camera.centre[:2] for camera in self.cameras], np.float32).reshape(-1, 2)
        if len(roots) + len(centres) == 0:
            return np.array([0, 3, 0.9], np.float32), 1.5
        # Percentiles, because single frames may be wrong.
        ends = np.percentile(roots, [2, 98], axis=0) if len(roots) else roots
        ends = np.concatenate([ends, centres])
        low, high = ends.min(axis=0), ends.max(axis=0)
        middle = np.append((low + high) / 2, 0.9).astype(np.float32)
        return middle, max(1.3, 0.8 * float(np.linalg.norm(high - low)) / 2 + 0.8)


def body_mesh(joints: F32) -> Mesh:
    """Return a mesh of a skeleton (17, 3) m: cylinders and spheres coloured by left and right."""
    parts = [_balls(joints)]
    for a, b in H36M17.edges:
        parts.append(_tube(joints[a], joints[b], SIDE_COLOURS[edge_side(H36M17, a, b)]))
    return Mesh.join(parts)


def mark_mesh(joints: F32, person: int) -> Mesh:
    """Return a flat ring on the floor (z = 0) below the pelvis of joints (17, 3) m, in the person's colour."""
    angle = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(40)], axis=1)
    ground = np.array([joints[0, 0], joints[0, 1], 0.004])
    vertices = np.concatenate([circle * radius + ground for radius in _MARK_RADII]).astype(np.float32)
    normals = np.broadcast_to(np.array([0, 0, 1], np.float32), vertices.shape)
    return Mesh(vertices, normals, _bands(2, 40), _colours(person_colour(person), len(vertices)))


def grid_lines(middle: F32, radius: float) -> tuple[F32, I64]:
    """Return points (N, 3) m and lines (M, 2) of a square grid on the floor (z = 0), one line per metre."""
    reach = math.ceil(1.6 * radius) + 1
    x0, y0 = round(float(middle[0])) - reach, round(float(middle[1])) - reach
    steps = np.arange(2 * reach + 1)
    ends = []
    for step in steps:
        ends += [(x0 + step, y0, 0), (x0 + step, y0 + 2 * reach, 0), (x0, y0 + step, 0), (x0 + 2 * reach, y0 + step, 0)]
    return np.array(ends, np.float32), np.arange(len(ends)).reshape(-1, 2)


def camera_lines(cameras: Sequence[SceneCamera]) -> tuple[F32, I64]:
    """Return points (N, 3) m and index pairs (M, 2) of the pyramids from the cameras to the corners of their images."""
    pairs = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1)])
    points = [np.concatenate([camera.centre[None], camera.corners]) for camera in cameras]
    steps = 5 * np.arange(len(cameras))[:, None, None]
    return np.array(points, np.float32).reshape(-1, 3), (pairs + steps).reshape(-1, 2)


def orbit_eye(middle: F32, radius: float, azimuth: float, elevation: float, fov: float) -> NDArray[np.float64]:
    """Return the viewpoint (3,) m from which a ball is completely visible; azimuth 0 is the real camera's view (y)."""
    direction = np.array([-math.sin(azimuth), math.cos(azimuth), 0]) * math.cos(elevation)
    result: NDArray[np.float64] = middle - (direction - np.array([0, 0, math.sin(elevation)])) * radius / math.sin(
        fov / 2
    )
    return result


def _tube(start: F32, end: F32, colour: RGB) -> Mesh:
    along = end - start
    length = float(np.linalg.norm(along))
    along = along / length if length > 1e-6 else np.array([0, 0, 1], np.float32)
    other = np.eye(3)[np.argmin(np.abs(along))]
    u = np.cross(along, other)
    u /= np.linalg.norm(u)
    angle = np.linspace(0, 2 * math.pi, _SIDES, endpoint=False)[:, None]
    around = (np.cos(angle) * u + np.sin(angle) * np.cross(along, u)).astype(np.float32)
    vertices = np.concatenate([start + around * _TUBE_RADIUS, end + around * _TUBE_RADIUS])
    return Mesh(vertices, np.concatenate([around, around]), _bands(2, _SIDES), _colours(colour, 2 * _SIDES))


def _balls(joints: F32) -> Mesh:
    polar = np.linspace(math.pi, 0, _RINGS)[:, None]
    angle = np.linspace(0, 2 * math.pi, _SIDES, endpoint=False)[None]
    unit = np.stack([np.sin(polar) * np.cos(angle), np.sin(polar) * np.sin(angle), np.cos(polar) + 0 * angle], axis=-1)
    unit = unit.reshape(-1, 3).astype(np.float32)
    bands = _bands(_RINGS, _SIDES)
    parts = []
    for joint, centre in enumerate(joints):
        radius = np.float32(HEAD_RADIUS if joint == HEAD else _BALL_RADIUS)
        colours = _colours(SIDE_COLOURS[H36M17.side(joint)], len(unit))
        parts.append(Mesh(centre + unit * radius, unit, bands, colours))
    return Mesh.join(parts)


def _bands(rings: int, sides: int) -> I64:
    """Return the triangles (F, 3) between consecutive rings of vertices, facing outwards from bottom to top."""
    ring, side = np.meshgrid(np.arange(rings - 1), np.arange(sides), indexing="ij")
    a = (ring * sides + side).ravel()
    b = (ring * sides + (side + 1) % sides).ravel()
    return np.concatenate([np.stack([a, b, a + sides], axis=1), np.stack([b, b + sides, a + sides], axis=1)])


def _colours(colour: RGB, count: int) -> F32:
    return np.broadcast_to(np.array(colour, np.float32) / np.float32(255), (count, 3)).copy()
