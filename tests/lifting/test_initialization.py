"""T-Fixup and DT-Fixup on the real network, against the ratios of the papers and their authors' code."""

import math

import pytest
import torch
from torch import Tensor, nn

from pose.lifting.attention import ATTENTIONS, Context
from pose.lifting.config import INITS, LifterConfig, check_norm_init
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork

DIM, HEADS = 128, 4
SCALED = ("attention.v_proj", "attention.out_proj", "ffn.fc1", "ffn.fc2")
UNSCALED = ("attention.q_proj", "attention.k_proj")


def network(init: str, depth: int = 6, norm: str = "none", **options: object) -> LifterNetwork:
    torch.manual_seed(0)
    return LifterNetwork(LifterConfig(dim=DIM, heads=HEADS, depth=depth, norm=norm, init=init, **options))


def ratio_to_xavier(linear: nn.Linear) -> float:
    """The weight's root mean square over that of Xavier's distribution with gain 1."""
    xavier = math.sqrt(2 / (linear.in_features + linear.out_features))
    return linear.weight.square().mean().sqrt().item() / xavier


def ratios(net: LifterNetwork, names: tuple[str, ...]) -> list[float]:
    return [ratio_to_xavier(block.get_submodule(name)) for block in net.blocks for name in names]


def tokens(net: LifterNetwork, features: Tensor) -> Tensor:
    return net.embed(features)


@pytest.mark.parametrize(("depth", "scale"), [(6, 0.4281), (8, 0.3984), (12, 0.3600)])
def test_t_fixup_scales_as_published(depth: int, scale: float) -> None:
    net = network("t-fixup", depth)
    assert ratios(net, SCALED) == pytest.approx([scale] * 4 * depth, rel=0.03)
    assert ratios(net, UNSCALED) == pytest.approx([1.0] * 2 * depth, rel=0.03)


@pytest.mark.parametrize(("depth", "size"), [(6, 0.3689), (8, 0.3433), (12, 0.3102)])
def test_t_fixup_tokens_have_the_published_size(depth: int, size: float) -> None:
    net = network("t-fixup", depth)
    features = torch.randn(4000, net.embed.in_features)
    assert tokens(net, features).square().mean().sqrt().item() == pytest.approx(size, rel=0.05)
    uneven = features * torch.logspace(-2, 1, net.embed.in_features) + 0.3
    initialize(net, "t-fixup", uneven)
    assert tokens(net, uneven).square().mean().sqrt().item() == pytest.approx(size, rel=1e-4)


def test_centred_t_fixup_scales_what_differs_between_tokens() -> None:
    net = network("t-fixup-centred", 8)
    uneven = torch.randn(4000, net.embed.in_features) + 5
    initialize(net, "t-fixup-centred", uneven)
    assert tokens(net, uneven).std(dim=0).square().mean().sqrt().item() == pytest.approx(0.3433, rel=1e-3)
    assert ratios(net, SCALED) == pytest.approx([0.67 * 8**-0.25] * 4 * 8, rel=0.03)


def test_t_fixup_scales_the_transform_of_fastformer() -> None:
    net = network("t-fixup", depth=2, attention="fastformer")
    names = ("attention.transform", "attention.out_proj", "ffn.fc1", "ffn.fc2")
    assert ratios(net, names) == pytest.approx([0.67 * 2**-0.25] * 2 * len(names), rel=0.03)


def test_dt_fixup_scales_by_the_largest_token() -> None:
    net = network("dt-fixup", depth=5)
    features = 3 * torch.randn(50, 7, net.embed.in_features)
    initialize(net, "dt-fixup", features)
    mu = tokens(net, features).norm(dim=-1).max().item()
    scale = 1 / math.sqrt(5 * (4 * mu**2 + 2 * mu + 2))
    assert ratios(net, SCALED) == pytest.approx([scale] * 20, rel=0.03)
    assert ratios(net, UNSCALED) == pytest.approx([1.0] * 10, rel=0.03)


