"""Checkpoints: one safetensors file with the weights and the configuration of a network, without pickle."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from pose.errors import PoseError
from pose.utils.shown import in_brief
from pose.utils.whole_file import whole_file

Config = TypeVar("Config")
Network = TypeVar("Network", bound=nn.Module)


class Configured(Protocol):
    """Interface of the configuration of a network."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return the configuration as plain JSON values."""
        ...


@dataclass(frozen=True, slots=True)
class CheckpointKind(Generic[Config, Network]):
    """Kind of network that can be saved in checkpoints."""

    noun: str  # name of such networks in messages
    format: str  # name of the format, stored in the files
    # Function from JSON values to the configuration. Raises ValueError or TypeError if the values are invalid.
    configured: Callable[[Mapping[str, Any]], Config]
    # Function from the configuration to the network. Raises ValueError or TypeError if the configuration is
    # inconsistent.
    build: Callable[[Config], Network]

    def load(self, path: Path) -> Network:
        """Load the network in evaluation mode; PoseError if the file is invalid or incomplete."""
        try:
            with safe_open(path, framework="pt", device="cpu") as file:
                config = self._config(file.metadata() or {}, path)
                names = list(file.keys())
                self._check_form(config, {name: tuple(file.get_slice(name).get_shape()) for name in names}, path)
                state = {name: file.get_tensor(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise PoseError(f"{path}: not a readable {self.noun} checkpoint ({in_brief(error)})") from error
        if not all(torch.isfinite(tensor).all() for tensor in state.values()):
            raise PoseError(f"{path}: checkpoint contains NaN or Inf weights")
        network = self.build(config)
        network.load_state_dict(state)
        return network.eval()

    def save(self, network: Network, config: Configured, path: Path) -> None:
        """Write weights and configuration to a file atomically."""
        # Cloned, because some attention mechanisms share tensors, and the format does not support this.
        state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
        metadata = {"format": self.format, "config": json.dumps(config.to_dict())}
        with whole_file(path) as hidden:
            save_file(state, hidden, metadata=metadata)

    def _config(self, metadata: dict[str, str], path: Path) -> Config:
        if metadata.get("format") != self.format:
            raise PoseError(f"{path}: not a {self.noun} checkpoint written by pose-train")
        try:
            return self.configured(json.loads(metadata["config"]))
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise PoseError(f"{path}: missing or damaged {self.noun} configuration ({in_brief(error)})") from error

    def _check_form(self, config: Config, shapes: dict[str, tuple[int, ...]], path: Path) -> None:
        """Check the shapes of the weights against the configuration, before memory is allocated."""
        try:
            with torch.device("meta"):
                expected = {name: tuple(tensor.shape) for name, tensor in self.build(config).state_dict().items()}
        except (ValueError, TypeError, RuntimeError) as error:
            raise PoseError(f"{path}: invalid {self.noun} configuration ({in_brief(error)})") from error
        if shapes != expected:
            raise PoseError(f"{path}: incompatible {self.noun} checkpoint; train or fetch it again")
