"""Study of the gradients at the first step against depth: Post-LN, Pre-LN, T-Fixup and a plain stack.

Sources: Xiong et al., 2020; Huang et al., 2020. A trial uses one batch and makes a single step of Adam.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from pose.lifting.blocks import Block
from pose.lifting.config import LifterConfig
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.config import OptimizerConfig
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.optimizers import build_optimizer

METHODS = {  # name -> norm, init
    "post-ln": ("post", "xavier"),
    "pre-ln": ("pre", "xavier"),
    "t-fixup": ("none", "t-fixup"),
    "plain": ("none", "xavier"),
}
COLUMNS = {
    "last": "gradient of the last feed-forward layer",
    "first": "gradient of the first",
    "update": "outputs moved by one step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchGradientsSettings:
    """Settings for one condition of a `branch-gradients` experiment."""

    method: str  # one of `METHODS`
    depth: int  # number of blocks
    dim: int = 64  # width of the tokens
    heads: int = 4  # number of attention heads
    frames: int = 27  # number of frames of a sequence
    sequences: int = 16  # number of sequences of the batch
    rate: float = 1e-3  # learning rate of the step of Adam

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method: {self.method!r} is not one of {', '.join(METHODS)}")
        LifterConfig(dim=self.dim, depth=self.depth, heads=self.heads)


def run(settings: BranchGradientsSettings, setup: Setup) -> Outcome:
    """Return gradient norms (`last`, `first`) of the second feed-forward matrix in these blocks, and `update`.

    The loss is the mean squared difference of the outputs from standard normal random numbers. It replaces the lifter's
    own loss, whose exponentials would affect the gradients. `update`: root mean square change of the outputs by a step
    of Adam.
    """
    torch.manual_seed(setup.seed)
    norm, init = METHODS[settings.method]
    network = LifterNetwork(
        LifterConfig(dim=settings.dim, depth=settings.depth, heads=settings.heads, expansion=2, norm=norm, init=init)
    )
    batch = TensorBatch.of(setup.motion().training(settings.frames, settings.sequences, setup.seed)(0))
    if init == "t-fixup":
        initialize(network, init, batch.observe().features)
    # A head with Xavier initialisation: the lifter's own starts near zero and would hide the output of the stack.
    torch.nn.init.xavier_uniform_(cast(nn.Linear, network.head).weight)
    optimizer = build_optimizer(network, OptimizerConfig(name="adam", lr=settings.rate, weight_decay=0.0))
    before = _outputs(network, batch)
    (before - torch.randn_like(before)).square().mean().backward()
    gradients = [cast(Block, block).ffn.fc2.weight.grad for block in network.blocks]
    norms = [gradient.norm().item() for gradient in gradients if gradient is not None]
    optimizer.step()
    with torch.no_grad():
        update = (_outputs(network, batch) - before).square().mean().sqrt().item()
    return Outcome({"last": norms[-1], "first": norms[0], "update": update}, steps=1, examples=settings.sequences)


def _outputs(network: LifterNetwork, batch: TensorBatch) -> Tensor:
    """Compute the network outputs (B, T, OUTPUTS) before decoding."""
    kept: list[Tensor] = []
    handle = network.head.register_forward_hook(lambda module, inputs, output: kept.append(output))
    network(batch.observe(), batch.times)
    handle.remove()
    return kept[0]
