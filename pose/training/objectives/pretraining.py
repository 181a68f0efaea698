"""Pre-training: a lifter's body learns 2D poses, which need no 3D to be known, before it is told any.

What is predicted are the offsets of a frame's joints from its pelvis in units of its body's spread (`features.py`), as
densities (`mixture.py`); the pelvis itself is the origin and is not asked for.

- masked: joints are hidden over spans of time, as a detector's gaps are, and predicted from what is on both sides of
  them (Devlin et al., 2019; Shan et al., P-STMO, 2022). To a lifter a hidden joint is one that is not seen: the column
  of the embedding that says so is what is learnt in its place.
- next: each pose from those before, so the sum of the losses is the likelihood of the sequence (Radford et al., 2018).
- any-order: poses in a random order, each from those before it in that order (Yang et al., XLNet, 2019). Two
  streams with the same weights: content, which knows its own pose, and query, which knows its time alone.

Axes: B batch, T time, J joint, D feature.
"""

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention import Context
from pose.attention.base import rotate
from pose.attention.softmax import SoftmaxAttention
from pose.lifter.blocks import Block
from pose.lifter.config import LifterConfig
from pose.lifter.format import PELVIS
from pose.lifter.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.config import SHORTEST_SPAN, ObjectiveConfig
from pose.training.objectives.mixture import Mixture, PoseHead


class Predicted(NamedTuple):
    """said: (B, T, J, 2, K). truth: (B, T, J, 2), body spreads. asked: (B, T, J) bool, what counts. simple: (B, T, J,
    2), what a line through the known poses beside it says, or, of next, the pose before."""

    said: Mixture
    truth: Tensor
    asked: Tensor
    simple: Tensor

    def loss(self) -> Tensor:
        """Nats of each coordinate."""
        return _mean(self.said.nll(self.truth).mean(dim=-1), self.asked)

    def error(self, of: Tensor) -> Tensor:
        """Mean distance of `of` (B, T, J, 2) from the truth, body spreads."""
        return _mean((of - self.truth).norm(dim=-1), self.asked)


class Pretraining(nn.Module):
    """A lifter with the head of an objective in place of its own. Raises ValueError for a lifter that cannot be trained
    so."""

    def __init__(self, lifter: LifterNetwork, objective: ObjectiveConfig) -> None:
        super().__init__()
        check_objective(lifter.config, objective.name)
        self.lifter, self.objective = lifter, objective
        self.head = PoseHead(cast(nn.Linear, lifter.head).in_features)
        # What a query knows beside its time: the same for every frame.
        self.query = nn.Parameter(torch.randn(lifter.config.dim) * 0.1) if objective.name == "any-order" else None

    def forward(self, batch: TensorBatch, generator: torch.Generator) -> Predicted:
        """What is asked of a batch is drawn from `generator`."""
        if self.objective.name == "masked":
            hidden = draw_hidden(batch.times, self.objective, generator)
            return self.masked(batch, hidden)
        if self.objective.name == "next":
            return self.next(batch)
        count, frames = batch.times.shape
        return self.any_order(batch, draw_ranks(count, frames, self.objective.asked, generator))

    def masked(self, batch: TensorBatch, hidden: Tensor) -> Predicted:
        """hidden: (B, T, J) bool."""
        seen = batch._replace(scores=batch.scores.masked_fill(hidden, 0.0))
        x, context = self.lifter.tokens(seen.observe(), batch.times)
        for block in self.lifter.blocks:
            x = block(x, context)
        truth, known = _poses(batch)
        simple = interpolated(truth, known & ~hidden, batch.times)
        return Predicted(self.head(self.lifter.norm(x)), truth, _counted(hidden & known), simple)

    def next(self, batch: TensorBatch) -> Predicted:
        """The pose of frame t + 1 from frames up to t."""
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
        asked = known[:, 1:] & batch.valid[:, :-1, None]
        return Predicted(self.head(self.lifter.norm(x[:, :-1]), before), truth[:, 1:], _counted(asked), before)

    def any_order(self, batch: TensorBatch, ranks: Tensor) -> Predicted:
        """ranks: (B, T) place in the order of those that are asked for, from 0; -1 of those that all others know."""
        assert self.query is not None
        content, context = self.lifter.tokens(batch.observe(), batch.times)
        query = self.lifter.timed(self.query.expand_as(content), batch.times)
        before = ranks[:, None, :] < ranks[:, :, None]
        known_to_itself = before | (ranks[:, None, :] == ranks[:, :, None])
        for block in self.lifter.blocks:
            content, query = _two_streams(cast(Block, block), content, query, known_to_itself, before, context)
        truth, known = _poses(batch)
        asked = (ranks >= 0)[..., None] & known
        simple = interpolated(truth, known & (ranks < 0)[..., None], batch.times)
        return Predicted(self.head(self.lifter.norm(query)), truth, _counted(asked), simple)


def is_causal(model: LifterConfig) -> bool:
    """Whether a frame's token sees no later frame by itself."""
    return model.streaming or (model.model != "transformer" and not model.model.startswith("bi"))


