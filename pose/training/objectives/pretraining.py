"""Pre-training of a lifter's blocks on 2D poses, which needs no 3D.

The network predicts the offsets of a frame's joints from the pelvis, in units of the body's spread (`features.py`), as
mixtures of Laplace densities. The pelvis is the origin and is not predicted.

- masked: joints are masked over spans of time, like the gaps of a detector, and predicted from earlier and later frames
  (Devlin et al., 2019; Shan et al., P-STMO, 2022). Masked joints are given to the network as not detected, so it needs
  no learned mask token.
- next: each pose is predicted from earlier ones. The sum of the losses is the negative log likelihood of the sequence
  (Radford et al., 2018).
- any-order: poses are predicted in a random order, each from those before it in that order (Yang et al., XLNet, 2019).
  Two streams of tokens pass through the same blocks: a token of the content stream contains its pose, a token of the
  query stream only its time.

Axes: B batch, T time, J joint, D feature.
"""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Context, layer_penalty
from pose.lifting.attention.base import rotate
from pose.lifting.attention.softmax import SoftmaxAttention
from pose.lifting.blocks import Block, PreciseLinear
from pose.lifting.checkpoint import save_checkpoint
from pose.lifting.config import FIXUPS, LifterConfig
from pose.lifting.format import JOINTS, PELVIS
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.batches import BatchSource, TensorBatch, generator
from pose.training.config import MIN_SPAN_S, ObjectiveConfig, PretrainConfig
from pose.training.loop import Loss, TrainingLoop
from pose.training.trainer import begin_step

COMPONENTS = 3
_LOG_SCALES = (-5.0, 3.0)  # logarithm of body spreads, about 7 mm to 10 m; bounds the density


