"""Use a person detector of your own: any object with `name` and `detect`.

This one returns one box in the middle of every image. Replace `detect` by your network.

python examples/custom_detector.py clip.mp4
"""

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pose import Boxes, Pipeline


class CentreDetector:
    """One person in the middle of the image."""

    name = "centre"

    def detect(self, images: Sequence[NDArray[np.uint8]]) -> list[Boxes]:
        """Boxes (P, 4) x1, y1, x2, y2 px with scores (P,) for each (H, W, 3) RGB image."""
        found = []
        for image in images:
            height, width = image.shape[:2]
            box = [[0.2 * width, 0.05 * height, 0.8 * width, 0.95 * height]]
            found.append(Boxes(np.array(box, np.float32), np.ones(1, np.float32)))
        return found


pipeline = Pipeline.from_preset("fast", detector=CentreDetector(), max_people=1)
for result in pipeline.run(sys.argv[1]):
    print(f"{result.time:.2f} s: {len(result.people)} people")
