"""The lifter in ONNX Runtime, the default on a CPU.

ONNX Runtime avoids importing torch, which needs 300 MB of memory and seconds to load.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.blending import Windows
from pose.lifting.config import LifterConfig
from pose.lifting.format import OUTPUT_NAMES, SLIDING_FORMAT, STEP_FORMAT, WINDOW_FORMAT
from pose.lifting.names import SLIDING
from pose.lifting.predict import Lifter, checkpoint_path, network_inputs
from pose.lifting.step_batch import CacheLayout, Step
from pose.networks.weights import sha256_of
from pose.structures.sequences import Sequence2D
from pose.structures.types import F32


class OnnxLifter(Lifter):
    """Lifter that runs a file from `pose-export --format onnx`."""

    def __init__(self, graph: OnnxGraph, name: str, sha256: str = "", path: Path | None = None) -> None:
        """Check the graph's metadata; PoseError if the graph is not an exported lifter."""
        self._graph, self.name, self.sha256, self.path = graph, name, sha256, path
        form = graph.metadata.get("format")
        if form not in (WINDOW_FORMAT, STEP_FORMAT, SLIDING_FORMAT):
            raise PoseError(f"lifter {name}: its .onnx file was not written by pose-export; export it again")
        self.streaming, self.averages_mirrored = form != WINDOW_FORMAT, form == SLIDING_FORMAT

    @classmethod
    def beside(cls, name_or_path: str | Path) -> Self | None:
        """Return the lifter in the .onnx file beside a checkpoint; None if it is missing or is of another checkpoint.

        A missing checkpoint is a UsageError, an .onnx file that cannot be read a PoseError.
        """
        path = checkpoint_path(name_or_path)
        exported = path.with_name(f"{SLIDING}.onnx") if str(name_or_path) == SLIDING else path.with_suffix(".onnx")
        if not exported.is_file():
            return None
        graph, sha256 = OnnxGraph(exported), sha256_of(path)
        if graph.metadata.get("checkpoint_sha256") != sha256:
            return None
        return cls(graph, str(name_or_path), sha256, path)

    @cached_property
    def windows(self) -> Windows:
        try:
            return LifterConfig.from_dict(json.loads(self._graph.metadata["config"])).windows
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise PoseError(f"lifter {self.name}: its .onnx file lacks its configuration; export it again") from error

    @cached_property
    def step(self) -> Step:
        if not self.streaming:
            raise ValueError("an offline lifter processes whole windows and cannot process single frames")
        try:
            described = json.loads(self._graph.metadata["memory"])
            empty = {name: self._graph.filled_input(name, fill) for name, fill in described["fill"].items()}
            ages = described.get("ages")
            return Step(self._graph, CacheLayout(empty, described["pinned"], None if ages is None else tuple(ages)))
        except (KeyError, ValueError, TypeError, StopIteration) as error:
            raise PoseError(f"lifter {self.name}: its .onnx file lacks its cache sizes; export it again") from error

    def forward(self, windows: list[Sequence2D], lookahead: int = 0) -> list[F32]:
        if self.streaming:
            return [self.run_stream(window, lookahead) for window in windows]
        outputs = self._graph.run(network_inputs(windows))
        joints, root, sigma = (outputs[name] for name in OUTPUT_NAMES)
        return list(np.concatenate([joints.reshape(*joints.shape[:2], -1), root, sigma], axis=-1))
