"""Lifter weights at rest: one safetensors file (no pickle) that also holds what the network is made of."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pose.errors import PoseError
from pose.lifter.model import LifterConfig, LifterNetwork
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
        with safe_open(path, framework="pt", device=device) as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise PoseError(f"{path}: not a readable lifter checkpoint ({error})") from error
    if metadata.get("format") != "pose-lifter-1":
        raise PoseError(f"{path}: a safetensors file, but not one that pose-train wrote")
    network = LifterNetwork(LifterConfig.from_dict(json.loads(metadata["config"])))
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise PoseError(f"{path}: a lifter of another form than this program's; train or fetch it again") from error
    return network.to(torch.device(device)).eval()
