"""Construction of forecaster networks from configurations, and their checkpoints (safetensors)."""

from collections.abc import Callable
from pathlib import Path

from pose.lifting.forecast.blended import Blended, ResidualMLP
from pose.lifting.forecast.config import FORMAT, ForecasterConfig
from pose.lifting.forecast.decoder import Autoregressive, OneShot
from pose.lifting.forecast.network import ForecasterNetwork
from pose.networks.checkpoint import CheckpointKind

# `pose.training.forecast_recurrent` adds the recurrent ones.
KINDS: dict[str, Callable[[ForecasterConfig], ForecasterNetwork]] = {
    "one-shot": OneShot,
    "autoregressive": Autoregressive,
    "mlp": ResidualMLP,
    "blended": Blended,
}


def build_network(config: ForecasterConfig) -> ForecasterNetwork:
    """Build the network; ValueError if parts of the configuration cannot be combined."""
    if config.kind not in KINDS:
        raise ValueError(f"forecaster of the kind {config.kind}: import pose.training.research first, which adds it")
    return KINDS[config.kind](config)


_FORECASTER = CheckpointKind("forecaster", FORMAT, ForecasterConfig.from_dict, build_network)


def save_forecaster(network: ForecasterNetwork, path: Path) -> None:
    """Write weights and configuration atomically."""
    _FORECASTER.save(network, network.config, path)


def load_network(path: Path) -> ForecasterNetwork:
    """Load a forecaster in evaluation mode; PoseError if the file is not complete."""
    return _FORECASTER.load(path)
