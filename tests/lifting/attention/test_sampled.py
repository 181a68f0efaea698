"""Hard attention: what is drawn, and which gradients come of it."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from attention_forms import DIM, HEADS, make_batch
from torch import Tensor

from pose.lifting.attention import build_attention
from pose.training.attention.distributions import Compared, Hard
from pose.training.attention.distributions.sampled import StraightThrough, choice_penalty

SCORES = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64)
SEEN = torch.ones(1, 1, 1, 3, dtype=torch.bool)
NOTHING = Compared(*(torch.zeros(1, 1, 1, 1),) * 2, *(torch.zeros(1, 1),) * 2)
LOSSES = torch.tensor([5.0, 4.0, 7.0], dtype=torch.float64)  # of each choice


def drawing(kind: type[Hard | StraightThrough], seed: int) -> Any:
    layer = kind(1).double().train()
    layer.begin_step(torch.Generator().manual_seed(seed))
    return layer


def estimates(baseline: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[float, Tensor]]:
    """The probability of each choice, and the gradient that it brings the scores."""
    monkeypatch.setattr(Hard, "ENTROPY", 0.0)
    monkeypatch.setattr(Hard, "SOFT_STEPS", 0.0)
    for choice, probability in enumerate(SCORES.softmax(dim=0).tolist()):
        layer = drawing(Hard, 0)
        layer.baseline.fill_(baseline)
        one = torch.eye(3, dtype=torch.float64)[choice]
        monkeypatch.setattr(Hard, "chosen", lambda self, share, seen, one=one: one.expand_as(share))
        scores = SCORES.clone().requires_grad_()
        layer(scores[None, None, None], SEEN, NOTHING)
        (gradient,) = torch.autograd.grad(layer.penalty(LOSSES[choice : choice + 1]), scores)
        yield probability, gradient / Hard.STRENGTH


@pytest.mark.parametrize("baseline", [0.0, 5.4, -100.0])
def test_score_function_estimator_is_unbiased(baseline: float, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = SCORES.clone().requires_grad_()
    (want,) = torch.autograd.grad(scores.softmax(dim=0) @ LOSSES, scores)
    got = sum(probability * gradient for probability, gradient in estimates(baseline, monkeypatch))
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_baseline_reduces_the_gradient_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    def variance(baseline: float) -> float:
        return sum(p * gradient.square().sum().item() for p, gradient in estimates(baseline, monkeypatch))

    assert variance(5.4) < variance(0.0) / 5


def test_the_baseline_follows_the_loss() -> None:
    layer = drawing(Hard, 0)
    for _ in range(60):
        layer(SCORES[None, None, None], SEEN, NOTHING)
        layer.penalty(torch.tensor([2.0, 4.0]))
    assert layer.baseline.item() == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize("kind", [Hard, StraightThrough])
def test_sampling_frequencies_equal_the_softmax(
    kind: type[Hard | StraightThrough], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hard, "SOFT_STEPS", 0.0)
    count = 1000
    drawn = torch.stack(
        [drawing(kind, seed)(SCORES[None, None, None], SEEN, NOTHING)[0, 0, 0] for seed in range(count)]
    )
    assert ((drawn == 0) | (drawn == 1)).all()
    shares = SCORES.softmax(dim=0)
    assert ((drawn.mean(dim=0) - shares).abs() < 4 * (shares * (1 - shares) / count).sqrt()).all()


def test_straight_through_has_the_gradient_of_the_softmax() -> None:
    layer, scores = drawing(StraightThrough, 0), SCORES.clone().requires_grad_()
    (got,) = torch.autograd.grad(layer(scores[None, None, None], SEEN, NOTHING)[0, 0, 0] @ LOSSES, scores)
    (want,) = torch.autograd.grad(scores.softmax(dim=0) @ LOSSES, scores)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("distribution", ["hard", "straight-through"])
def test_sampling_is_deterministic_per_step(distribution: str) -> None:
    batch = make_batch()
    layer = build_attention("composed", DIM, HEADS, distribution=distribution).double()

    def answer(step: int) -> Tensor:
        layer.begin_step(step, torch.Generator().manual_seed(step))
        return layer(batch.x, batch.context())

    first = [answer(step) for step in range(4)]
    for step in (2, 0, 3, 1):
        torch.testing.assert_close(answer(step), first[step], rtol=0, atol=0)
    assert any(not torch.allclose(first[0], other) for other in first[1:])


def test_training_with_hard_attention_reaches_the_queries() -> None:
    """Through the choices alone: half of the steps take no softmax."""
    batch = make_batch()
    layer = build_attention("composed", DIM, HEADS, distribution="hard").double()
    for step in range(8):
        layer.zero_grad()
        layer.begin_step(step, torch.Generator().manual_seed(step))
        losses = layer(batch.x, batch.context()).square().mean(dim=(1, 2))
        penalty = choice_penalty(layer, lambda losses=losses: losses)
        assert penalty is not None
        (losses.mean() + penalty).backward()
        assert layer.get_submodule("q_proj").weight.grad.abs().max() > 0
    assert choice_penalty(build_attention("softmax", DIM, HEADS), lambda: torch.zeros(1)) is None
