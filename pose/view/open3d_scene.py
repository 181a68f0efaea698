"""Rendering of the 3D scene by Open3D (extra `[view3d]`), to images and videos without a window.

Open3D's lights, shadows and post-processing take seconds per image without a GPU, so they are off. The colours of the
meshes contain the shading instead.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.structures.colours import PAPER, RGB, person_colour
from pose.structures.types import F32, I64, U8
from pose.utils.filling import check_gap_frames
from pose.utils.native_stderr import silenced
from pose.view import draw
from pose.view.scene import HEAD, Mesh, SceneData, body_mesh, camera_lines, grid_lines, mark_mesh, orbit_eye

if TYPE_CHECKING:
    from open3d import geometry
    from open3d.visualization import rendering

INSTALL = 'pip install "pose-run[view3d]"'
SYSTEM = "apt-get install libusb-1.0-0 libgl1 libegl1 libgomp1 libvulkan1 mesa-vulkan-drivers"
OFF_SCREEN_DRIVER = f"Open3D finds no driver to render without a window; install one: {SYSTEM}"
FOV_DEGREES = 38.0
ELEVATION_DEGREES = 16.0
AZIMUTH_DEGREES = 32.0
BACKGROUND = (0.38, 0.40, 0.44, 1.0)  # without post-processing, Open3D raises these values to the power 2.2
_LIGHT = np.array([-0.36, -0.55, 0.75], np.float32)  # direction towards the light: left, behind the camera, above
_GRID_COLOUR = (0.60, 0.63, 0.68, 1.0)
_CAMERA_COLOUR = (0.93, 0.95, 0.98, 1.0)
_CLOUD, _POINT_SIZE = "depth images", 3.0  # name of the points, and their size in px
_MAX_NAME = 24  # maximum number of characters of a camera's name
NO_WINDOW = "Open3D finds no Vulkan driver to draw a window with; install one: " + SYSTEM
_PROBE = "import open3d as o; o.visualization.rendering.OffscreenRenderer(16, 16).render_to_image()"
_WINDOW_PROBE = (  # the last argument, flag 1, hides the window
    "import open3d as o; application = o.visualization.gui.Application.instance; application.initialize(); "
    "application.create_window('', 16, 16, 0, 0, 1)"
)
_NO_DISPLAY = "headless"  # word in Open3D's message if it cannot connect to the display


def import_open3d() -> ModuleType:
    """Import Open3D."""
    os.environ.setdefault("EGL_PLATFORM", "surfaceless" if not _has_display() else "")
    try:
        import open3d
    except ModuleNotFoundError as error:
        raise PoseError(f"the 3D view needs Open3D ({error}); install it: {INSTALL}") from error
    except (ImportError, OSError) as error:  # OSError if a shared library that Open3D loads is missing
        raise PoseError(f"Open3D does not start ({error}); install its system libraries: {SYSTEM}") from error
    result: ModuleType = open3d
    return result


def _has_display() -> bool:
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class Open3DScene:
    """Open3D scene, in a window or an off-screen renderer, that shows frames of a `SceneData`."""

    def __init__(self, data: SceneData, scene: "rendering.Open3DScene") -> None:
        self._data = data
        self._scene = scene
        self._shown_names: list[str] = []
        self._o3d = import_open3d()
        scene.set_background(np.array(BACKGROUND, np.float32))
        scene.set_lighting(scene.LightingProfile.NO_SHADOWS, -_LIGHT)
        scene.view.set_post_processing(False)
        scene.view.set_shadowing(False)
        scene.view.set_ambient_occlusion(False)
        scene.view.set_sample_count(4)
        floor = self._lines(*grid_lines(data.middle, data.radius))
        scene.add_geometry("floor", floor, self._material("unlitLine", _GRID_COLOUR, line_width=1.2))
        if data.cameras:
            cameras = self._lines(*camera_lines(data.cameras))
            scene.add_geometry("cameras", cameras, self._material("unlitLine", _CAMERA_COLOUR, line_width=2.0))

    def show(self, position: int) -> None:
        """Show the people of the frame with index `position`."""
        for name in self._shown_names:
            self._scene.remove_geometry(name)
        ids, placed = self._data.people(position)
        self._shown_names = [f"person {person}" for person in ids]
        for name, person, joints in zip(self._shown_names, ids, placed, strict=True):
            mesh = Mesh.join([body_mesh(joints), mark_mesh(joints, person)])
            self._scene.add_geometry(name, self._surface(mesh), self._material("defaultUnlit"))
        if self._data.cloud is not None:
            points, colours = (values.astype(np.float64) for values in self._data.cloud.at(position))
            if len(points):
                utility = self._o3d.utility
                cloud = self._o3d.geometry.PointCloud(utility.Vector3dVector(points))
                cloud.colors = utility.Vector3dVector(colours)
                self._scene.add_geometry(_CLOUD, cloud, self._material("defaultUnlit", point_size=_POINT_SIZE))
                self._shown_names.append(_CLOUD)

    def _lines(self, points: F32, pairs: I64) -> "geometry.LineSet":
        utility = self._o3d.utility
        return self._o3d.geometry.LineSet(
            utility.Vector3dVector(points.astype(np.float64)), utility.Vector2iVector(pairs)
        )

    def _surface(self, mesh: Mesh) -> "geometry.TriangleMesh":
        utility = self._o3d.utility
        surface = self._o3d.geometry.TriangleMesh(
            utility.Vector3dVector(mesh.vertices.astype(np.float64)), utility.Vector3iVector(mesh.triangles)
        )
        surface.vertex_colors = utility.Vector3dVector(shaded(mesh).astype(np.float64))
        return surface

    def _material(
        self, shader: str, colour: tuple[float, ...] = (1, 1, 1, 1), line_width: float = 1.0, point_size: float = 1.0
    ) -> "rendering.MaterialRecord":
        material = self._o3d.visualization.rendering.MaterialRecord()
        material.shader = shader
        material.base_color = colour
        material.line_width, material.point_size = line_width, point_size
        return material


def shaded(mesh: Mesh) -> F32:
    """Return the vertex colours (V, 3), 0 to 1, of a mesh under a directional light and ambient light."""
    lit = np.clip(mesh.normals @ _LIGHT, 0, None)
    result: F32 = mesh.colours * (0.5 + 0.5 * lit)[:, None]
    return result


class Label(NamedTuple):
    """Text label in the 3D scene."""

    words: str  # text
    colour: RGB  # RGB colour
    position: NDArray[np.floating]  # (3,) m, position of the label


def labels(data: SceneData, position: int) -> list[Label]:
    """Return labels with ids above people's heads and, for several cameras, labels with names above the cameras."""
    ids, placed = data.people(position)
    tops = [np.array([*joints[HEAD, :2], joints[:, 2].max() + 0.2]) for joints in placed]
    people = [Label(str(person), person_colour(person), top) for person, top in zip(ids, tops, strict=True)]
    above = np.array([0, 0, 0.2], np.float32)
    return [*people, *(Label(camera.name[:_MAX_NAME], PAPER, camera.centre + above) for camera in data.cameras)]


