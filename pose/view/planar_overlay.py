"""The overlay on pictures as video stores them: RGB is made only where something is drawn."""

import numpy as np

from pose.skeletons import Skeleton
from pose.types import U8, FrameResult
from pose.video.planes import Area, Planes, joined
from pose.view.overlay import Overlay


class PlanarOverlay:
    """Draws results on the planes of one video, in order. output_size: (width, height) px before they are made even."""

    def __init__(self, size: tuple[int, int], skeleton: Skeleton) -> None:
        """size: (width, height) px of the video. skeleton: of the 2D keypoints."""
        self._overlay = Overlay(size, skeleton)
        self._size = size
        self.output_size = width, height = self._overlay.output_size
        self._even = width + width % 2, height + height % 2
        self._canvas = np.zeros((self._even[1], self._even[0], 3), np.uint8)  # holds a frame only where it is drawn on
        self._panel: Planes | None = None

    def draw(self, planes: Planes, result: FrameResult) -> Planes:
        """The picture with everything drawn on it: packed, and of an even size, to which the last column or row of
        `output_size` is repeated.

        planes: of the size of the video, the frame that `result` is about, all in the same colours.
        """
        if planes.size != self._size:
            raise ValueError(f"planes: expected a picture of {self._size}, got {planes.size}")
        drawn = Planes.empty(self._even, planes.colours)
        drawn.paste(planes)
        width, height = self.output_size
        areas = self._read(result)
        for area in areas:
            area.of(self._canvas)[:] = drawn.rgb(area)
        panel = self._set_panel(drawn)
        changed = self._overlay.draw_on(self._canvas[:height, :width], result)
        for area in (*areas, (panel or changed).even()):
            if area.pixels:
                drawn.put(area, self._edged(area))
        return drawn

    def _set_panel(self, drawn: Planes) -> Area | None:
        """Put there what lies beside the frame while nobody is there. Returns the area if all of it must be converted:
        the panel of a frame of odd width shares a column of colours with it.
        """
        background, left = self._overlay.panel, self._size[0]
        if background is None:
            return None
        area = Area(left, 0, *self.output_size)
        if left % 2:
            area.of(self._canvas)[:] = background
            return area
        self._panel = self._panel or Planes.of_rgb(background, drawn.colours)
        drawn.paste(self._panel, left)
        return None

    def _read(self, result: FrameResult) -> list[Area]:
        """The even areas that must be RGB before anything is drawn."""
        width, height = self._size
        areas = [area.even() for area in self._overlay.changes(result)]
        if width % 2:  # the panel's first column, or the one that is repeated, shares its colour with the frame's last
            areas.append(Area(width - 1, 0, width, height).even())
        if height % 2:
            areas.append(Area(0, height - 1, width, height).even())
        return joined(areas)

    def _edged(self, area: Area) -> U8:
        """That part of the canvas, with the last column and row of the picture repeated where its size is odd."""
        width, height = self.output_size
        if area.x1 > width:
            self._canvas[:, width] = self._canvas[:, width - 1]
        if area.y1 > height:
            self._canvas[height] = self._canvas[height - 1]
        return area.of(self._canvas)
