"""A stack that is computed again on the way back: it goes back where it came from, and its gradients are those of one
that keeps everything."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pose.lifting.attention import Context
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.training.forms.reversible import ReversibleStack, _forward
from pose.training.objectives.pretraining import check_objective

SMALL = {"dim": 16, "heads": 2, "residual": "reversible"}
REFORMER = {"attention": "reformer", "attention_options": {"chunk": 4}}
ATTENTIONS = {
    "softmax": {},
    "reformer": REFORMER,
    "shared layers": {"shared_layers": True},
    "no norm": {"norm": "none"},
}


def stack_of(depth: int = 4, **changes) -> ReversibleStack:
    torch.manual_seed(0)
    (stack,) = LifterNetwork(LifterConfig(**SMALL, depth=depth, **changes)).blocks
    assert isinstance(stack, ReversibleStack)
    return stack


def batch(length: int = 30) -> tuple[torch.Tensor, Context]:
    generator = torch.Generator().manual_seed(0)
    times = torch.rand(2, length, generator=generator, dtype=torch.float64).cumsum(dim=1) / 15
    return torch.randn(2, length, 16, generator=generator), Context.from_times(times, 8)


@pytest.mark.parametrize("changes", ATTENTIONS.values(), ids=ATTENTIONS)
def test_reversible_blocks_invert_exactly(changes) -> None:
    if changes is REFORMER:
        changes = {"attention": "softmax"}  # whose way back is replayed block by block, below
    stack, (x, context) = stack_of(8, **changes), batch()
    other = torch.randn_like(x)
    with torch.no_grad():
        out = stack.run(x, other, context)
        back = stack.invert(*out, context)
    largest = max(stream.abs().max().item() for stream in out)  # without a norm they grow from block to block
    for got, want in zip(back, (x, other), strict=True):
        assert (got - want).abs().max() < 1e-5 * largest


@pytest.mark.parametrize("changes", ATTENTIONS.values(), ids=ATTENTIONS)
def test_reversible_gradients_equal_a_stored_stack(changes) -> None:
    stack, (x, context) = stack_of(**changes), batch()
    x = x.requires_grad_()
    wanted = [x, *stack.parameters()]

    def gradients(y1: torch.Tensor, y2: torch.Tensor) -> tuple[torch.Tensor, ...]:
        loss = ((y1 + 2 * y2) * torch.linspace(0, 1, 30)[:, None]).square().mean()
        return (loss, *torch.autograd.grad(loss, wanted))

    got = gradients(*stack.run(x, x, context))
    y1 = y2 = x
    for block in stack.blocks:
        y1, y2 = _forward(block, y1, y2, context)
    for one, other in zip(got, gradients(y1, y2), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_inverse_pass_replays_the_hash() -> None:
    """Directions that were drawn again in between would hash otherwise, as rounding might."""
    stack, (x, context) = stack_of(**REFORMER), batch()

    def gradient(meddle: bool) -> torch.Tensor:
        stack.zero_grad()
        y1, y2 = stack.run(x, x, replace(context, _masks={}))
        before = [block.attention.directions.clone() for block in stack.blocks]
        if meddle:
            stack.begin_step(1, torch.Generator().manual_seed(5))
        (y1 * y2).sum().backward()
        for block, directions in zip(stack.blocks, before, strict=True):
            block.attention.directions.copy_(directions)
        return stack.blocks[0].attention.qk_proj.weight.grad.clone()

    torch.testing.assert_close(gradient(meddle=True), gradient(meddle=False))


def test_memory_does_not_grow_with_the_depth() -> None:
    def kept(depth: int) -> int:
        stack, (x, context) = stack_of(depth), batch()
        sizes: list[int] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            stack(x.requires_grad_(), context)
        return sum(sizes)

    assert kept(8) == kept(1)


def test_stream_equals_the_whole_sequence(make_walk) -> None:
    window = {"attention": "local", "attention_options": {"window": 6}, "streaming": True}
    network = LifterNetwork(LifterConfig(**SMALL, depth=3, **window))
    torch.nn.init.normal_(network.head.weight, std=0.1)
    (stack,) = network.blocks
    x, context = batch()
    cache = stack.init_cache(2, device="cpu", dtype=torch.float32)
    with torch.no_grad():
        want = stack(x, context)
        for t in range(30):
            now = Context(context.cos[:, t : t + 1], context.sin[:, t : t + 1])
            y, cache = stack.step(x[:, t : t + 1], now, cache)
            torch.testing.assert_close(y, want[:, t : t + 1], rtol=1e-4, atol=1e-5)


def test_reversible_lifter_round_trips(tmp_path, make_walk) -> None:
    network = LifterNetwork(LifterConfig(**SMALL, depth=3))
    torch.nn.init.normal_(network.head.weight, std=0.1)
    save_checkpoint(network, tmp_path / "a.safetensors")
    sequence = make_walk(20)
    lifters = (TorchLifter(n, "test") for n in (load_checkpoint(tmp_path / "a.safetensors"), network))
    got, want = (lifter.lift(sequence).joints for lifter in lifters)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"norm": "post"}, "residual: reversible .* norm: pre or none"),
        ({"shared_maps": 2}, "residual: reversible .* shared_maps"),
        ({"tokens": "joints"}, "residual: reversible .* tokens: frames"),
        ({"adaptive_depth": True}, "residual: reversible .* adaptive_depth"),
        ({"norm": "none", "init": "t-fixup"}, "init: t-fixup"),
        ({"model": "gru"}, "only for transformers"),
    ],
)
def test_incompatible_options_are_rejected(changes, why) -> None:
    with pytest.raises(ValueError, match=why):
        LifterConfig(**SMALL | changes)


@pytest.mark.parametrize("objective", ["next", "any-order"])
def test_objectives_that_mask_block_by_block_are_refused(objective: str) -> None:
    with pytest.raises(ValueError, match=f"objective {objective}: cannot set masks per block"):
        check_objective(LifterConfig(**SMALL, depth=2), objective)