def check_objective(model: LifterConfig, name: str) -> None:
    """ValueError, saying why, for an objective that a lifter cannot have."""
    if model.attention_options.get("distribution") == "hard":
        raise ValueError(f"objective {name}: hard attention needs the lifting loss of each sequence")
    if model.tokens == "joints" or model.adaptive_depth:
        what = "tokens: joints" if model.tokens == "joints" else "adaptive_depth"
        raise ValueError(f"objective {name}: pre-training knows frames and blocks of fixed depth, not {what}")
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
        raise ValueError(
            "objective any-order: needs softmax attention over the whole window, whose mask can be set for each order"
        )


def draw_hidden(times_BT: Tensor, objective: ObjectiveConfig, generator: torch.Generator) -> Tensor:
    """(B, T, J) bool: spans that begin anywhere and last a tenth of a second to `longest`, over all joints together and
    over each alone, so many that the shares are as wanted on average."""
    count, frames = times_BT.shape
    device = times_BT.device
    shares = torch.tensor([objective.frames, *[objective.joints] * 17], device=device)
    mean = (SHORTEST_SPAN + objective.longest) / 2
    step = (times_BT[:, -1] - times_BT[:, 0]).clamp(min=1e-3) / max(frames - 1, 1)
    # Spans from before the first frame reach into it, so that no frame is hidden less than others.
    early = int(objective.longest / float(step.min())) + 1
    starts = torch.arange(-early, frames, device=device)
    begins = times_BT[:, :1] + starts * step[:, None]
    rates = -torch.log1p(-shares) * step[:, None] / mean  # of a Poisson process that leaves 1 - share uncovered
    drawn = torch.rand(count, len(starts), 18, generator=generator, device=device) < -torch.expm1(-rates)[:, None]
    lengths = SHORTEST_SPAN + (objective.longest - SHORTEST_SPAN) * torch.rand(
        count, len(starts), 18, generator=generator, device=device
    )
    ends = torch.where(drawn, begins[..., None] + lengths, -torch.inf)
    hidden = torch.zeros(count, frames, 18, dtype=torch.bool, device=device)
    for start in range(len(starts)):
        after = (times_BT >= begins[:, start, None] - 1e-9)[..., None]
        hidden |= after & (times_BT[..., None] < ends[:, start, None])
    return hidden[..., :1] | hidden[..., 1:]


def draw_ranks(count: int, frames: int, share: float, generator: torch.Generator) -> Tensor:
    """(B, T): a random order for each sequence; of its last `share` the place, of the others -1."""
    order = torch.rand(count, frames, generator=generator, device=generator.device).argsort(dim=1).argsort(dim=1)
    asked = max(1, round(frames * share))
    return (order - (frames - asked)).clamp(min=-1)


def interpolated(poses: Tensor, known: Tensor, times: Tensor) -> Tensor:
    """Poses (B, T, J, 2) where known (B, T, J), else on the line in time between the known ones beside them; before the
    first and after the last that one; 0 where none is known."""
    frames = torch.arange(poses.shape[1], device=poses.device)[:, None]
    before = torch.where(known, frames, -1).cummax(dim=1).values
    after = torch.where(known, frames, poses.shape[1]).flip(1).cummin(dim=1).values.flip(1)
    left = torch.where(before >= 0, before, after).clamp(max=poses.shape[1] - 1)
    right = torch.where(after < poses.shape[1], after, left)
    seconds = times[..., None].expand(left.shape)
    begin, end = seconds.gather(1, left), seconds.gather(1, right)
    share = ((seconds - begin) / (end - begin).clamp(min=1e-9)).clamp(0, 1).float()[..., None]
    pair = (index[..., None].expand_as(poses) for index in (left, right))
    one, other = (poses.gather(1, index) for index in pair)
    return (one + share * (other - one)).where(known.any(dim=1)[:, None, :, None], 0.0)


def _two_streams(
    block: Block, content: Tensor, query: Tensor, known_to_itself: Tensor, before: Tensor, context: Context
) -> tuple[Tensor, Tensor]:
    """One block on both streams: keys and values are the content's. The masks are (B, T, T)."""
    attention = cast(SoftmaxAttention, block.attention)
    q, k, v = attention.project(block.asked(content), context)
    asked = rotate(attention.split(attention.q_proj(block.asked(query))), context)
    return (
        block.finish(content, _attended(attention, q, k, v, known_to_itself)),
        block.finish(query, _attended(attention, asked, k, v, before)),
    )


def _content(block: Block, x: Tensor, mask: Tensor, context: Context) -> Tensor:
    attention = cast(SoftmaxAttention, block.attention)
    return block.finish(x, _attended(attention, *attention.project(block.asked(x), context), mask))


def _attended(attention: SoftmaxAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D); a token that sees none takes nothing."""
    some = mask.any(dim=-1, keepdim=True)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=(mask | ~some)[:, None])
    y_BTD: Tensor = attention.out_proj(attention.merge(y))
    return y_BTD.where(some, 0.0)


def _poses(batch: TensorBatch) -> tuple[Tensor, Tensor]:
    """Offsets (B, T, J, 2), and which of them are known (B, T, J)."""
    return batch.observe().offsets, (batch.scores > 0) & batch.valid[..., None]


def _counted(asked: Tensor) -> Tensor:
    """Without the pelvis, which is the origin."""
    counted = asked.clone()
    counted[..., PELVIS] = False
    return counted


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)
