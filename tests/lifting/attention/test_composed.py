"""What sets each score and distribution apart, beside its definition in `composed_definitions`."""

import pytest
import torch
from attention_forms import DIM, HEADS, Batch, make_batch
from torch import Tensor

from pose.lifting.attention import build_attention
from pose.training.attention.distributions import DISTRIBUTIONS, Compared
from pose.training.attention.scores import SCORES

SUMMING_TO_ONE = ("softmax", "sparsemax", "entmax15", "entmax", "hard", "straight-through", "ratio")
INDIFFERENT = (*SUMMING_TO_ONE[:-1], "continuous", "continuous-sparse")  # to what all scores have in common


def weights(name: str, scores: Tensor, seen: Tensor | None = None, frames: Tensor | None = None) -> Tensor:
    """What one head gives the keys of one query. frames: their numbers."""
    seen = torch.ones_like(scores, dtype=torch.bool) if seen is None else seen
    frames = torch.arange(len(scores)) if frames is None else frames
    layer = DISTRIBUTIONS[name](1).double().eval()
    return layer(scores[None, None, None], seen[None, None, None], compared(frames))[0, 0, 0]


def compared(frames: Tensor) -> Compared:
    """Alike in all but time, which passes unevenly."""
    same, times = torch.zeros(1, 1, 1, 4, dtype=torch.float64), frames.double()[None] ** 1.5
    return Compared(same, same.expand(-1, -1, len(frames), -1), times[:, :1], times)


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


# Peters et al. (2019) and Martins and Astudillo (2016); solved by hand and by bisection in double precision.
@pytest.mark.parametrize(
    ("name", "want"), [("sparsemax", [0.75, 0.25, 0, 0]), ("entmax15", [0.592807, 0.270337, 0.136855, 0])]
)
def test_sparse_weights_equal_known_values(name: str, want: list[float]) -> None:
    got = weights(name, torch.tensor([1, 0.5, 0.2, -1], dtype=torch.float64))
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_weights_are_distributions_for_any_scores(name: str) -> None:
    """Those that share out share all; only those that judge each key for itself change when all scores rise."""
    for scale in (1e-3, 1, 1e3):
        scores = scale * torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        scores = scores.abs() if name == "ratio" else scores
        got, raised = weights(name, scores), weights(name, scores + 3)
        assert got.isfinite().all()
        if name in SUMMING_TO_ONE:
            torch.testing.assert_close(got.sum(), torch.tensor(1.0, dtype=torch.float64), rtol=0, atol=1e-9)
        if name in INDIFFERENT:
            torch.testing.assert_close(raised, got, rtol=0, atol=1e-7)
        elif scale == 1:
            assert (raised - got).abs().max() > 0.01


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_masked_keys_have_zero_weight_and_no_effect(name: str) -> None:
    scores = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).exp()
    seen = torch.arange(9) % 3 != 0
    got = weights(name, scores.where(seen, 1e6), seen)
    assert got[~seen].eq(0).all()
    torch.testing.assert_close(got[seen], weights(name, scores[seen], frames=seen.nonzero()[:, 0]), rtol=0, atol=1e-12)
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
        arguments = (scores, torch.ones(9, dtype=torch.bool), compared(torch.arange(9)))
        return torch.func.functional_call(layer, {"sharpness": sharpness}, arguments)

    assert torch.autograd.gradcheck(run, (torch.tensor([-1.0, 0.7], dtype=torch.float64, requires_grad=True),))


def makes_sense(score: str, distribution: str) -> bool:
    if distribution == "ratio":
        return score == "kernel"
    return distribution != "coda" or score not in ("additive", "deep", "kernel", "location", "feature")


@pytest.mark.parametrize("score", SCORES)
def test_only_valid_score_and_distribution_pairs_are_available(score: str) -> None:
    batch = make_batch()
    for distribution in DISTRIBUTIONS:
        if makes_sense(score, distribution):
            layer = build_attention("composed", DIM, HEADS, score=score, distribution=distribution).double()
            assert layer(batch.x, batch.context()).isfinite().all()
        else:
            with pytest.raises(ValueError, match=f"the score .{score}. does not define|those of .{score}. can be"):
                build_attention("composed", DIM, HEADS, score=score, distribution=distribution)