class Mixture(NamedTuple):
    """Mixture of K Laplace densities."""

    log_weights: Tensor  # (..., K) logarithms of the weights, which sum to 1
    means: Tensor  # (..., K) means of the components
    log_scales: Tensor  # (..., K) logarithms of the scales

    def nll(self, values: Tensor) -> Tensor:
        """Return the negative log likelihood (...) of `values` (...), in nats."""
        distances = (values[..., None] - self.means).abs() * torch.exp(-self.log_scales)
        return -torch.logsumexp(self.log_weights - distances - self.log_scales - math.log(2), dim=-1)

    def mean(self) -> Tensor:
        """Return the mean (...) of each mixture."""
        return (self.log_weights.exp() * self.means).sum(dim=-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw one sample (...) from each mixture."""
        weights = self.log_weights.exp()
        chosen = torch.multinomial(weights.flatten(0, -2), 1, generator=generator).view(*weights.shape[:-1], 1)
        mean, scale = (part.gather(-1, chosen)[..., 0] for part in (self.means, self.log_scales.exp()))
        uniform = torch.rand(mean.shape, generator=generator, device=mean.device) - 0.5
        return mean - scale * uniform.sign() * torch.log1p(-2 * uniform.abs().clamp(max=0.5 - 1e-7))


class PoseHead(nn.Module):
    """Output layer that predicts a mixture for each of the two coordinates of 17 joints."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear: nn.Linear = PreciseLinear(width, JOINTS * 2 * 3 * COMPONENTS)
        nn.init.normal_(self.linear.weight, std=0.1 / width**0.5)
        nn.init.normal_(self.linear.bias, std=0.1)  # equally initialised components would stay equal

    def forward(self, x: Tensor, base: Tensor | None = None) -> Mixture:
        """Return mixtures (B, T, J, 2, K) of tokens (B, T, width), with `base` (B, T, J, 2) added to the means."""
        weights, means, scales = self.linear(x).float().unflatten(-1, (3, JOINTS, 2, COMPONENTS)).unbind(-4)
        if base is not None:
            means = means + base[..., None]
        return Mixture(weights.log_softmax(dim=-1), means, (scales - 1).clamp(*_LOG_SCALES))


class PretrainingPredictions(NamedTuple):
    """Predictions of an objective."""

    density: Mixture  # predicted mixtures (B, T, J, 2, K) of K densities for x and y of each joint
    truth: Tensor  # (B, T, J, 2) true x and y offsets from the pelvis, in units of the body's spread
    target_mask: Tensor  # (B, T, J) bool, whether the joint is to be predicted
    baseline: Tensor  # (B, T, J, 2) prediction of a baseline

    def loss(self) -> Tensor:
        """Return the mean negative log likelihood per coordinate of the joints to predict, nats."""
        return _mean(self.density.nll(self.truth).mean(dim=-1), self.target_mask)

    def error(self, offsets: Tensor) -> Tensor:
        """Return the mean distance of offsets (B, T, J, 2) from the truth, in units of the body's spread."""
        return _mean((offsets - self.truth).norm(dim=-1), self.target_mask)


class Pretraining(nn.Module):
    """Lifter with the head of a pre-training objective; ValueError if it does not support this one."""

    def __init__(self, lifter: LifterNetwork, objective: ObjectiveConfig) -> None:
        super().__init__()
        check_objective(lifter.config, objective.name)
        self.lifter, self.objective = lifter, objective
        self.head = PoseHead(cast(nn.Linear, lifter.head).in_features)
        # Learned query token, equal for all frames before the time is added
        self.query = nn.Parameter(torch.randn(lifter.config.dim) * 0.1) if objective.name == "any-order" else None

    def forward(self, batch: TensorBatch, generator: torch.Generator) -> PretrainingPredictions:
        """Predict poses of a batch by the objective, with a mask or an order that is sampled from `generator`."""
        if self.objective.name == "masked":
            hidden = sample_mask(batch.times, self.objective, generator)
            return self.masked(batch, hidden)
        if self.objective.name == "next":
            return self.next(batch)
        count, frames = batch.times.shape
        return self.any_order(batch, sample_order(count, frames, self.objective.asked, generator))

    def masked(self, batch: TensorBatch, hidden: Tensor) -> PretrainingPredictions:
        """Predict joints that are masked in `hidden` (B, T, J)."""
        seen = batch._replace(scores=batch.scores.masked_fill(hidden, 0.0))
        x, context = self.lifter.tokens(seen.observe(), batch.times)
        for block in self.lifter.blocks:
            x = block(x, context)
        truth, known = _poses(batch)
        baseline = interpolated(truth, known & ~hidden, batch.times)
        return PretrainingPredictions(self.head(self.lifter.norm(x)), truth, _without_pelvis(hidden & known), baseline)

    def next(self, batch: TensorBatch) -> PretrainingPredictions:
        """Predict the pose of every frame t + 1 of a batch from the frames up to t."""
        truth, known = _poses(batch)
        before = truth[:, :-1]
        x, context = self.lifter.tokens(batch.observe(), batch.times)
        if is_causal(self.lifter.config):
            for block in self.lifter.blocks:
                x = block(x, context)
        else:
            past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()[None]
            for block in self.lifter.blocks:
                x = _content(cast(Block, block), x, past, context)
        target_mask = known[:, 1:] & batch.valid[:, :-1, None]
        return PretrainingPredictions(
            self.head(self.lifter.norm(x[:, :-1]), before), truth[:, 1:], _without_pelvis(target_mask), before
        )

    def any_order(self, batch: TensorBatch, ranks: Tensor) -> PretrainingPredictions:
        """Predict poses in the order of `ranks` (B, T), from 0; -1 is a known frame."""
        assert self.query is not None
        content, context = self.lifter.tokens(batch.observe(), batch.times)
        query = self.lifter.add_time_encoding(self.query.expand_as(content), batch.times)
        query_mask = ranks[:, None, :] < ranks[:, :, None]
        content_mask = query_mask | (ranks[:, None, :] == ranks[:, :, None])
        for block in self.lifter.blocks:
            content, query = _two_streams(cast(Block, block), content, query, content_mask, query_mask, context)
        truth, known = _poses(batch)
        target_mask = (ranks >= 0)[..., None] & known
        baseline = interpolated(truth, known & (ranks < 0)[..., None], batch.times)
        return PretrainingPredictions(self.head(self.lifter.norm(query)), truth, _without_pelvis(target_mask), baseline)


def is_causal(model: LifterConfig) -> bool:
    """Return whether the output for a frame is independent of later frames."""
    return model.streaming or (model.model not in ("transformer", "convolution") and not model.model.startswith("bi"))


def check_objective(model: LifterConfig, name: str) -> None:
    """Check that a lifter supports an objective."""
    if model.attention_options.get("distribution") == "hard":
        raise ValueError(f"objective {name}: hard attention needs the lifting loss of each sequence")
    if model.tokens in ("joints", "dual") or model.adaptive_depth:
        what = "adaptive_depth" if model.adaptive_depth else f"tokens: {model.tokens}"
        raise ValueError(f"objective {name}: {what} is not supported in pre-training")
    attends = model.model == "transformer" and model.attention == "softmax" and model.shared_maps == 1
    if model.residual == "reversible" and (name == "any-order" or (name == "next" and not is_causal(model))):
        raise ValueError(f"objective {name}: cannot set masks per block with residual: reversible")
    if name == "next" and not is_causal(model) and not attends:
        what = model.attention if model.model == "transformer" else model.model
        raise ValueError(
            f"objective next: needs a causal model, but {what} sees the whole window; use a streaming model, or "
            "softmax attention"
        )
    if name == "any-order" and (model.streaming or not attends):
        raise ValueError("objective any-order: needs softmax attention over the whole window, with a mask per order")


def sample_mask(times_BT: Tensor, objective: ObjectiveConfig, generator: torch.Generator) -> Tensor:
    """Sample masks (B, T, J), True for masked joints: spans of 0.1 s and longer over all and over single joints."""
    # Starts and durations of the spans are random. Their number is such that the expected fractions of masked frames
    # and joints are those of the objective.
    count, frames = times_BT.shape
    device = times_BT.device
    fractions = torch.tensor([objective.frames, *[objective.joints] * 17], device=device)
    mean = (MIN_SPAN_S + objective.longest) / 2
    step = (times_BT[:, -1] - times_BT[:, 0]).clamp(min=1e-3) / max(frames - 1, 1)
    # Spans may start before the first frame, so that all frames are masked equally often.
    early = int(objective.longest / float(step.min())) + 1
    starts = torch.arange(-early, frames, device=device)
    begins = times_BT[:, :1] + starts * step[:, None]
    # Expected number of spans per start, as of a Poisson process whose spans leave the fraction 1 - shares uncovered.
    rates = -torch.log1p(-fractions) * step[:, None] / mean
    drawn = torch.rand(count, len(starts), 18, generator=generator, device=device) < -torch.expm1(-rates)[:, None]
    lengths = MIN_SPAN_S + (objective.longest - MIN_SPAN_S) * torch.rand(
        count, len(starts), 18, generator=generator, device=device
    )
    ends = torch.where(drawn, begins[..., None] + lengths, -torch.inf)
    hidden = torch.zeros(count, frames, 18, dtype=torch.bool, device=device)
    for start in range(len(starts)):
        after = (times_BT >= begins[:, start, None] - 1e-9)[..., None]
        hidden |= after & (times_BT[..., None] < ends[:, start, None])
    return hidden[..., :1] | hidden[..., 1:]


def sample_order(count: int, frames: int, fraction: float, generator: torch.Generator) -> Tensor:
    """Sample a random order of frames: positions (B, T) of the last `fraction`, to be predicted, else -1."""
    order = torch.rand(count, frames, generator=generator, device=generator.device).argsort(dim=1).argsort(dim=1)
    predicted = max(1, round(frames * fraction))
    return (order - (frames - predicted)).clamp(min=-1)


def interpolated(poses: Tensor, known: Tensor, times: Tensor) -> Tensor:
    """Interpolate unknown joints of poses (B, T, J, 2) in time, constant at the ends; 0 if none is known."""
    frames = torch.arange(poses.shape[1], device=poses.device)[:, None]
    before = torch.where(known, frames, -1).cummax(dim=1).values
    after = torch.where(known, frames, poses.shape[1]).flip(1).cummin(dim=1).values.flip(1)
    left = torch.where(before >= 0, before, after).clamp(max=poses.shape[1] - 1)
    right = torch.where(after < poses.shape[1], after, left)
    seconds = times[..., None].expand(left.shape)
    begin, end = seconds.gather(1, left), seconds.gather(1, right)
    fraction = ((seconds - begin) / (end - begin).clamp(min=1e-9)).clamp(0, 1).float()[..., None]
    pair = (index[..., None].expand_as(poses) for index in (left, right))
    one, other = (poses.gather(1, index) for index in pair)
    return (one + fraction * (other - one)).where(known.any(dim=1)[:, None, :, None], 0.0)


def _two_streams(
    block: Block, content: Tensor, query: Tensor, content_mask: Tensor, query_mask: Tensor, context: Context
) -> tuple[Tensor, Tensor]:
    """Apply one block to both streams (B, T, D) of `any-order`; keys and values are of the content stream."""
    attention = cast(SoftmaxAttention, block.attention)
    q, k, v = attention.project(block.attention_input(content), context)
    rotated_query = rotate(attention.split(attention.q_proj(block.attention_input(query))), context)
    return (
        block.finish(content, _attended(attention, q, k, v, content_mask)),
        block.finish(query, _attended(attention, rotated_query, k, v, query_mask)),
    )


def _content(block: Block, x: Tensor, mask: Tensor, context: Context) -> Tensor:
    attention = cast(SoftmaxAttention, block.attention)
    return block.finish(x, _attended(attention, *attention.project(block.attention_input(x), context), mask))


def _attended(attention: SoftmaxAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Return the attention output (B, T, D), which is 0 for tokens whose row of the mask is empty."""
    some = mask.any(dim=-1, keepdim=True)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=(mask | ~some)[:, None])
    y_BTD: Tensor = attention.out_proj(attention.merge(y))
    return y_BTD.where(some, 0.0)


def _poses(batch: TensorBatch) -> tuple[Tensor, Tensor]:
    """Return offsets (B, T, J, 2), and a mask (B, T, J) of those that are known."""
    return batch.observe().offsets, (batch.scores > 0) & batch.valid[..., None]


def _without_pelvis(mask: Tensor) -> Tensor:
    """Return a mask (B, T, J) without the pelvis, which is the origin and not predicted."""
    without = mask.clone()
    without[..., PELVIS] = False
    return without


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


class Pretrainer(TrainingLoop[Pretraining, LiftBatch, TensorBatch]):
    """Training loop of pre-training on 2D poses; the lifter's own head is not trained."""

    to_tensors = TensorBatch.of

    def __init__(
        self,
        config: PretrainConfig,
        source: BatchSource[LiftBatch],
        folder: Path,
        evaluate: Callable[[Pretraining, int], dict[str, float]] | None = None,
    ) -> None:
        self.config = config
        super().__init__(config, source, folder, evaluate)

    def build(self) -> Pretraining:
        lifter = LifterNetwork(self.config.model)
        if self.config.model.init in FIXUPS:
            example = TensorBatch.of(self.source.batch(0))
            initialize(lifter, self.config.model.init, lifter.features(example.observe(), example.times))
        return Pretraining(lifter, self.config.objective)

    def write(self, network: Pretraining, path: Path) -> None:
        save_checkpoint(network.lifter, path)

    def loss(self, batch: TensorBatch, step: int) -> Loss:
        begin_step(self.bare_network.lifter, self.config.seed, step)
        predicted = self.network(batch, generator(batch.times.device, self.config.seed, step, "asked"))
        nats, of_layers = predicted.loss(), layer_penalty(self.bare_network)
        with torch.no_grad():
            parts = {"nats": nats, "distance": predicted.error(predicted.density.mean())}
        return (nats if of_layers is None else nats + of_layers), parts


@torch.inference_mode()
def measure_objective(network: Pretraining, batches: Iterable[LiftBatch]) -> dict[str, float]:
    """Compute the metrics of an objective. Masks and orders are the same at every call.

    Returns:
        `nats`: negative log likelihood per coordinate. `distance`: mean distance of the mean prediction from the truth,
            in units of the body's spread. `simple`: the same distance for the baseline.
    """
    drawn = generator(torch.device("cpu"), "measured")
    sums: dict[str, float] = {"nats": 0.0, "distance": 0.0, "simple": 0.0}
    total = 0
    for batch in batches:
        predicted = network(TensorBatch.of(batch), drawn)
        count_in_batch = int(predicted.target_mask.sum())
        metrics = predicted.loss(), predicted.error(predicted.density.mean()), predicted.error(predicted.baseline)
        for name, value in zip(sums, metrics, strict=True):
            sums[name] += count_in_batch * float(value)
        total += count_in_batch
    return {name: value / max(total, 1) for name, value in sums.items()}
