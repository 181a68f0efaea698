"""Study of blocks that share attention maps, as in SAN (Xiao et al., 2019).

A trial trains a lifter, groups consecutive blocks with similar maps, and trains again with one map per group, until the
groups no longer change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor

from pose.lifting.attention import Attention
from pose.lifting.attention.shared_maps import share_in_groups
from pose.lifting.blocks import Block
from pose.lifting.config import LifterConfig
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.laboratory.attention_maps import attention_maps, layer_similarities
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.training import TrainingStatistics
from pose.training.laboratory.trial import Outcome, Setup

COLUMNS = {
    "trainings": "trainings",
    "alike": "neighbours' maps alike at first (0 to 1)",
    "maps": "maps left",
    "gt_before": "exact 2D, unshared: MPJPE, mm",
    "gt": "shared",
    "detector_before": "detector's 2D, unshared: MPJPE, mm",
    "detector": "shared, with it",
    "step_ms_before": "processor ms a step, unshared",
    "step_ms": "shared, a step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSharingSettings(lifters.LifterSettings):
    """Settings for one condition of a `map-sharing` experiment. Every training has `steps` steps."""

    threshold: float = 0.9  # minimum similarity of maps for blocks to be merged, see `merged`

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold: must be 0 to 1, got {self.threshold}")
        for name, only in _PLAIN.items():
            if self.model.get(name, only) != only:
                raise ValueError(f"model: {name} must be {only}: only blocks with separate maps can be merged")


_PLAIN = {"model": "transformer", "tokens": "frames", "residual": "plain", "init": "xavier", "shared_maps": 1}
_PLAIN |= {"shared_layers": False, "adaptive_depth": False}


def merged(groups: Sequence[int], similarities: Tensor, threshold: float) -> list[int]:
    """Return sizes of groups of blocks after merging those with similarities (G, G) of `threshold` or more."""
    merged_groups: list[list[int]] = []
    for number in range(len(groups)):
        if merged_groups and all(similarities[number, other] >= threshold for other in merged_groups[-1]):
            merged_groups[-1].append(number)
        else:
            merged_groups.append([number])
    return [sum(groups[number] for number in run) for run in merged_groups]


def run(settings: MapSharingSettings, setup: Setup) -> Outcome:
    """Measure the errors without shared maps and with the final groups, each after `steps` steps from the same seed.

    Returns:
        `gt`, `detector`, `step_ms`: results of `lifters.metrics` with shared maps. `gt_before`, `detector_before`,
            `step_ms_before`: those without. `alike`: mean similarity of neighbouring blocks' maps without sharing.
            `trainings`: number of trainings. `maps`: number of maps that remain.
    """
    config = settings.recipe()[0]
    groups, trainings, before = [1] * config.depth, 0, 0.0
    stages, results = list[Setup](), dict[str, float]()
    while True:
        stages.append(setup.stage("+".join(map(str, groups))))
        network, trained = _trained(config, groups, settings, stages[-1])
        trainings, before = trainings + 1, before + trained.earlier_seconds
        metrics = lifters.metrics(network, trained, settings, setup)
        similarities = _map_similarities(network, groups, settings, setup)
        if trainings == 1:
            results = {f"{name}_before": metrics[name] for name in ("gt", "detector", "step_ms")}
            results["alike"] = similarities.diagonal(1).mean().item()
        following = merged(groups, similarities, settings.threshold)
        if following == groups or trained.diverged:
            break
        groups = following
    for stage in stages:
        stage.state.unlink(missing_ok=True)
    results |= {name: metrics[name] for name in ("gt", "detector", "step_ms")}
    results |= {"trainings": float(trainings), "maps": float(len(groups))}
    return Outcome(results, settings.steps, trainings * settings.steps * settings.sequences, before)


def _trained(
    config: LifterConfig, groups: Sequence[int], settings: MapSharingSettings, stage: Setup
) -> tuple[LifterNetwork, TrainingStatistics]:
    batches = stage.motion().training(settings.frames, settings.sequences, stage.seed)
    network = shared(config, groups, stage.seed)
    trained = lifters.train(network, batches, settings, stage, f"in groups {groups} ")
    return network, trained


def shared(config: LifterConfig, groups: Sequence[int], seed: int) -> LifterNetwork:
    """Build a network whose consecutive blocks share attention maps."""
    torch.manual_seed(seed)
    network = LifterNetwork(config)
    blocks = [cast(Block, block) for block in network.blocks]
    layers: list[Attention] = [block.attention for block in blocks]
    for block, attention in zip(blocks, share_in_groups(layers, groups), strict=True):
        block.attention = attention
    initialize(network, config.init)
    return network


def _map_similarities(
    network: LifterNetwork, groups: Sequence[int], settings: MapSharingSettings, setup: Setup
) -> Tensor:
    """Compute the similarities (G, G) of the groups' maps, on validation subjects with exact 2D."""
    batch = TensorBatch.of(next(setup.motion().evaluation("validation", "gt", settings.frames)))
    firsts = [0, *accumulate(groups[:-1])]
    return layer_similarities(attention_maps(network, batch.observe(), batch.times)[firsts])
