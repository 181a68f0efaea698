"""Training of lifters, on whole sequences or for the newest frames of a window.

In training on whole sequences, most frames have context on both sides. In a stream, nothing follows the newest frame.
Here, the network does not see the last frames of a training sequence, and the newest frames that it sees have more
weight in the loss. A teacher network sees all frames. Unlike the ground truth, its output contains few details that
cannot be inferred from the 2D, so it is a target with less variance (Hinton et al., 2015).

Detectors use different score scales. Some give 0.95 to every visible joint, others 0.6. The scores of some decrease
gradually with uncertainty, those of others abruptly; files from marker systems contain only 1. A lifter trained on one
scale misinterprets others. Each training sequence may therefore get its own transformation, its "dialect". Scores of 0
(not detected) stay 0.
"""

import copy
import dataclasses
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.nn import Module

from pose.errors import PoseError
from pose.lifting.attention import layer_penalty
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import FIXUPS, LifterConfig
from pose.lifting.features import Lifted
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterBlock, LifterNetwork
from pose.lifting.predict import checkpoint_path
from pose.structures.sequences import LiftBatch
from pose.training.attention.distributions.sampled import choice_penalty
from pose.training.batches import BatchSource, TensorBatch, generator, mirrored_joints
from pose.training.config import LossWeights, NewestConfig, TrainConfig
from pose.training.forms.adaptive import ponder_cost
from pose.training.loop import Loss, TrainingLoop
from pose.training.losses import lifting_loss, sequence_losses

MIN_FRAMES = 3  # frames that the network must see


