"""Hard attention: each query attends to one key, sampled in training and the most probable one in evaluation.

Axes: B batch, H head, T query, S key.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.training.attention.distributions.base import Compared, Distribution


class _OneKey(Distribution):
    """Base class that samples one key from the softmax, with noise that depends only on the training step."""

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self._seed = 0

    def begin_step(self, generator: torch.Generator) -> None:
        self._seed = int(torch.randint(2**62, (), generator=generator))

    def chosen(self, share_BHTS: Tensor, seen: Tensor) -> Tensor:
        """Choose one key per query, one-hot; all 0 for queries that see no key."""
        odds = share_BHTS.detach()
        if self.training:
            generator = torch.Generator(odds.device).manual_seed(self._seed)
            noise = torch.empty_like(odds, dtype=torch.float32).exponential_(generator=generator)
            odds = odds / noise.clamp_min(1e-30)  # Gumbel noise: the maximum is at s with probability a_s
        index_BHT = odds.masked_fill(~seen, -1).argmax(dim=-1)
        return F.one_hot(index_BHT, odds.shape[-1]).to(share_BHTS.dtype).where(seen, 0)


class StraightThrough(_OneKey):
    """One sampled key with the gradient of the softmax (Bengio et al., 2013); the most probable in evaluation."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        share = super().forward(scores_BHTS, seen, compared)
        chosen = self.chosen(share, seen)
        return chosen + (share - share.detach()) if self.training else chosen


class Hard(_OneKey):
    """One sampled key with the score-function gradient (Xu et al., 2015): unbiased, with high variance."""

    # No gradient flows through a choice. After the loss of each sequence is known, `penalty` gives the term (loss -
    # baseline) ln(probability of the choices), whose gradient is that of the expected loss. The moving baseline adds no
    # bias. As in the authors' code, the term has weight 0.1, entropy is rewarded, and half of the steps use the softmax
    # itself.

    KEEP = 0.9
    STRENGTH = 0.1
    ENTROPY = 0.002
    SOFT_STEPS = 0.5

    baseline: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self.register_buffer("baseline", torch.zeros(()))
        self._soft = False
        self._said: tuple[Tensor, Tensor] | None = None  # (log probability of the choices, entropy), (B,) each

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
        """Return the term that training adds for the losses (B,) of one step, and update the baseline."""
        assert self._said is not None, "a training step calls forward first"
        (probability_B, entropy_B), self._said = self._said, None
        ahead_B = (loss_B - self.baseline).detach()
        self.baseline.lerp_(loss_B.detach().mean().to(self.baseline), 1 - self.KEEP)
        return self.STRENGTH * (ahead_B * probability_B).mean() - self.ENTROPY * entropy_B.mean()


def choice_penalty(network: nn.Module, losses: Callable[[], Tensor]) -> Tensor | None:
    """Sum `Hard.penalty` over the network's layers, each with its own baseline; None without such layers."""
    layers = [layer for layer in network.modules() if isinstance(layer, Hard)]
    if not layers:
        return None
    loss_B = losses()
    return torch.stack([layer.penalty(loss_B) for layer in layers]).sum()
