"""MobileNet detectors: SSD MobileNet v1 on LiteRT, and torchvision's SSDLite320 on MobileNet v3.

Sources: Liu et al., SSD: Single Shot MultiBox Detector, 2016, arXiv:1512.02325; Howard et al., MobileNets, 2017,
arXiv:1704.04861; Howard et al., Searching for MobileNetV3, 2019, arXiv:1905.02244.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from pose.errors import PoseError
from pose.networks.input import upload
from pose.networks.litert import LiteRTModel
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import F32, U8, Boxes
from pose.utils.device import resolve_device, torch_threads
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from torchvision.models.detection import SSD

SCORE_THRESHOLD = 0.5


class MobileNetDetector:
    """Person detector with TensorFlow's quantised SSD MobileNet v1, on the CPU, for at most ten objects."""

    name = "mobilenet"

    def __init__(
        self,
        *,
        model: Path,
        options: StageOptions = DEFAULT_OPTIONS,
        classes: Sequence[int] = (0,),
    ) -> None:
        """Load the network; PoseError if the file cannot be loaded."""
        self._network = LiteRTModel(model, options.threads)
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._classes = list(classes)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, one at a time, as the model has no batch dimension."""
        return [self._detect(image) for image in images]

    def _detect(self, image: U8) -> Boxes:
        side = self._network.input().shape[1]
        self._network.input()[0] = cv2.resize(image, (side, side), interpolation=cv2.INTER_LINEAR)
        found, kinds, scores, _ = self._network.run()
        keep = (scores[0] >= self._score_threshold) & np.isin(kinds[0], self._classes)
        height, width = image.shape[:2]
        xyxy = found[0][keep][:, [1, 0, 3, 2]] * np.array([width, height, width, height], np.float32)
        return _best_first(xyxy, scores[0][keep])


class SSDLiteDetector:
    """Person detector with torchvision's `ssdlite320_mobilenet_v3_large`, on the CPU or a GPU."""

    name = "ssdlite"

    def __init__(
        self,
        *,
        model: Path,
        options: StageOptions = DEFAULT_OPTIONS,
        classes: Sequence[int] = (1,),
    ) -> None:
        """Load the network; PoseError without torchvision, or if these options do not fit."""
        if options.precision == "float16":
            raise PoseError("precision: torchvision's SSDLite does not run in float16; use float32")
        self.device = resolve_device(options.device)
        self._threads = options.threads
        self._network = _ssdlite(model).to(self.device)
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._classes = list(classes)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image in one batch, sorted by descending score."""
        import torch

        if not len(images):
            return []
        batch = [upload(image, self.device).to(torch.float32).div(255) for image in images]
        with torch.inference_mode(), torch_threads(self._threads):
            found = self._network(batch)
        return [self._boxes({key: value.cpu().numpy() for key, value in rows.items()}) for rows in found]

    def _boxes(self, rows: dict[str, F32]) -> Boxes:
        keep = (rows["scores"] >= self._score_threshold) & np.isin(rows["labels"], self._classes)
        return _best_first(rows["boxes"][keep], rows["scores"][keep])


def _ssdlite(path: Path) -> "SSD":
    """Build the network and load its parameters from a file, without unpickling code."""
    import pickle

    try:
        import torch
        from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    except ImportError as error:
        raise PoseError("the ssdlite detector needs torchvision: pip install 'pose-run[torchvision]'") from error
    network = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    try:
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, pickle.UnpicklingError, TypeError) as error:
        raise PoseError(f"{path}: not the parameters of SSDLite320-MobileNetV3 ({in_brief(error)})") from error
    return network.eval()


def _best_first(xyxy: F32, scores: F32) -> Boxes:
    order = np.argsort(-scores, kind="stable")
    return Boxes(xyxy[order].astype(np.float32), scores[order].astype(np.float32))
