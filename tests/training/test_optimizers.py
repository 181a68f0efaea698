"""Optimisers: what they decay, how far they go in the first steps, and which recipes are refused."""

import pytest
import torch
from torch import nn

from pose.training.config import OPTIMIZERS, OptimizerConfig, check_recipe
from pose.training.optimizers import build_optimizer
from pose.training.schedules import WARMUPS, ScheduleConfig

WARM = [ScheduleConfig(warmup=name) for name in WARMUPS if name != "none"] + [ScheduleConfig(decay="noam")]

ADAMS = tuple(name for name in OPTIMIZERS if name != "muon")


@pytest.mark.parametrize("name", OPTIMIZERS)  # muon without a matrix in blocks is AdamW
def test_a_small_problem_is_solved(name: str) -> None:
    torch.manual_seed(0)
    net, x = nn.Linear(4, 1), torch.randn(200, 4)
    target = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]]) + 0.3
    optimizer = build_optimizer(net, OptimizerConfig(name=name, lr=0.02, weight_decay=0))
    for _ in range(600):
        optimizer.zero_grad()
        loss = (net(x) - target).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3


@pytest.mark.parametrize("name", ADAMS)
def test_only_matrices_decay(name: str) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    before = {key: p.detach().clone() for key, p in net.named_parameters()}
    optimizer = build_optimizer(net, OptimizerConfig(name=name, lr=0.1, weight_decay=0.5))
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    changed = {key for key, p in net.named_parameters() if not p.equal(before[key])}
    assert changed == {"0.weight"}


@pytest.mark.parametrize("name", ["adamw", "radam"])
def test_decay_is_decoupled_from_the_gradient(name: str) -> None:
    net = nn.Linear(3, 3, bias=False)
    before = net.weight.detach().clone()
    optimizer = build_optimizer(net, OptimizerConfig(name=name, lr=0.1, weight_decay=0.5))
    net.weight.grad = torch.zeros_like(net.weight)
    optimizer.step()
    torch.testing.assert_close(net.weight, before * (1 - 0.1 * 0.5))


class Stack(nn.Module):
    """What `muon` looks at: matrices inside and outside of `blocks`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.LayerNorm(8)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in (self.embed, *self.blocks):
            x = part(x)
        return x


def test_muon_makes_the_updates_of_the_blocks_orthogonal_and_leaves_the_rest_to_adamw() -> None:
    torch.manual_seed(0)
    net, x = Stack(), torch.randn(64, 3)
    before = {key: p.detach().clone() for key, p in net.named_parameters()}
    optimizer = build_optimizer(net, OptimizerConfig(name="muon", lr=0.1, weight_decay=0))
    net(x)[:, :5].square().mean().backward()
    optimizer.step()
    step = {key: (p.detach() - before[key]) / 0.1 for key, p in net.named_parameters()}
    # The gradient has rank 4 (three inputs and a bias); Newton-Schulz brings its singular values near one.
    singular = torch.linalg.svdvals(step["blocks.0.weight"]) / (0.2 * 8**0.5)
    assert singular[:3].min() > 0.5
    assert singular[0] < 1.3
    torch.testing.assert_close(step["embed.weight"].abs(), torch.ones(8, 3), rtol=1e-3, atol=1e-3)  # Adam's first step


def test_a_schedule_reaches_both_halves_of_muon_also_after_loading() -> None:
    net = Stack()
    optimizer = build_optimizer(net, OptimizerConfig(name="muon", lr=0.1))
    optimizer.load_state_dict(optimizer.state_dict())
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = {key: p.detach().clone() for key, p in net.named_parameters()}
    net(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    assert all(p.equal(before[key]) for key, p in net.named_parameters())


@pytest.mark.parametrize("schedule", WARM, ids=str)
def test_radam_with_a_warm_up_is_refused(schedule: ScheduleConfig) -> None:
    with pytest.raises(ValueError, match="radam already reduces the learning rate"):
        check_recipe(OptimizerConfig(name="radam"), schedule, "xavier")


@pytest.mark.parametrize("schedule", WARM, ids=str)
@pytest.mark.parametrize("init", ["t-fixup", "dt-fixup"])
def test_fixup_with_a_warm_up_is_refused(schedule: ScheduleConfig, init: str) -> None:
    with pytest.raises(ValueError, match=f"init: {init} bounds the first updates"):
        check_recipe(OptimizerConfig(), schedule, init)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"name": "sgd"}, "optimizer.name: 'sgd' is not one of adam, adamw, radam"),
        ({"lr": 0.0}, "lr and eps must be above 0"),
        ({"eps": 0.0}, "lr and eps must be above 0"),
        ({"weight_decay": -1.0}, "weight_decay at least 0"),
        ({"betas": (0.9, 1.0)}, "betas"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        OptimizerConfig(**options)