def test_location_scores_do_not_depend_on_the_keys() -> None:
    layer, batch = build_attention("composed", DIM, HEADS, score="location").double(), make_batch(length=9)
    other = batch.x.clone()
    other[:, 1:] = torch.randn(2, 8, DIM, dtype=torch.float64)
    maps = [layer.weights(x, batch.context(masked=False))[:, :, 0] for x in (batch.x, other)]
    torch.testing.assert_close(maps[0], maps[1], rtol=0, atol=0)


def test_key_only_scores_are_equal_for_every_query() -> None:
    layer, batch = build_attention("composed", DIM, HEADS, score="feature").double(), make_batch(length=9)
    maps = layer.weights(batch.x, batch.context(masked=False))
    torch.testing.assert_close(maps, maps[:, :, :1].expand_as(maps), rtol=0, atol=0)
    assert maps.std(dim=-1).min() > 1e-3


def test_a_kernel_and_its_ratio_are_linear_attention() -> None:
    """Without a time term, sum_s phi(k_s) v_s^T is one matrix for all queries (Katharopoulos et al., 2020)."""
    layer = build_attention("composed", DIM, HEADS, score="kernel", distribution="ratio").double()
    layer.get_parameter("score.time").data.zero_()
    x = make_batch().x
    q, k, v = (layer.split(layer.get_submodule(f"{name}_proj")(x)) for name in "qkv")
    q, k = q.relu() + 1e-3, k.relu() + 1e-3
    want = q @ (k.mT @ v) / (q @ k.sum(dim=-2)[..., None])
    got = layer(x, make_batch().context(masked=False))
    torch.testing.assert_close(got, layer.get_submodule("out_proj")(layer.merge(want)))


@pytest.mark.parametrize("time", ["none", "learnt", "sinusoidal", "rotary"])
def test_position_codes_have_their_declared_invariances(time: str) -> None:
    """none: not even the order. learnt: the order. sinusoidal and rotary: the seconds."""
    layer, batch = build_attention("composed", DIM, HEADS, time=time).double(), make_batch(length=9)
    shuffled = torch.tensor([3, 1, 0, 2, 4, 8, 7, 5, 6])
    want = layer(batch.x, batch.context(masked=False))
    mixed = Batch(batch.x[:, shuffled], batch.times, batch.valid)
    slower = Batch(batch.x, batch.times * 2, batch.valid)

    def knows(other: Batch, expected: Tensor) -> bool:
        return not torch.allclose(layer(other.x, other.context(masked=False)), expected, atol=1e-9)

    assert knows(mixed, want[:, shuffled]) == (time != "none")
    assert knows(slower, want) == (time in ("sinusoidal", "rotary"))


@pytest.mark.parametrize("name", ["sparsemax", "entmax15", "entmax"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keys", [3, 243, 4096])
def test_entmax_threshold_is_the_root_for_any_number_of_keys(name: str, dtype: torch.dtype, keys: int) -> None:
    """Scores of every spread: what they leave is one, to rounding errors."""
    generator = torch.Generator().manual_seed(0)
    spread = torch.logspace(-3, 3, 60, dtype=dtype)[:, None]
    scores = torch.randn(1, 1, 60, keys, generator=generator, dtype=dtype) * spread
    layer = DISTRIBUTIONS[name](1).to(dtype)
    same = torch.zeros(1, 1, keys, 4, dtype=dtype)
    times = torch.arange(keys, dtype=torch.float64)[None]
    alike = Compared(same[:, :, :1], same, times[:, :1], times)
    total = layer(scores, torch.ones(1, 1, 1, keys, dtype=torch.bool), alike).sum(dim=-1)
    assert (total - 1).abs().max() < (3e-5 if dtype == torch.float32 else 1e-9)
