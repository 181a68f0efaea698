"""The lifter in torch, for checkpoints, GPUs, training and evaluation."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from pose.lifting.backends import Arrays
from pose.lifting.blending import Windows
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.features import observe
from pose.lifting.model import LifterNetwork
from pose.lifting.names import SLIDING
from pose.lifting.predict import Lifter, checkpoint_path, join_outputs, network_inputs
from pose.lifting.sliding import SlidingStep
from pose.lifting.step import StreamStep
from pose.lifting.step_batch import Step
from pose.networks.weights import sha256_of
from pose.structures.sequences import Sequence2D
from pose.structures.types import F32


class TorchStep:
    """A streaming step in torch: a function from the tensors named by `inputs` to those named by `outputs`."""

    def __init__(
        self,
        function: Callable[..., tuple[Tensor, ...]],
        inputs: list[str],
        outputs: list[str],
        device: torch.device | str = "cpu",
    ) -> None:
        self._function, self._inputs, self._outputs, self._device = function, inputs, outputs, device

    def bind(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Bind input arrays that are reused for every step, as `pose.lifting.backends.StepBackend.bind`."""
        views = [torch.from_numpy(inputs[name]) for name in self._inputs]

        @torch.inference_mode()
        def run() -> Arrays:
            results = self._function(*(view.to(self._device) for view in views))
            return {name: result.cpu().numpy() for name, result in zip(self._outputs, results, strict=True)}

        return run


class TorchLifter(Lifter):
    """Lifter that runs a network in torch, on any device."""

    def __init__(
        self,
        network: LifterNetwork,
        name: str,
        sha256: str = "",
        device: str = "cpu",
        path: Path | None = None,
        *,
        sliding: bool = False,
    ) -> None:
        """Wrap a network."""
        self.network, self.name, self.sha256, self.path = network.to(device).eval(), name, sha256, path
        self.device, self.sliding, self.streaming = torch.device(device), sliding, sliding or network.config.streaming
        self.averages_mirrored = sliding

    @classmethod
    def load(cls, name_or_path: str | Path, device: str = "cpu") -> Self:
        """Load a lifter like `pose.lifting.load.load_lifter`, but always in torch."""
        path = checkpoint_path(name_or_path)
        sliding = str(name_or_path) == SLIDING
        return cls(load_checkpoint(path, device), str(name_or_path), sha256_of(path), device, path, sliding=sliding)

    @property
    def windows(self) -> Windows:
        return self.network.config.windows

    @cached_property
    def step(self) -> Step:
        step = SlidingStep(self.network).eval() if self.sliding else StreamStep(self.network).eval()
        return Step(TorchStep(step, step.inputs, step.outputs, self.device), step.cache_layout)

    def forward(self, windows: list[Sequence2D], lookahead: int = 0) -> list[F32]:
        if self.sliding:
            return [self.run_stream(window, lookahead) for window in windows]
        keypoints, scores, times, *camera = (
            torch.from_numpy(array).to(self.device) for array in network_inputs(windows).values()
        )
        with torch.inference_mode():
            lifted = self.network(observe(keypoints, scores, times, *camera), times, lookahead)
        return list(join_outputs(lifted))
