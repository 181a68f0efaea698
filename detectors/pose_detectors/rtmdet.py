"""RTMDet on ONNX Runtime, exported by MMDeploy with non-maximum suppression.

Source: Lyu et al., RTMDet: An Empirical Study of Designing Real-Time Object Detectors, 2022, arXiv:2212.07784. The
constants are those of MMDetection's RTMDet configs.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pose.networks.onnx import OnnxNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import U8, Boxes

SCORE_THRESHOLD = 0.3
SIDE = 320  # of the published person model; files with a fixed size use their own
MEAN_BGR = (103.53, 116.28, 123.675)
STD_BGR = (57.375, 57.12, 58.395)
STRIDE = 32


class RTMDetDetector:
    """Person detector with any RTMDet network that was exported with its post-processing."""

    name = "rtmdet"

    def __init__(
        self,
        *,
        model: Path,
        options: StageOptions = DEFAULT_OPTIONS,
        classes: Sequence[int] = (0,),
    ) -> None:
        """Load the network; PoseError if the network cannot be loaded with these options."""
        self._network = OnnxNetwork(model, options)
        self.device = self._network.device
        self._input = self._network.input(mean=MEAN_BGR, std=STD_BGR, bgr=True)
        self._side = self._network.input_side(options.size, SIDE, STRIDE)
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._classes = list(classes)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, sorted by descending score.

        Images are processed one at a time. The published files declare a batch dimension, but their non-maximum
        suppression fails on batches.
        """
        return [self._detect(image) for image in images]

    def _detect(self, image: U8) -> Boxes:
        sample, (fit,) = self._input.letterboxed([image], (self._side, self._side))
        found, labels = self._network.run(sample)
        rows = found[0][np.isin(labels[0], self._classes)].astype(np.float32)
        rows = rows[rows[:, 4] >= self._score_threshold]
        rows = rows[np.argsort(-rows[:, 4], kind="stable")]
        return Boxes(fit.boxes_to_image(rows[:, :4]), rows[:, 4])