@pytest.mark.parametrize("init", ["t-fixup", "dt-fixup", "xavier"])
def test_biases_are_zero(init: str) -> None:
    net = network(init)
    assert all(p.eq(0).all() for name, p in net.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize("init", ["t-fixup", "dt-fixup", "xavier"])
def test_a_second_call_starts_from_scratch(init: str) -> None:
    net = network(init)
    before = ratios(net, SCALED + UNSCALED)
    initialize(net, init)
    assert ratios(net, SCALED + UNSCALED) == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("init", INITS)
def test_the_seed_decides(init: str) -> None:
    first, second = network(init), network(init)
    assert all(a.equal(b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_torch_initialisation_keeps_layer_defaults() -> None:
    net = network("torch")
    before = [p.clone() for p in net.parameters()]
    initialize(net, "torch")
    assert all(a.equal(b) for a, b in zip(before, net.parameters(), strict=True))
    assert ratio_to_xavier(net.blocks[0].attention.out_proj) == pytest.approx(0.578, rel=0.03)


@pytest.mark.parametrize("init", ["t-fixup", "dt-fixup"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_fixup_with_layer_norm_is_refused(init: str, norm: str) -> None:
    with pytest.raises(ValueError, match=r"without LayerNorm; a norm .* would undo"):
        check_norm_init(norm, init)
    with pytest.raises(ValueError, match="need a network without LayerNorm"):
        initialize(network("xavier", norm=norm), init)


@pytest.mark.parametrize(
    ("norm", "init"), [("none", "t-fixup"), ("none", "dt-fixup"), ("pre", "xavier"), ("post", "torch")]
)
def test_other_norm_and_init_pairs_are_accepted(norm: str, init: str) -> None:
    check_norm_init(norm, init)
    assert isinstance(network(init, norm=norm), LifterNetwork)


def test_unknown_initialisation_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"init: 'fixup' is not one of t-fixup, t-fixup-centred, dt-fixup, xavi"):
        check_norm_init("none", "fixup")


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_attention_takes_t_fixup(attention: str) -> None:
    streaming = not ATTENTIONS[attention].capabilities.bidirectional
    net = network("t-fixup", depth=2, attention=attention, streaming=streaming)
    scaled = [name for name in SCALED if name in dict(net.blocks[0].named_modules())]
    assert ratios(net, tuple(scaled)) == pytest.approx([0.67 * 2**-0.25] * 2 * len(scaled), rel=0.03)
    assert set(scaled) >= {"ffn.fc1", "ffn.fc2"}


@pytest.mark.parametrize("depth", [4, 12, 24])
def test_t_fixup_keeps_the_size_of_the_tokens_where_xavier_does_not(depth: int) -> None:
    def growth(init: str) -> float:
        net = network(init, depth)
        initialize(net, init)
        x = (9 * depth) ** -0.25 * torch.randn(4, 30, DIM)
        context = Context.from_times(torch.arange(30).expand(4, 30) / 30, net.head_dim)
        y = x
        for block in net.blocks:
            y = block(y, context)
        return (y.std() / x.std()).item()

    assert 0.9 < growth("t-fixup") < 1.1
    assert growth("xavier") > 1.5 * 1.1 ** (depth - 4)


def test_the_layer_norm_before_the_head_can_be_left_out() -> None:
    with_norm, without = network("xavier", norm="pre"), network("xavier", norm="pre", last_norm=False)
    assert isinstance(with_norm.norm, torch.nn.LayerNorm)
    assert isinstance(without.norm, torch.nn.Identity)
    assert {*with_norm.state_dict()} - {*without.state_dict()} == {"norm.weight", "norm.bias"}


@pytest.mark.parametrize(("options", "reason"), [({"norm": "none"}, "only norm: pre"), ({"model": "gru"}, "only for")])
def test_omitting_the_final_norm_needs_pre_norm(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=f"last_norm: {reason}"):
        LifterConfig(last_norm=False, **options)
