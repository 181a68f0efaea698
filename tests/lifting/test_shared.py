"""Blocks that share the attention map of the first of them, and blocks that share all their weights."""

import numpy as np
import pytest
import torch

from pose.lifting.attention import Context, build_attentions, share_maps
from pose.lifting.blocks import Block
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.features import observe
from pose.lifting.model import LifterNetwork
from pose.lifting.predict import network_inputs
from pose.lifting.torch_lifter import TorchLifter
from pose.training.laboratory.attention_maps import attention_maps

SMALL = {"dim": 16, "depth": 4, "heads": 2}


def group(causal: bool = False, name: str = "softmax", **options):
    torch.manual_seed(0)
    return [layer.double() for layer in share_maps(build_attentions(name, 2, 16, 2, options, causal=causal), 2)]


def frames(count: int = 12) -> tuple[torch.Tensor, Context]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, count, 16, generator=generator, dtype=torch.float64)
    times = torch.rand(2, count, generator=generator, dtype=torch.float64).cumsum(dim=1) / 15
    return x, Context.from_times(times, 8, dtype=torch.float64)


def test_group_of_one_layer_is_unchanged() -> None:
    layers = build_attentions("softmax", 3, 16, 2, {})
    assert share_maps(layers, 1) == layers


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_shared_layers_use_the_map_of_the_first(causal: bool) -> None:
    leader, follower = group(causal)
    x, context = frames()
    y = leader(x, context)
    torch.testing.assert_close(y, leader.inner(x, context), rtol=0, atol=1e-12)
    other = torch.randn_like(x)
    assert follower.weights(other, context) is context.stored(leader)  # the very tensor
    values = follower.split(follower.v_proj(other))
    want = follower.out_proj(follower.merge(leader.weights(x, context) @ values))
    torch.testing.assert_close(follower(other, context), want, rtol=0, atol=1e-12)
    assert not {"q_proj", "k_proj"} & {name.partition(".")[0] for name, _ in follower.named_parameters()}


def test_following_layers_train_the_shared_map() -> None:
    leader, follower = group()
    x, context = frames()
    leader(x, context)
    follower(torch.randn_like(x), context).square().sum().backward()
    assert leader.inner.q_proj.weight.grad.abs().max() > 0
    assert leader.inner.v_proj.weight.grad is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("softmax", {"memory": 5}),
        ("local", {"window": 3, "global_tokens": 2}),
        ("sparse", {"stride": 3}),
        ("blocks", {"block": 3}),
    ],
)
def test_shared_group_stream_equals_the_whole_sequence(name: str, options: dict[str, int]) -> None:
    layers = group(True, name, **options)
    x, context = frames(20)
    want = x
    for layer in layers:
        want = want + layer(want, context)
    caches = [layer.init_cache(2, device="cpu", dtype=torch.float64) for layer in layers]
    for t in range(20):
        y, now = x[:, t : t + 1], Context(context.cos[:, t : t + 1], context.sin[:, t : t + 1])
        for number, layer in enumerate(layers):
            answer, caches[number] = layer.step(y, now, caches[number])
            y = y + answer
        torch.testing.assert_close(y, want[:, t : t + 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"shared_maps": 0}, "must be 1 to depth, 4 blocks, got 0"),
        ({"shared_maps": 5}, "must be 1 to depth"),
        ({"shared_maps": 2, "shared_layers": True}, "use one of the two"),
        ({"shared_maps": 2, "attention": "performer"}, "PerformerAttention has no attention map"),
        (
            {
                "shared_maps": 2,
                "attention": "local",
                "attention_options": {"global_tokens": 1, "global_projections": "own"},
            },
            "LocalAttention has no attention map",
        ),
        ({"shared_maps": 2, "attention": "transformer-xl", "streaming": True}, "cannot share maps when streaming"),
        ({"shared_layers": True, "model": "gru", "heads": 6}, "only for transformers; remove it for model gru"),
    ],
)
def test_unshareable_mechanisms_are_rejected(changes, why) -> None:
    with pytest.raises(ValueError, match=why):
        LifterNetwork(LifterConfig(**SMALL | changes))


@pytest.mark.parametrize("streaming", [False, True], ids=["offline", "stream"])
@pytest.mark.parametrize("shared", [{"shared_maps": 2}, {"shared_layers": True}], ids=["maps", "layers"])
def test_shared_lifters_round_trip(shared, streaming, tmp_path, make_walk) -> None:
    network = LifterNetwork(LifterConfig(**SMALL, **shared, streaming=streaming))
    torch.nn.init.normal_(network.head.weight, std=0.1)
    save_checkpoint(network, tmp_path / "a.safetensors")
    back = load_checkpoint(tmp_path / "a.safetensors")
    assert len(list(back.parameters())) == len(list(network.parameters()))
    sequence = make_walk(20)
    got, want = (TorchLifter(n, "test").lift(sequence).joints for n in (back, network))
    np.testing.assert_array_equal(got, want)


def test_shared_layers_are_one_block() -> None:
    network = LifterNetwork(LifterConfig(**SMALL, shared_layers=True))
    plain = LifterNetwork(LifterConfig(**SMALL))
    assert len(network.blocks) == 4
    assert len({id(block) for block in network.blocks}) == 1
    own, all_of_them = (sum(p.numel() for p in n.blocks.parameters()) for n in (network, plain))
    assert 4 * own == all_of_them


@pytest.mark.parametrize("shared", [{"shared_maps": 2}, {"shared_layers": True}], ids=["maps", "layers"])
def test_t_fixup_scales_shared_weights_once(shared) -> None:
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(dim=192, depth=4, heads=2, norm="none", init="t-fixup", **shared))
    block = network.blocks[0]
    assert isinstance(block, Block)
    mixer = block.attention
    linear = mixer.get_submodule("inner.out_proj" if "shared_maps" in shared else "out_proj")
    usual = (2 / (192 + 192)) ** 0.5
    assert linear.weight.std().item() / usual == pytest.approx(0.67 * 4**-0.25, rel=0.05)


@pytest.mark.parametrize("form", [{"shared_layers": True}, {"shared_maps": 2}, {"residual": "reversible"}, {}], ids=str)
def test_every_shared_block_reports_its_map(form, make_walk) -> None:
    network = LifterNetwork(LifterConfig(**SMALL, **form)).eval()
    observations, times = observed(make_walk(10))
    maps = attention_maps(network, observations, times)
    assert maps.shape == (4, 1, 2, 10, 10)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(4, 1, 2, 10))
    assert torch.equal(maps[0], maps[1]) == ("shared_maps" in form)


def observed(sequence):
    keypoints, scores, times, *camera = (torch.from_numpy(array) for array in network_inputs([sequence]).values())
    return observe(keypoints, scores, times, *camera), times
