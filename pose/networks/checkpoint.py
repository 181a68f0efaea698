"""Weights at rest: one safetensors file (no pickle) that also holds what the network is made of."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from pose.errors import PoseError, in_brief
from pose.system.whole_file import whole_file

Config = TypeVar("Config")
Network = TypeVar("Network", bound=nn.Module)


class Configured(Protocol):
    """What describes a network."""

    def to_dict(self) -> Mapping[str, Any]:
        """Plain values (JSON)."""
        ...


@dataclass(frozen=True, slots=True)
class Kind(Generic[Config, Network]):
    """A kind of network that has files. noun: for people. format: the mark of its files. configured: the configuration
    from JSON; raises ValueError or TypeError for what is none. build: its network; raises ValueError or TypeError for
    parts that do not go together.
    """

    noun: str
    format: str
    configured: Callable[[Mapping[str, Any]], Config]
    build: Callable[[Config], Network]

    def load(self, path: Path) -> Network:
        """The network in evaluation mode. Raises PoseError for a file that is not a whole one of this kind."""
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
        """Write weights and config; the file appears under its name only when it is whole."""
        # Cloned, since the format knows no shared tensors, which some mechanisms have.
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
        """Hold the file to its own configuration before anything of that size takes memory. Raises PoseError."""
        try:
            with torch.device("meta"):
                expected = {name: tuple(tensor.shape) for name, tensor in self.build(config).state_dict().items()}
        except (ValueError, TypeError, RuntimeError) as error:
            raise PoseError(f"{path}: invalid {self.noun} configuration ({in_brief(error)})") from error
        if shapes != expected:
            raise PoseError(f"{path}: incompatible {self.noun} checkpoint; train or fetch it again")
