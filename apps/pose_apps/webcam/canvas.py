"""The content of the window of `pose-webcam`: the image with skeletons and ids, the 3D view, or both."""

import numpy as np

from pose.live import LiveResult
from pose.skeletons import Skeleton
from pose.types import U8
from pose.view.inset import Inset
from pose.view.insets import OFF
from pose.view.overlay import Overlay

VIEWS = ("both", "2D", "3D")


class Canvas:
    """Draws the frames of one size and skeleton, in order.

    Attributes:
        size: (width, height) px of what `draw` returns.
    """

    def __init__(self, picture: tuple[int, int], skeleton: Skeleton, view: str) -> None:
        """Set up the drawing.

        Args:
            picture: (width, height) px of the images.
            skeleton: Joint set of the keypoints.
            view: One of VIEWS.
        """
        width, height = picture
        self.picture, self.skeleton, self.view = picture, skeleton, view
        self._overlay = Overlay(picture, skeleton, inset=OFF)
        panel = picture if view == "3D" else (round(0.9 * height), height)
        self._inset = Inset(panel)
        self.size = (width + panel[0], height) if view == "both" else picture

    def fits(self, live: LiveResult, view: str) -> bool:
        """Whether it can draw this frame in this view."""
        return (self.picture, self.skeleton, self.view) == (live.size, live.skeleton, view)

    def draw(self, live: LiveResult) -> U8:
        """Draw a frame, (H, W, 3) uint8 RGB."""
        if self.view == "3D":
            return self._inset.render(live.result)
        drawn = self._overlay.draw(live.image, live.result)
        return drawn if self.view == "2D" else np.concatenate([drawn, self._inset.render(live.result)], axis=1)