def check_off_screen() -> None:
    """Check in a new process, which Open3D may end, that it renders without a window; else PoseError."""
    import_open3d()
    if _probed(_PROBE).returncode != 0:
        raise PoseError(OFF_SCREEN_DRIVER)


def check_window() -> None:
    """Check in a new process, which Open3D may end, that it can open a window; else PoseError."""
    import_open3d()
    if not _has_display():
        raise PoseError("no display is available for a window; render without one: --save clip.mp4")
    probe = _probed(_WINDOW_PROBE)
    if _NO_DISPLAY in probe.stdout + probe.stderr:
        display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        raise PoseError(f"the display {display} cannot be reached; render without one: --save clip.mp4")
    if probe.returncode != 0:
        raise PoseError(NO_WINDOW)


def _probed(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new Python process, and return its exit status and output."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def render(data: SceneData, size: tuple[int, int], positions: Iterable[int]) -> Iterator[U8]:
    """Yield an image (H, W, 3) uint8 RGB of each requested frame, with the ids of the people."""
    rendering = import_open3d().visualization.rendering
    with silenced(sys.stdout, 1):
        renderer = rendering.OffscreenRenderer(*size)
    scene = Open3DScene(data, renderer.scene)
    fov = math.radians(FOV_DEGREES)
    eye = orbit_eye(data.middle, data.radius, math.radians(AZIMUTH_DEGREES), math.radians(ELEVATION_DEGREES), fov)
    renderer.setup_camera(FOV_DEGREES, data.middle, eye.astype(np.float32), np.array([0, 0, 1], np.float32))
    camera = renderer.scene.camera
    matrix = np.asarray(camera.get_projection_matrix()) @ np.asarray(camera.get_view_matrix())
    unit = min(size) / 300
    for position in positions:
        scene.show(position)
        image = np.array(renderer.render_to_image())
        for label in labels(data, position):
            x, y, _, w = matrix @ np.append(label.position, 1)
            spot = ((x / w + 1) / 2 * size[0], (1 - y / w) / 2 * size[1])
            draw.label(draw.Canvas(image), label.words, spot, 6 * unit, label.colour)
        yield image


def save_video(
    data: SceneData,
    path: Path,
    size: tuple[int, int],
    *,
    fps: float | None = None,
    speed: float = 1.0,
    progress: Callable[[list[tuple[int, float]]], Iterable[tuple[int, float]]] = iter,
) -> None:
    """Render all frames to an MP4. Call `check_off_screen` first; PoseError if the file cannot be written."""
    from pose.video import VideoWriter

    shots = shot_list(data, fps, speed)
    rate = fps or _mean_rate(shots)
    with VideoWriter(path, size, fps=rate) as writer:
        images = render(data, size, (position for position, _ in shots))
        for (_, time), image in zip(progress(shots), images, strict=True):
            writer.write(image, time)


def shot_list(data: SceneData, fps: float | None, speed: float) -> list[tuple[int, float]]:
    """Return the index of the frame and the time (s) of each image of a rendered video."""
    start = float(data.times[0])
    if fps is None:
        return [(position, (float(time) - start) / speed) for position, time in enumerate(data.times)]
    check_gap_frames(data.times / speed, fps, "leave --fps out to keep the time stamps, or give a lower one")
    count = int((float(data.times[-1]) - start) / speed * fps + 1e-6) + 1
    return [(data.position_at(start + k / fps * speed + 1e-6), k / fps) for k in range(count)]


def _mean_rate(shots: list[tuple[int, float]]) -> float:
    return (len(shots) - 1) / shots[-1][1] if len(shots) > 1 else 25.0
