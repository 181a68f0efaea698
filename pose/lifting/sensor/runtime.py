"""The sensor network in ONNX Runtime, over recordings of any length."""

import json
from importlib import resources
from pathlib import Path

import numpy as np

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.blending import Blend
from pose.lifting.config import LifterConfig
from pose.lifting.sensor.features import FORMAT, INPUT_NAMES, SHIPPED, describe, restore
from pose.structures.types import F64

MAX_GAP_S = 0.5  # recordings with a longer gap between frames are corrected in parts
MIN_FRAMES = 8  # of a part that the network sees


class SensorCorrector:
    """Network that removes jitter, outliers, swaps, gaps and definition offsets of a depth camera's skeleton."""

    def __init__(self, path: Path | None = None) -> None:
        """Load an ONNX file; None: the shipped one.

        Raises:
            PoseError: If the file is not an exported sensor network.
        """
        self.path = path or Path(str(resources.files("pose"))) / "models" / f"{SHIPPED}.onnx"
        self._graph = OnnxGraph(self.path)
        if self._graph.metadata.get("format") != FORMAT:
            raise PoseError(f"{self.path}: not a sensor network exported by this program")
        self._windows = LifterConfig.from_dict(json.loads(self._graph.metadata["config"])).windows

    def correct(self, joints: F64, scores: F64, times: F64, kinect: bool) -> tuple[F64, F64]:
        """Return corrected joints (T, 17, 3) m, none missing, and sigma (T, 17) m; that of joint 0 is of the path.

        Joints, y up, are ignored where the score (T, 17) is 0. Parts of fewer than `MIN_FRAMES` frames are only
        interpolated, with the largest sigma of the others.
        """
        moved, sigma = np.array(joints, np.float64), np.full(scores.shape, np.nan)
        breaks = np.flatnonzero(np.diff(times) > MAX_GAP_S) + 1
        for first, end in zip((0, *breaks), (*breaks, len(times)), strict=True):
            part = slice(int(first), int(end))
            if end - first >= MIN_FRAMES:
                moved[part], sigma[part] = self._part(joints[part], scores[part], times[part], kinect)
        unknown = np.isnan(sigma)
        sigma[unknown] = np.nanmax(sigma) if not unknown.all() else np.inf
        return moved, sigma

    def _part(self, joints: F64, scores: F64, times: F64, kinect: bool) -> tuple[F64, F64]:
        windows = self._windows.at_rate_of(times)
        blend = Blend(windows, len(times))
        for start, stop in windows.spans(len(times)):
            rows = slice(start, stop)
            features, view = describe(joints[None, rows], scores[None, rows], times[None, rows], np.array([kinect]))
            found = self._graph.run(dict(zip(INPUT_NAMES, (features, times[None, rows]), strict=True)))
            places = restore(view, np.asarray(found["corrections"], np.float32))[0].reshape(stop - start, -1)
            sigma = np.asarray(found["sigma"], np.float64)[0]
            blend.add(start, np.concatenate([places, places[:, :3], sigma], axis=1).astype(np.float32))
        blended = blend.take(len(times)).astype(np.float64)
        return blended[:, :51].reshape(-1, 17, 3), blended[:, 54:]
