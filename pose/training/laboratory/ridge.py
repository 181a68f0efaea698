"""Ridge regression from a frame and its neighbours to the joints: a baseline for lifters.

The weights have a closed form over n valid frames: W = (X^T X + penalty n I)^-1 X^T Y. X includes a constant column,
which is not regularised.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from pose.lifting.config import LifterConfig
from pose.lifting.features import Lifted, LifterInput
from pose.lifting.format import FEATURES, JOINTS
from pose.training.batches import TensorBatch


class RidgeLifter(nn.Module):
    """A ridge regression with the interface of a lifter, on `before` and `after` frames around each frame."""

    # The depth of the root follows from the spread of the joints in the image and the median body size in the training
    # data. Sigma is the root mean square of the residuals, mm.

    def __init__(self, before: int, after: int, *, penalty: float = 1e-3) -> None:
        super().__init__()
        self.before, self.after, self.penalty = before, after, penalty
        self.config = LifterConfig(streaming=True) if not after else LifterConfig()  # attributes that `measure` reads
        self.width = FEATURES * (before + 1 + after) + 1
        self.weight: Tensor
        self.register_buffer("weight", torch.zeros(self.width, 3 * JOINTS))
        self.size, self.sigma = 0.5, torch.ones(JOINTS)

    def inputs(self, features_BTF: Tensor) -> Tensor:
        """Return the inputs (B, T, width) of the regression: features of the neighbouring frames and a constant."""
        count = features_BTF.shape[1]
        indices = torch.arange(count)[:, None] + torch.arange(-self.before, self.after + 1)
        near = features_BTF[:, indices.clamp(0, count - 1)].flatten(2)
        return torch.cat([near, torch.ones_like(near[..., :1])], dim=-1)

    @torch.no_grad()
    def fit(self, batches: Iterable[TensorBatch]) -> "RidgeLifter":
        """Fit the weights to all batches together, and return self. The lengths of the sequences may differ."""
        squares = torch.zeros(self.width, self.width, dtype=torch.float64)
        products = torch.zeros(self.width, 3 * JOINTS, dtype=torch.float64)
        energy, sizes, count = torch.zeros(3 * JOINTS, dtype=torch.float64), [], 0
        for batch in batches:
            observations = batch.observe()
            x = self.inputs(observations.features)[batch.valid].double()
            y = batch.joints[batch.valid].flatten(1).double()
            squares += x.T @ x
            products += x.T @ y
            energy += y.square().sum(dim=0)
            sizes.append((batch.root[..., 2] * observations.spreads)[batch.valid & observations.seen])
            count += len(x)
        penalties = torch.full((self.width,), self.penalty * count, dtype=torch.float64)
        penalties[-1] = 0  # the constant is not regularised
        weight = torch.linalg.solve(squares + penalties.diag(), products)
        residual = energy - 2 * (weight * products).sum(dim=0) + (weight * (squares @ weight)).sum(dim=0)
        self.weight = weight.float()
        self.size = float(torch.cat(sizes).median())
        self.sigma = 1000 * (residual / count).clamp_min(1e-6).unflatten(0, (JOINTS, 3)).sum(dim=-1).sqrt().float()
        return self

    def forward(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> Lifted:
        joints = (self.inputs(observations.features) @ self.weight).unflatten(-1, (JOINTS, 3))
        joints = joints - joints[..., :1, :]
        depth = self.size / observations.spreads[..., None]
        root = torch.cat([depth * observations.centres, depth], dim=-1)
        return Lifted(joints, root, self.sigma.expand(*joints.shape[:-1]))
