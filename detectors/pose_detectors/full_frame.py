"""One person who fills the picture: for clips of one person, where looking for people would be wasted."""

from collections.abc import Sequence

import numpy as np

from pose.types import U8, Boxes


class FullFrameDetector:
    """Says of every picture that it shows one person, from edge to edge."""

    name = "full-frame"

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """One box with score 1 around each (H, W, 3) image."""
        return [
            Boxes(np.array([[0, 0, image.shape[1], image.shape[0]]], np.float32), np.ones(1, np.float32))
            for image in images
        ]
