"""Content of the window of `pose-webcam`: the image with skeletons and ids, the 3D view, or both."""

from dataclasses import replace

import numpy as np

from pose.live import LiveResult
from pose.live.result import Stream
from pose.structures.skeletons import Skeleton
from pose.structures.types import U8, FrameResult
from pose.view.bodies import BodyMesh
from pose.view.inset import Inset
from pose.view.insets import OFF
from pose.view.mesh_overlay import BodyMeshes
from pose.view.overlay import Overlay

VIEWS = ("both", "2D", "3D")


class LiveBodies:
    """Body meshes of the people nearest to a known camera, mirrored like the image (implements `Bodies`)."""

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._meshes: BodyMeshes | None = None
        self._current_meshes: list[BodyMesh] = []

    def take(self, live: LiveResult, *, mirror: bool) -> None:
        """Compute the body meshes of a frame, not mirrored, which `of` then returns."""
        if live.stream is not self._stream:
            self._stream, self._meshes = live.stream, None
            if live.stream is not None:
                self._meshes = BodyMeshes(live.stream.session.camera, live.skeleton, live=True)
        self._current_meshes = [] if self._meshes is None else self._meshes.of(live.result)
        if mirror:
            last, side = np.array([live.size[0] - 1, 0], np.float32), np.array([-1, 1], np.float32)
            self._current_meshes = [replace(mesh, corners=last + mesh.corners * side) for mesh in self._current_meshes]

    def of(self, result: FrameResult) -> list[BodyMesh]:
        """Return the body meshes of the last frame given to `take`. The argument `result` is not used."""
        return self._current_meshes


class FrameRenderer:
    """Renderer for frames of one image size and skeleton, in one view."""

    def __init__(
        self, picture: tuple[int, int], skeleton: Skeleton, view: str, bodies: LiveBodies | None = None
    ) -> None:
        """Prepare drawing for one image size, skeleton and view: "2D", "3D" or "both"."""
        width, height = picture
        self.picture, self.skeleton, self.view = picture, skeleton, view
        self._bodies = bodies
        self._overlay = Overlay(picture, skeleton, inset=OFF, bodies=bodies)
        panel = picture if view == "3D" else (round(0.9 * height), height)
        self._inset = Inset(panel)
        self.size = (width + panel[0], height) if view == "both" else picture  # (width, height) of the drawn images, px

    def fits(self, live: LiveResult, view: str) -> bool:
        """Return whether this renderer can draw a result in a view."""
        return (self.picture, self.skeleton, self.view) == (live.size, live.skeleton, view)

    def draw(self, live: LiveResult, *, mirror: bool = False) -> U8:
        """Draw a frame, mirrored or not, and return the image (H, W, 3) uint8 RGB."""
        if self._bodies is not None and self.view != "3D":
            self._bodies.take(live, mirror=mirror)
        live = live.mirrored() if mirror else live
        if self.view == "3D":
            return self._inset.render(live.result)
        drawn = self._overlay.draw(live.image, live.result)
        return drawn if self.view == "2D" else np.concatenate([drawn, self._inset.render(live.result)], axis=1)
