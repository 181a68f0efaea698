"""What sets each score and distribution apart, beside its definition in `test_oracles`."""

from itertools import product

import pytest
import torch
from attention_forms import DIM, HEADS, make_batch
from torch import Tensor

from pose.attention import build_attention
from pose.attention.distributions import DISTRIBUTIONS
from pose.attention.scores import SCORES, Cosine

SUMMING_TO_ONE = ("softmax", "sparsemax", "entmax15", "entmax")
COMPARED = torch.zeros(1, 1, 1, 4)


def weights(name: str, scores: Tensor, seen: Tensor | None = None) -> Tensor:
    """What one head gives the keys of one query."""
    seen = torch.ones_like(scores, dtype=torch.bool) if seen is None else seen
    return DISTRIBUTIONS[name](1).double()(scores[None, None, None], seen, COMPARED, COMPARED)[0, 0, 0]


@pytest.mark.parametrize("causal", [False, True])
def test_the_default_is_softmax_attention(causal: bool) -> None:
    layer, plain = (build_attention(name, DIM, HEADS, causal=causal).double() for name in ("composed", "softmax"))
    layer.load_state_dict(plain.state_dict())
    batch = make_batch(length=40)
    torch.testing.assert_close(layer(batch.x, batch.context()), plain(batch.x, batch.context()), rtol=0, atol=1e-12)


def test_general_starts_as_the_scaled_dot_product() -> None:
    plain, general = (
        build_attention("composed", DIM, HEADS, score=name).double() for name in ("scaled-dot", "general")
    )
    missing = general.load_state_dict(plain.state_dict(), strict=False).missing_keys
    assert missing == ["score.weight"]
    batch = make_batch()
    torch.testing.assert_close(general(batch.x, batch.context()), plain(batch.x, batch.context()), rtol=0, atol=1e-6)


def test_a_cosine_does_not_know_how_long_its_vectors_are() -> None:
    q, k = torch.randn(2, 1, 2, 5, 8, dtype=torch.float64)
    score = Cosine(2, 8).double()
    torch.testing.assert_close(score.compare(3 * q, 7 * k), score.compare(q, k))


# Peters et al. (2019) and Martins and Astudillo (2016); solved by hand and by bisection in double precision.
@pytest.mark.parametrize(
    ("name", "want"), [("sparsemax", [0.75, 0.25, 0, 0]), ("entmax15", [0.592807, 0.270337, 0.136855, 0])]
)
def test_sparse_weights_of_a_known_row(name: str, want: list[float]) -> None:
    got = weights(name, torch.tensor([1, 0.5, 0.2, -1], dtype=torch.float64))
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_weights_of_any_scores(name: str, scale: float) -> None:
    """Those that share out share all; only those that judge each key for itself change when all scores rise."""
    scores = scale * torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got, raised = weights(name, scores), weights(name, scores + 3)
    assert got.isfinite().all()
    if name in SUMMING_TO_ONE:
        torch.testing.assert_close(got.sum(), torch.tensor(1.0, dtype=torch.float64), rtol=0, atol=1e-9)
        torch.testing.assert_close(raised, got, rtol=0, atol=1e-7)
    elif scale == 1:
        assert (raised - got).abs().max() > 0.01


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_keys_that_are_not_seen_get_nothing_and_do_nothing(name: str) -> None:
    scores = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = torch.arange(9) % 3 != 0
    got = weights(name, scores.where(seen, 1e6), seen)
    assert got[~seen].eq(0).all()
    torch.testing.assert_close(got[seen], weights(name, scores[seen]), rtol=0, atol=1e-12)
    assert weights(name, scores, torch.zeros(9, dtype=torch.bool)).eq(0).all()


@pytest.mark.parametrize("name", ["sparsemax", "entmax15", "entmax"])
def test_the_jacobian_of_an_entmax_is_the_published_one(name: str) -> None:
    """diag(g) - g g^T / sum(g), g = a^(2 - alpha) on the support (Peters et al., 2019)."""
    scores = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    alpha = 2.0 if name == "sparsemax" else 1.5
    a = weights(name, scores)
    g = torch.where(a > 0, a ** (2 - alpha), 0)
    want = torch.diag(g) - g[:, None] * g / g.sum()
    got = torch.autograd.functional.jacobian(lambda row: weights(name, row), scores)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-8)


def test_the_gradient_of_a_learnt_alpha() -> None:
    scores = torch.randn(1, 2, 3, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    layer = DISTRIBUTIONS["entmax"](2).double()

    def run(sharpness: Tensor) -> Tensor:
        arguments = (scores, torch.ones(9, dtype=torch.bool), COMPARED, COMPARED)
        return torch.func.functional_call(layer, {"sharpness": sharpness}, arguments)

    assert torch.autograd.gradcheck(run, (torch.tensor([-1.0, 0.7], dtype=torch.float64, requires_grad=True),))


@pytest.mark.parametrize(
    ("score", "distribution"),
    [pair for pair in product(SCORES, DISTRIBUTIONS) if pair not in (("additive", "coda"), ("deep", "coda"))],
)
def test_every_pair_that_makes_sense_can_be_had(score: str, distribution: str) -> None:
    batch = make_batch()
    layer = build_attention("composed", DIM, HEADS, score=score, distribution=distribution).double()
    assert layer(batch.x, batch.context()).isfinite().all()
