"""The overlay on pictures as video stores them: only where something is drawn do pixels get colours of their own."""

from collections import deque

from pose.skeletons import Skeleton
from pose.types import FrameResult
from pose.video.planes import Area, Colours, FullResolution, Planes, joined
from pose.view.overlay import Overlay


class PlanarOverlay:
    """Draws results on the planes of one video, in order. output_size: (width, height) px before they are made even."""

    def __init__(self, size: tuple[int, int], skeleton: Skeleton, colours: Colours) -> None:
        """size: (width, height) px of the video. skeleton: of the 2D keypoints. colours: of the planes."""
        self._overlay = Overlay(size, skeleton, colours=colours)
        self._size, self._colours = size, colours
        self.output_size = width, height = self._overlay.output_size
        self._even = width + width % 2, height + height % 2
        self._canvas = FullResolution(self._even)  # holds a frame only where it is drawn on
        self._panel: Planes | None = None
        self._free: deque[Planes] = deque()

    def draw(self, planes: Planes, result: FrameResult) -> Planes:
        """The picture with everything drawn on it: packed, and of an even size, to which the last column or row of
        `output_size` is repeated.

        planes: of the size of the video, the frame that `result` is about.
        """
        if planes.size != self._size or planes.colours != self._colours:
            wanted = f"{self._size} in {self._colours}"
            raise ValueError(f"planes: expected a picture of {wanted}, got {planes.size} in {planes.colours}")
        drawn = self._free.pop() if self._free else Planes.empty(self._even, self._colours)
        drawn.paste(planes)
        width, height = self.output_size
        areas = self._load(drawn, result)
        panel = self._set_panel(drawn)
        changed = self._overlay.draw_on(self._canvas.pixels[:height, :width], result)
        for area in (*areas, (panel or changed).even()):
            if area.pixels:
                self._repeat_edges(area)
                self._canvas.store(drawn, area)
        return drawn

    def take_back(self, drawn: Planes) -> None:
        """Later pictures may be drawn into the memory of this one: new memory costs more than to draw on it."""
        self._free.append(drawn)

    def _set_panel(self, drawn: Planes) -> Area | None:
        """Put there what lies beside the frame while nobody is there. Returns the area if all of it must be stored:
        the panel of a frame of odd width shares a column of colours with it.
        """
        background, left = self._overlay.panel, self._size[0]
        if background is None:
            return None
        area = Area(left, 0, *self.output_size)
        if left % 2:
            area.of(self._canvas.pixels)[:] = background
            return area
        self._panel = self._panel or Planes.of_coded(background, self._colours)
        drawn.paste(self._panel, left)
        return None

    def _load(self, drawn: Planes, result: FrameResult) -> list[Area]:
        """Take from the picture what is drawn on: even areas."""
        width, height = self._size
        areas = [area.even() for area in self._overlay.changes(result)]
        if width % 2:  # the panel's first column, or the one that is repeated, shares its colour with the frame's last
            areas.append(Area(width - 1, 0, width, height).even())
        if height % 2:
            areas.append(Area(0, height - 1, width, height).even())
        areas = joined(areas)
        for area in areas:
            self._canvas.load(drawn, area)
        return areas

    def _repeat_edges(self, area: Area) -> None:
        """The last column and row of the picture again where its size is odd."""
        width, height = self.output_size
        pixels = self._canvas.pixels
        if area.x1 > width:
            pixels[:, width] = pixels[:, width - 1]
        if area.y1 > height:
            pixels[height] = pixels[height - 1]
