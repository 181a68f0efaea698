"""What a transformer has to beat: recurrent networks without and with attention, and a residual MLP over time."""

import torch
from torch import Tensor, nn

from pose.attention import Context
from pose.attention.scores import Additive
from pose.forecast.config import ForecasterConfig
from pose.forecast.format import AGES, FEATURES, FUTURE_STEPS, PAST_STEPS, PATHS, STEP, VELOCITY_SCALE
from pose.forecast.network import ForecasterNetwork, Head, Ways, context_at, step_times
from pose.lifter.blocks import PreciseLinear

ALIGNED = 32  # features that attention compares, and its hidden units


class Recurrent(ForecasterNetwork):
    """A GRU reads the past, another goes on step by step from its own pose and speed and says how fast every point
    moves on (Martinez et al., 2017). With attention (Bahdanau et al., 2015) each step also gets a mean of what the
    first said of each age, weighted by an additive score of the state before the step. In training the gradient flows
    through what it told itself.
    """

    rolls_out = True

    def __init__(self, config: ForecasterConfig, attends: bool) -> None:
        super().__init__(config)
        dim = config.dim
        self.embed: nn.Linear = PreciseLinear(FEATURES, dim)
        self.embed_step: nn.Linear = PreciseLinear(2 * PATHS, dim)
        self.blocks = nn.ModuleDict(
            {"encoder": nn.GRU(dim, dim, batch_first=True), "decoder": nn.GRUCell(2 * dim if attends else dim, dim)}
        )
        self.score = Additive(1, ALIGNED) if attends else None
        if attends:
            self.align_state, self.align_past = nn.Linear(dim, ALIGNED), nn.Linear(dim, ALIGNED)
        self.head = Head(dim, "none")
        for name, weight in self.blocks.named_parameters():
            if "weight_hh" in name:
                for gate in weight.chunk(3):
                    nn.init.orthogonal_(gate)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Ways:
        return self._roll(past, None, None)

    def forced(self, past: Tensor, truth: Tensor, keep: float, generator: torch.Generator) -> Ways:
        kept = torch.rand(truth.shape[:2], generator=generator).to(truth.device) < keep
        return self._roll(past, truth, kept[..., None])

    def _roll(self, past: Tensor, truth: Tensor | None, kept: Tensor | None) -> Ways:
        said, last = self.blocks["encoder"](self.embed(past))
        state = last[0]
        remembered = self._keys(said)
        times = step_times(past.device)
        place, speed = torch.zeros_like(past[:, -1, :PATHS]), past[:, -1, PATHS : 2 * PATHS]
        places, spreads = [], []
        for s in range(FUTURE_STEPS):
            token = self.embed_step(torch.cat([place, speed], dim=-1))
            if remembered is not None:
                token = torch.cat([token, self._context(state, times[:, s : s + 1], remembered, said)], dim=-1)
            state = self.blocks["decoder"](token, state)
            moved, log_sigma = self.head(state[:, None], times[:, s : s + 1])
            before, place = place, place + STEP * moved[:, 0]
            places.append(place)
            spreads.append(log_sigma[:, 0])
            if truth is not None and kept is not None:
                place = torch.where(kept[:, s], truth[:, s], place)
            speed = (place - before) * VELOCITY_SCALE
        return Ways(torch.stack(places, dim=1), torch.stack(spreads, dim=1))

    def _keys(self, said: Tensor) -> Tensor | None:
        if self.score is None:
            return None
        context = self._context_at(torch.as_tensor(AGES, device=said.device)[None], len(said))
        return self.score.keys(self.align_past(said)[:, None], context)

    def _context_at(self, times: Tensor, people: int) -> Context:
        one = context_at(times, ALIGNED)
        return Context(one.cos.expand(people, -1, -1), one.sin.expand(people, -1, -1))

    def _context(self, state: Tensor, time: Tensor, keys: Tensor, said: Tensor) -> Tensor:
        """(B, D): what the past says to the state (B, D) before the step at `time` (1, 1) s."""
        assert self.score is not None
        query = self.score.queries(self.align_state(state)[:, None, None], self._context_at(time, len(state)))
        weights = self.score.compare(query, keys)[:, 0].softmax(dim=-1)
        return (weights @ said)[:, 0]


class ResidualMLP(ForecasterNetwork):
    """Blocks that mix time alone, with LayerNorm and a residual each, between the cosine transform of the past and that
    of the future, after siMLPe (Guo et al., 2023). It says the way since the last frame of every step."""

    rolls_out = True

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        self.cosines: Tensor
        self.register_buffer("cosines", cosine_transform(PAST_STEPS), persistent=False)
        self.embed: nn.Linear = PreciseLinear(FEATURES, config.dim)
        self.blocks = nn.ModuleList(TimeBlock(config.dim) for _ in range(config.depth))
        self.head = Head(config.dim, "none")

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Ways:
        x = self.cosines @ self.embed(past)
        for block in self.blocks:
            x = block(x)
        return Ways(*self.head(self.cosines.mT @ x, step_times(past.device)))

    def forced(self, past: Tensor, truth: Tensor, keep: float, generator: torch.Generator) -> Ways:
        """Its steps do not depend on each other."""
        return self.predict(past)


class TimeBlock(nn.Module):
    """x + norm(W x), W over the K coefficients. A bias of theirs would be the same for all features, and the norm would
    take it away again."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mix = nn.Linear(PAST_STEPS, PAST_STEPS, bias=False)
        self.norm = nn.LayerNorm(dim)
        nn.init.xavier_uniform_(self.mix.weight, gain=1e-2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.mix.weight @ x
        result: Tensor = x + self.norm(y)
        return result


def cosine_transform(length: int) -> Tensor:
    """(K, K), the orthonormal DCT-II: its transpose is its inverse."""
    n = torch.arange(length, dtype=torch.float64)
    waves = torch.cos(torch.pi * (n + 0.5) * n[:, None] / length) * (2 / length) ** 0.5
    waves[0] /= 2**0.5
    result: Tensor = waves.float()
    return result
