"""Forecasters with a network, which runs in ONNX Runtime or torch."""

from abc import ABC, abstractmethod
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.forecast.config import FORMAT, INPUT_NAMES, OUTPUT_NAMES
from pose.lifting.forecast.features import describe, restore, seconds_ahead
from pose.lifting.forecast.types import Forecast, Past
from pose.networks.weights import sha256_of
from pose.structures.types import F32, F64

if TYPE_CHECKING:
    from pose.lifting.forecast.network import ForecasterNetwork

SHIPPED = "forecaster"


def shipped_path() -> Path:
    """Return the path of the shipped checkpoint. The ONNX file is in the same folder."""
    return Path(str(resources.files("pose"))) / "models" / f"{SHIPPED}.safetensors"


class NetworkForecaster(ABC):
    """Base class of forecasters with a network. Subclasses implement `run_network`."""

    name: str  # name for messages and results
    sha256: str  # hash of the checkpoint; empty if unknown

    @abstractmethod
    def run_network(self, past: F32, ahead: F32) -> tuple[F32, F32]:
        """Return displacements (P, Q, 51) m, pelvis last, and sigma (P, Q, 17) m, pelvis first, of (P, K, F) inputs."""

    def predict(self, past: Past, times: F64) -> Forecast:
        """Predict the motion; the forecast beyond 1 s after the last frame is that for 1 s."""
        if times.ndim != 2 or len(times) != len(past):
            raise ValueError(f"times: expected (P, Q) for {len(past)} people, got {times.shape}")
        described, reference = describe(past)
        ahead = seconds_ahead(reference, times)
        displacements, sigma_m = self.run_network(described, ahead.astype(np.float32))
        joints, root = restore(reference, displacements, ahead)
        later, sigma_mm = ahead > 0, 1000 * sigma_m
        # The network's sigma is calibrated for the average person. It cannot be smaller than the lifter's sigma of the
        # joint from which the prediction starts.
        sigma = np.where(later[..., None], np.maximum(sigma_mm, reference.sigma[:, None]), reference.sigma[:, None])
        sigma[..., 0] = reference.sigma[:, :1]
        return Forecast(joints, root, sigma, np.where(later, sigma_mm[..., 0], 0), ahead)


class OnnxForecaster(NetworkForecaster):
    """A forecaster that runs an ONNX file written by `pose.lifting.forecast.exchange`."""

    def __init__(self, path: Path, name: str) -> None:
        """Load the file."""
        self._graph, self.name = OnnxGraph(path), name
        if self._graph.metadata.get("format") != FORMAT:
            raise PoseError(f"{path}: not a forecaster exported by this program")
        self.sha256 = self._graph.metadata.get("checkpoint_sha256", "")

    @classmethod
    def beside(cls, checkpoint: Path, name: str) -> Self | None:
        """Load the .onnx file beside a checkpoint; returns None unless it was exported from exactly this checkpoint."""
        exported = checkpoint.with_suffix(".onnx")
        if not exported.is_file():
            return None
        found = cls(exported, name)
        return found if found.sha256 == sha256_of(checkpoint) else None

    def run_network(self, past: F32, ahead: F32) -> tuple[F32, F32]:
        found = self._graph.run(dict(zip(INPUT_NAMES, (past, ahead), strict=True)))
        displacements, sigma = (np.asarray(found[name], np.float32) for name in OUTPUT_NAMES)
        return displacements, sigma


class TorchForecaster(NetworkForecaster):
    """A forecaster with a network in torch."""

    def __init__(self, network: "ForecasterNetwork", name: str, sha256: str = "") -> None:
        self.network, self.name, self.sha256 = network.eval(), name, sha256

    def run_network(self, past: F32, ahead: F32) -> tuple[F32, F32]:
        import torch

        with torch.inference_mode():
            displacements, sigma = self.network(torch.from_numpy(past), torch.from_numpy(ahead))
        return displacements.numpy(), sigma.numpy()
