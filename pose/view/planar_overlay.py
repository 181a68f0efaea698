"""The overlay on YUV frames. Chroma is upsampled only in areas in which something is drawn."""

from collections import deque
from collections.abc import Collection

from pose.structures.skeletons import Skeleton
from pose.structures.types import FrameResult
from pose.video.planes import Area, Colours, FullResolution, Planes, merged
from pose.view.bodies import Bodies
from pose.view.insets import AUTO
from pose.view.overlay import Overlay


class PlanarOverlay:
    """Renderer of results on the YUV planes of one video, in order.

    Attributes:
        output_size: (width, height) px of the drawing, before it is extended to even numbers.
    """

    def __init__(
        self,
        size: tuple[int, int],
        skeleton: Skeleton,
        colours: Colours,
        inset: str = AUTO,
        bodies: Bodies | None = None,
        doubtful: Collection[int] = (),
    ) -> None:
        """Prepare the drawing on frames of one size."""
        self._overlay = Overlay(size, skeleton, inset, colours, bodies, doubtful)
        self._size, self._colours = size, colours
        self.output_size = width, height = self._overlay.output_size
        self._even = width + width % 2, height + height % 2
        self._canvas = FullResolution(self._even)  # valid only in areas in which something is drawn
        self._panel: Planes | None = None
        self._free: deque[Planes] = deque()

    def draw(self, planes: Planes, result: FrameResult) -> Planes:
        """Return new planes of even size with the frame and the drawing; odd last columns or rows are repeated."""
        if planes.size != self._size or planes.colours != self._colours:
            wanted = f"{self._size} in {self._colours}"
            raise ValueError(f"planes: expected an image of {wanted}, got {planes.size} in {planes.colours}")
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
        """Reuse the memory of `drawn`, a result of `draw`, for a later frame. Allocation takes longer than drawing."""
        self._free.append(drawn)

    def _set_panel(self, drawn: Planes) -> Area | None:
        """Write the panel without people; return its area to store after drawing if the frame's width is odd."""
        # The panel then shares a column of chroma with the frame.
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
        """Upsample the areas in which something is drawn, and return them. Their coordinates are even."""
        width, height = self._size
        areas = [area.even() for area in self._overlay.changes(result)]
        if width % 2:  # the last column of the frame shares its chroma with the column after it
            areas.append(Area(width - 1, 0, width, height).even())
        if height % 2:
            areas.append(Area(0, height - 1, width, height).even())
        areas = merged(areas)
        for area in areas:
            self._canvas.load(drawn, area)
        return areas

    def _repeat_edges(self, area: Area) -> None:
        """Repeat the last column and row of a frame of odd size, if `area` extends beyond them."""
        width, height = self.output_size
        pixels = self._canvas.pixels
        if area.x1 > width:
            pixels[:, width] = pixels[:, width - 1]
        if area.y1 > height:
            pixels[height] = pixels[height - 1]