class NewestFrames:
    """Training for the newest frames of a window: their selection, weights and the loss of the teacher's output."""

    def __init__(self, config: NewestConfig, device: torch.device) -> None:
        """Load the teacher."""
        self.config = config
        self.teacher = None
        if config.teacher:
            self.teacher = load_checkpoint(checkpoint_path(config.teacher)).to(device).requires_grad_(False)
            if self.teacher.config.streaming:
                raise PoseError(f"train.newest.teacher: {config.teacher} is causal; use an offline lifter")

    def without_future(self, batch: TensorBatch) -> TensorBatch:
        """Return the batch without the last `NewestConfig.future` frames, which only the teacher receives."""
        count = batch.times.shape[1] - self.config.future
        if count < MIN_FRAMES:
            raise PoseError(
                f"train.newest.future: {self.config.future} leaves {count} of {batch.times.shape[1]} frames; at least "
                f"{MIN_FRAMES} are needed; reduce it or increase data.frames"
            )
        return batch.frames(slice(0, count))

    def weights(self, valid: Tensor) -> Tensor:
        """Return weights (B, T) of frames in the loss: `weight` for the newest, falling to 1 with age, 0 if invalid."""
        age = torch.arange(valid.shape[1] - 1, -1, -1, device=valid.device)
        return valid * (1 + (self.config.weight - 1) * 0.5 ** (age / self.config.half_life))

    def distillation(self, lifted: Lifted, batch: TensorBatch, weights: LossWeights) -> Tensor:
        """Return the loss against the teacher's output for the last frames of its window, without sigma's term."""
        assert self.teacher is not None
        count, frames = lifted.joints.shape[1], batch.times.shape[1]
        first = max(0, frames - self.teacher.config.window)
        joints, root = self._teacher_output(batch.frames(slice(first, frames)))
        student = Lifted(*(part[:, first:] for part in (lifted.joints, lifted.root, lifted.sigma)))
        shared = slice(0, count - first)
        frame_weights = self.weights(batch.valid[:, :count])[:, first:]
        times = batch.times[:, first:count]
        return lifting_loss(student, joints[:, shared], root[:, shared], times, frame_weights, weights, sigma=False)[0]

    @torch.no_grad()
    def _teacher_output(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """Return the teacher's joints and root, averaged over the batch and its mirror image."""
        assert self.teacher is not None
        both = TensorBatch(*(torch.cat(pair) for pair in zip(batch, batch.mirrored(), strict=True)))
        lifted = self.teacher(both.observe(), both.times)
        (plain, mirrored), (root, other) = lifted.joints.chunk(2), lifted.root.chunk(2)
        return (plain + mirrored_joints(mirrored)) / 2, (root + other * other.new_tensor([-1, 1, 1])) / 2


Evaluate = Callable[[LifterNetwork, int], dict[str, float]]


class Trainer(TrainingLoop[LifterNetwork, LiftBatch, TensorBatch]):
    """Training loop of a lifter."""

    to_tensors = TensorBatch.of

    def __init__(
        self, config: TrainConfig, source: BatchSource[LiftBatch], folder: Path, evaluate: Evaluate | None = None
    ) -> None:
        self.config = config
        super().__init__(config, source, folder, evaluate)
        self.newest = NewestFrames(config.newest, self.accelerator.device) if config.newest.used else None

    def build(self) -> LifterNetwork:
        network = LifterNetwork(self.config.model)
        if self.config.start_from:
            # The calibration of sigma is not copied, because the fine-tuned network is calibrated again at the end.
            network.load_state_dict(_weights_of(self.config.start_from, network) | {"calibration": network.calibration})
        elif self.config.model.init in FIXUPS:
            initialize(network, self.config.model.init, self._example_features(network))
        return network

    def write(self, network: LifterNetwork, path: Path) -> None:
        save_checkpoint(network, path)

    def final_network(self) -> LifterNetwork:
        """Return the network with averaged weights in evaluation mode.

        If the configuration sets `start_share`, the weights are averaged with those of `start_from`.
        """
        network = copy.deepcopy(self.averaged_network).eval()
        if self.config.start_from and self.config.start_share:
            initial = _weights_of(self.config.start_from, network)
            weights, initial_weight = network.state_dict(), self.config.start_share
            mixed = {
                name: weights[name].lerp(first.to(weights[name]), initial_weight) for name, first in initial.items()
            }
            network.load_state_dict(weights | mixed)
        return network

    def _example_features(self, network: LifterNetwork) -> Tensor:
        """Return the inputs of the embedding for the first batch, for data-dependent initialisation."""
        batch = TensorBatch.of(self.source.batch(0))
        return network.features(batch.observe(), batch.times, max(self.config.lookaheads))

    def loss(self, batch: TensorBatch, step: int) -> Loss:
        config, device = self.config, self.accelerator.device
        usable = [lookahead for lookahead in config.lookaheads if lookahead < batch.times.shape[1] / 2]
        lookahead = random.Random(f"{config.seed}/{step}").choice(usable or [0])
        begin_step(self.bare_network, config.seed, step)
        batches = [batch, batch.mirrored()] if config.consistency else [batch]
        if config.dialects:
            scores = (
                transform_scores(b.scores, generator(device, config.seed, step, i)) for i, b in enumerate(batches)
            )
            batches = [b._replace(scores=transformed) for b, transformed in zip(batches, scores, strict=True)]
        if self.newest:
            return self._newest_loss(batches[0], self.newest)
        return self._loss(batches, lookahead)

    def _newest_loss(self, batch: TensorBatch, newest: NewestFrames) -> Loss:
        """Return the loss of the frames that the network sees, of which the newest ones have more weight."""
        visible, weight = newest.without_future(batch), self.config.newest.share
        loss, parts, lifted = tensor_loss(self.network, visible, 0, self.config.loss, newest.weights(visible.valid))
        if newest.teacher is not None:
            parts["distillation"] = newest.distillation(lifted, batch, self.config.loss)
            loss = (1 - weight) * loss + weight * parts["distillation"]
        return loss, parts

    def _loss(self, batches: list[TensorBatch], lookahead: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch, or of a batch and its mirror image with the consistency term."""
        config = self.config
        if len(batches) == 1:
            return tensor_loss(self.network, batches[0], lookahead, config.loss)[:2]
        both = TensorBatch(*(torch.cat(pair) for pair in zip(*batches, strict=True)))
        loss, parts, lifted = tensor_loss(self.network, both, lookahead, config.loss)
        one, other = lifted.joints.chunk(2)
        distances = (one - mirrored_joints(other)).norm(dim=-1).mean(-1)
        valid = batches[0].valid[:, : distances.shape[1]]
        parts["consistency"] = torch.where(valid, distances, 0.0).sum() / valid.sum().clamp(min=1)
        return loss + config.consistency * parts["consistency"], parts


def begin_step(network: Module, seed: int, step: int) -> None:
    """Let each block sample its random numbers for a training step, which depend only on `seed`, `step` and block."""
    for layer, block in enumerate(cast(Iterable[LifterBlock], network.blocks)):
        random_numbers = generator(torch.device("cpu"), seed, step, layer)
        block.begin_step(step, random_numbers)


def _weights_of(names_or_paths: str, network: LifterNetwork) -> dict[str, Tensor]:
    """Return the mean weights of lifters, separated by commas, without their calibration."""
    parts = [_weights_of_one(name, network) for name in names_or_paths.split(",")]
    return {name: torch.stack([part[name] for part in parts]).mean(dim=0) for name in parts[0]}


def _weights_of_one(name_or_path: str, network: LifterNetwork) -> dict[str, Tensor]:
    trained = load_checkpoint(checkpoint_path(name_or_path))
    config, depth = network.config, trained.config.depth
    if trained.config != config and not can_deepen(trained.config, config):
        raise PoseError(f"train.start_from: {name_or_path} does not match train.model")
    weights = {name: weight for name, weight in trained.state_dict().items() if name != "calibration"}
    return weights if config.depth == depth else deepened(weights, network, depth)


def can_deepen(trained: LifterConfig, config: LifterConfig) -> bool:
    """Return whether `config` is that of a trained network, with whole multiples of its blocks."""
    repeatable = config.attention == "softmax" and config.norm == "pre" and config.residual == "plain"
    separate = config.shared_maps == 1 and not config.shared_layers and not config.adaptive_depth
    multiple = config.depth % trained.depth == 0
    return repeatable and separate and multiple and dataclasses.replace(trained, depth=config.depth) == config


def deepened(weights: dict[str, Tensor], network: LifterNetwork, depth: int) -> dict[str, Tensor]:
    """Return weights of `network` with which it computes what a network of `depth` blocks computes with `weights`.

    Identities (blocks with output layers of zero) follow each trained block (Chen et al., Net2Net, 2016).
    """
    copies = network.config.depth // depth
    started = {name: weight for name, weight in network.state_dict().items() if name != "calibration"}
    for name, weight in started.items():
        if name.startswith("blocks."):
            _, index, part = name.split(".", 2)
            if int(index) % copies == 0:
                started[name] = weights[f"blocks.{int(index) // copies}.{part}"]
            elif part.startswith(("attention.out_proj.", "ffn.fc2.")):
                started[name] = torch.zeros_like(weight)
        else:
            started[name] = weights[name]
    return started


def batch_loss(
    network: torch.nn.Module, batch: LiftBatch, lookahead: int, weights: LossWeights, device: torch.device
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss of one batch, and its terms by name. The last `lookahead` frames have no output and no loss."""
    return tensor_loss(network, TensorBatch.of(batch).to(device), lookahead, weights)[:2]


def tensor_loss(
    network: torch.nn.Module,
    batch: TensorBatch,
    lookahead: int,
    weights: LossWeights,
    frame_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor], Lifted]:
    """Return the loss of one batch, its terms by name, and the outputs; frames weigh equally without weights (B, T)."""
    times = batch.times
    lifted = network(batch.observe(), times, lookahead)
    count = times.shape[1] - lookahead
    loss_weights = batch.valid[:, :count] & batch.valid[:, lookahead:] if frame_weights is None else frame_weights
    truth = (batch.joints[:, :count], batch.root[:, :count], times[:, :count], loss_weights)
    loss, parts = lifting_loss(lifted, *truth, weights)
    if network.training:
        penalty = choice_penalty(network, lambda: sequence_losses(lifted, *truth, weights))
        if penalty is not None:
            parts["choices"] = penalty
            loss = loss + penalty
        steps = ponder_cost(network)
        if steps is not None:
            parts["ponder"] = steps
            loss = loss + weights.ponder * steps
    of_layers = layer_penalty(network)
    if of_layers is not None:
        parts["layers"] = of_layers
        loss = loss + of_layers
    return loss, parts, lifted


MIN_DETECTED_SCORE = 0.01  # minimum score of detected joints
_UNCHANGED = 0.2  # fraction of sequences whose scores are unchanged
_CURVED, _SCALED, _CONSTANT, _BY_JOINT, _NOISY, _STEPPED = 0.4, 0.35, 0.3, 0.5, 0.25, 0.1  # fractions of the others


def transform_scores(scores: Tensor, generator: torch.Generator) -> Tensor:
    """Transform scores (B, T, J) of each sequence at random: 0 stays 0, others become 0.01 to 1."""
    # A transformation combines any of these, in this order: a power, a common factor, one constant score, a factor per
    # joint, noise, and quantisation. A fifth of the sequences are unchanged.
    device, (batch, _, joints) = scores.device, scores.shape

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)

    def chosen(probability: float) -> Tensor:
        return uniform(0, 1, batch, 1, 1) < probability

    changed = scores
    power = uniform(math.log(0.25), math.log(4), batch, 1, 1).exp()
    changed = torch.where(chosen(_CURVED), changed.clamp(min=1e-6) ** power, changed)
    changed = torch.where(chosen(_SCALED), changed * uniform(0.3, 1, batch, 1, 1), changed)
    level = uniform(0.2, 1, batch, 1, 1)
    level = torch.where(chosen(0.4), torch.ones_like(level), level)
    changed = torch.where(chosen(_CONSTANT), level.expand_as(changed), changed)
    changed = torch.where(chosen(_BY_JOINT), changed * uniform(0.3, 1, batch, 1, joints), changed)
    changed = torch.where(chosen(_NOISY), changed * uniform(0.4, 1, *scores.shape), changed)
    steps = uniform(1, 5, batch, 1, 1).floor()
    changed = torch.where(chosen(_STEPPED), (changed * steps).ceil() / steps, changed)
    changed = torch.where(chosen(_UNCHANGED), scores, changed.clamp(MIN_DETECTED_SCORE, 1))
    return torch.where(scores > 0, changed, 0.0)
