"""Drawing of shaded bodies. The triangles of all people are drawn in the order of their depth, far ones first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.colours import INK, PAPER, RGB, mix, person_colour
from pose.structures.types import F32, FrameResult
from pose.view import draw
from pose.view.draw import Canvas

_OPACITY = 0.75  # the image of the person stays visible through the body
_SHADES = 24
_DARKEST, _PLAIN = 0.6, 0.7  # share of ink in the darkest shade; shades lighter than _PLAIN contain paper
_LIGHTEST = 0.55  # share of paper in the lightest shade


@dataclass(frozen=True, slots=True)
class BodyMesh:
    """The F triangles of one person's body that face the camera."""

    person: int  # track id
    # (F, 3, 2) px, the three corners of each triangle as image coordinates x, y. Their absolute values are at most
    # `draw.MAX_COORDINATE_PX`.
    corners: F32
    depths: F32  # (F,) m, distances of the triangles from the camera
    light: F32  # (F,) brightness of the triangles, from 0 (dark) to 1

    def scaled(self, scale: float) -> "BodyMesh":
        """Return the mesh in px of an image scaled by `scale`. The pixel centre x maps to (x + 0.5) * scale - 0.5."""
        return replace(self, corners=((self.corners + 0.5) * scale - 0.5).astype(np.float32))


class Bodies(Protocol):
    """Interface of objects with a method `of`, which returns the body meshes of the people in a frame."""

    def of(self, result: FrameResult) -> list[BodyMesh]: ...


def draw_bodies(canvas: Canvas, meshes: Sequence[BodyMesh]) -> None:
    """Draw meshes, in px of the canvas, as one translucent layer; only the nearer of overlapping people shows."""
    meshes = [mesh for mesh in meshes if len(mesh.corners)]
    if not meshes:
        return
    corners = np.concatenate([mesh.corners for mesh in meshes])
    order = np.argsort(-np.concatenate([mesh.depths for mesh in meshes]), kind="stable")
    palette = [canvas.code(shade) for mesh in meshes for shade in _palette(mesh.person)]
    levels = [at * _SHADES + np.rint(mesh.light * (_SHADES - 1)).astype(np.int64) for at, mesh in enumerate(meshes)]
    colours = np.concatenate(levels)[order].tolist()
    with draw.layer(canvas, corners.reshape(-1, 2), 2, _OPACITY) as (layer, corner):
        pixels, fill = layer.pixels, cv2.fillConvexPoly
        for triangle, colour in zip(draw.fixed(corners[order] - corner), colours, strict=True):
            fill(pixels, triangle, palette[colour], cv2.LINE_8, draw.SHIFT)


def extent(mesh: BodyMesh) -> NDArray[np.float64]:
    """Return the area (2, 2) px, top left and bottom right corner, that `draw_bodies` changes for a non-empty mesh."""
    points = mesh.corners.reshape(-1, 2).astype(np.float64)
    return np.stack([points.min(axis=0) - 2, points.max(axis=0) + 2])


def _palette(person: int) -> list[RGB]:
    """Return the colours of a person's shades, from dark to light."""
    colour = person_colour(person)
    shares = np.linspace(0, 1, _SHADES).tolist()
    return [
        mix(colour, INK, _DARKEST * (1 - share / _PLAIN))
        if share < _PLAIN
        else mix(colour, PAPER, _LIGHTEST * (share - _PLAIN) / (1 - _PLAIN))
        for share in shares
    ]
