"""Lifter weights at rest: one safetensors file (no pickle) that also holds what the network is made of."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pose.errors import PoseError
from pose.lifter.config import LifterConfig
from pose.lifter.model import LifterNetwork
from pose.system.whole_file import whole_file


def save_checkpoint(network: LifterNetwork, path: Path) -> None:
    """Write weights and config; the file appears under its name only when it is whole."""
    # Cloned, since the format knows no shared tensors, which some mechanisms have.
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
    metadata = {"format": "pose-lifter-1", "config": json.dumps(network.config.to_dict())}
    with whole_file(path) as hidden:
        save_file(state, hidden, metadata=metadata)


def load_checkpoint(path: Path, device: str = "cpu") -> LifterNetwork:
    """The network in evaluation mode. Raises PoseError for a file that is not a whole lifter."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            config = _config(file.metadata() or {}, path)
            names = list(file.keys())
            _check_form(config, {name: tuple(file.get_slice(name).get_shape()) for name in names}, path)
            state = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise PoseError(f"{path}: not a readable lifter checkpoint ({error})") from error
    if not all(torch.isfinite(tensor).all() for tensor in state.values()):
        raise PoseError(f"{path}: damaged, some of its weights are no numbers")
    network = LifterNetwork(config)
    network.load_state_dict(state)
    return network.to(torch.device(device)).eval()


def _config(metadata: dict[str, str], path: Path) -> LifterConfig:
    if metadata.get("format") != "pose-lifter-1":
        raise PoseError(f"{path}: a safetensors file, but not one that pose-train wrote")
    try:
        return LifterConfig.from_dict(json.loads(metadata["config"]))
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise PoseError(f"{path}: a lifter whose configuration is missing or damaged ({error})") from error


def _check_form(config: LifterConfig, shapes: dict[str, tuple[int, ...]], path: Path) -> None:
    """Hold the file to its own configuration before anything of that size takes memory. Raises PoseError."""
    try:
        with torch.device("meta"):
            expected = {name: tuple(tensor.shape) for name, tensor in LifterNetwork(config).state_dict().items()}
    except (ValueError, TypeError, RuntimeError) as error:
        raise PoseError(f"{path}: a lifter whose configuration cannot be ({error})") from error
    if shapes != expected:
        raise PoseError(f"{path}: a lifter of another form than this program's; train or fetch it again")
