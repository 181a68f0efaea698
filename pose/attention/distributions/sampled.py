"""Hard attention: each query takes one key, drawn in training, the likeliest one otherwise.

Axes: B batch, H head, T query, S key.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention.distributions.base import Compared, Distribution


class _OneKey(Distribution):
    """Draws from the softmax with noise of the training step alone, so that a resumed run is the same run."""

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self._seed = 0

    def begin_step(self, generator: torch.Generator) -> None:
        self._seed = int(torch.randint(2**62, (), generator=generator))

    def chosen(self, share_BHTS: Tensor, seen: Tensor) -> Tensor:
        """1 at the key each query takes, 0 elsewhere; all 0 where it sees none."""
        odds = share_BHTS.detach()
        if self.training:
            generator = torch.Generator(odds.device).manual_seed(self._seed)
            noise = torch.empty_like(odds, dtype=torch.float32).exponential_(generator=generator)
            odds = odds / noise.clamp_min(1e-30)  # whose largest is at s with probability a_s
        index_BHT = odds.masked_fill(~seen, -1).argmax(dim=-1)
        return F.one_hot(index_BHT, odds.shape[-1]).to(share_BHTS.dtype).where(seen, 0)


class StraightThrough(_OneKey):
    """One key of a softmax, whose gradient training takes for the choice's (Bengio et al., 2013): biased, but of
    little variance. Out of training it is the likeliest key, without a gradient."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        share = super().forward(scores_BHTS, seen, compared)
        chosen = self.chosen(share, seen)
        return chosen + (share - share.detach()) if self.training else chosen


class Hard(_OneKey):
    """One key of a softmax, with the score-function gradient (Xu et al., 2015): unbiased, but of much variance.

    No gradient goes back through a choice. Instead `penalty` gives, after the loss of each sequence is known, what to
    add to the loss: (loss - baseline) ln(probability of the choices), whose gradient is the one of the expected loss.
    The baseline follows the loss and costs nothing in bias. As in the authors' code the term counts a tenth, entropy is
    rewarded, and in half of the steps the weights are the softmax itself.
    """

    KEEP = 0.9
    STRENGTH = 0.1
    ENTROPY = 0.002
    SOFT_STEPS = 0.5

    baseline: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self.register_buffer("baseline", torch.zeros(()))
        self._soft = False
        self._said: tuple[Tensor, Tensor] | None = None  # log probability of the choices and entropy, (B,) each

    def begin_step(self, generator: torch.Generator) -> None:
        super().begin_step(generator)
        self._soft = float(torch.rand((), generator=generator)) < self.SOFT_STEPS

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        share = super().forward(scores_BHTS, seen, compared)
        if not self.training:
            return self.chosen(share, seen)
        logarithm = share.clamp_min(torch.finfo(share.dtype).tiny).log()
        entropy = -(share * logarithm).sum(dim=(1, 2, 3))
        if self._soft:
            self._said = (torch.zeros_like(entropy), entropy)
            return share
        chosen = self.chosen(share, seen)
        self._said = ((chosen * logarithm).sum(dim=(1, 2, 3)), entropy)
        return chosen

    def penalty(self, loss_B: Tensor) -> Tensor:
        """What a training step adds to its loss, given the loss of each sequence of the batch; updates the baseline."""
        assert self._said is not None, "a training step calls forward first"
        (probability_B, entropy_B), self._said = self._said, None
        ahead_B = (loss_B - self.baseline).detach()
        self.baseline.lerp_(loss_B.detach().mean().to(self.baseline), 1 - self.KEEP)
        return self.STRENGTH * (ahead_B * probability_B).mean() - self.ENTROPY * entropy_B.mean()


def choice_penalty(network: nn.Module, losses: Callable[[], Tensor]) -> Tensor | None:
    """The sum of `Hard.penalty` over the network's layers, each with a baseline of its own; None where it has none.
    losses: of each sequence of the batch, (B,), asked for where needed."""
    layers = [layer for layer in network.modules() if isinstance(layer, Hard)]
    if not layers:
        return None
    loss_B = losses()
    return torch.stack([layer.penalty(loss_B) for layer in layers]).sum()
