"""Recurrent forecasters without and with attention, as baselines. Importing this module adds them by name."""

import torch
from torch import Tensor, nn

from pose.lifting.attention import Context
from pose.lifting.blocks import PreciseLinear
from pose.lifting.forecast.build import KINDS
from pose.lifting.forecast.config import (
    AGES,
    COORDINATES,
    FEATURES,
    FUTURE_STEPS,
    STEP,
    VELOCITY_SCALE,
    ForecasterConfig,
)
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, Head, context_at, step_times
from pose.training.attention.scores import Additive

ATTENTION_FEATURES = 32  # number of features that attention compares, and number of its hidden units


class Recurrent(ForecasterNetwork):
    """Recurrent forecaster (Martinez et al., 2017)."""

    # A GRU encodes the past, and another GRU predicts the velocity of every point step by step. With attention
    # (Bahdanau et al., 2015), each step also gets a weighted mean of the encoder's outputs. In training the gradient
    # flows through predicted steps.

    predicts_steps = True

    def __init__(self, config: ForecasterConfig, attends: bool) -> None:
        super().__init__(config)
        dim = config.dim
        self.embed: nn.Linear = PreciseLinear(FEATURES, dim)
        self.embed_step: nn.Linear = PreciseLinear(2 * COORDINATES, dim)
        self.blocks = nn.ModuleDict(
            {"encoder": nn.GRU(dim, dim, batch_first=True), "decoder": nn.GRUCell(2 * dim if attends else dim, dim)}
        )
        self.score = Additive(1, ATTENTION_FEATURES) if attends else None
        if attends:
            self.align_state, self.align_past = nn.Linear(dim, ATTENTION_FEATURES), nn.Linear(dim, ATTENTION_FEATURES)
        self.head = Head(dim, "none")
        for name, weight in self.blocks.named_parameters():
            if "weight_hh" in name:
                for gate in weight.chunk(3):
                    nn.init.orthogonal_(gate)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        return self._roll(past, None, None)

    def scheduled_sampling(
        self, past: Tensor, truth: Tensor, truth_probability: float, generator: torch.Generator
    ) -> Displacements:
        use_truth = torch.rand(truth.shape[:2], generator=generator).to(truth.device) < truth_probability
        return self._roll(past, truth, use_truth[..., None])

    def _roll(self, past: Tensor, truth: Tensor | None, use_truth: Tensor | None) -> Displacements:
        encoded, last = self.blocks["encoder"](self.embed(past))
        state = last[0]
        keys = self._keys(encoded)
        times = step_times(past.device)
        displacement, velocity = torch.zeros_like(past[:, -1, :COORDINATES]), past[:, -1, COORDINATES : 2 * COORDINATES]
        displacements, log_sigmas = [], []
        for s in range(FUTURE_STEPS):
            token = self.embed_step(torch.cat([displacement, velocity], dim=-1))
            if keys is not None:
                token = torch.cat([token, self._context(state, times[:, s : s + 1], keys, encoded)], dim=-1)
            state = self.blocks["decoder"](token, state)
            moved, log_sigma = self.head(state[:, None], times[:, s : s + 1])
            before, displacement = displacement, displacement + STEP * moved[:, 0]
            displacements.append(displacement)
            log_sigmas.append(log_sigma[:, 0])
            if truth is not None and use_truth is not None:
                displacement = torch.where(use_truth[:, s], truth[:, s], displacement)
            velocity = (displacement - before) * VELOCITY_SCALE
        return Displacements(torch.stack(displacements, dim=1), torch.stack(log_sigmas, dim=1))

    def _keys(self, encoded: Tensor) -> Tensor | None:
        if self.score is None:
            return None
        context = self._context_at(torch.as_tensor(AGES, device=encoded.device)[None], len(encoded))
        return self.score.keys(self.align_past(encoded)[:, None], context)

    def _context_at(self, times: Tensor, people: int) -> Context:
        one = context_at(times, ATTENTION_FEATURES)
        return Context(one.cos.expand(people, -1, -1), one.sin.expand(people, -1, -1))

    def _context(self, state: Tensor, time: Tensor, keys: Tensor, encoded: Tensor) -> Tensor:
        """Return the weighted mean (B, D) of the encoder's outputs (B, K, D) for a decoder state (B, D)."""
        assert self.score is not None
        query = self.score.queries(self.align_state(state)[:, None, None], self._context_at(time, len(state)))
        weights = self.score.compare(query, keys)[:, 0].softmax(dim=-1)
        return (weights @ encoded)[:, 0]


KINDS["gru"] = lambda config: Recurrent(config, attends=False)
KINDS["gru-attention"] = lambda config: Recurrent(config, attends=True)
