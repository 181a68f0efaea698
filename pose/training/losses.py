"""Loss of lifters, a weighted sum of these terms. Distances are metres; frames without ground truth have weight 0.

- position: mean joint error (MPJPE).
- velocity: error of the motion between frames, scaled to 30 frames/s, so that the cost of jitter is independent of the
  frame rate (Pavllo et al., 2019, for trajectories; Zhang et al., MixSTE, 2022, for joints).
- shape: joint error after scaling the prediction optimally, so that proportions are learned even if size is unknown.
- root: error of the pelvis's position divided by its true depth.
- bend: error of knee and elbow flexion, as 2 sin(angle / 2). Where depth is uncertain, the position loss is smallest
  for a bent limb, even if the true limb is straight; this term prevents that.
- spread: negative log likelihood of the error's norm under a half-normal distribution of scale sigma, 68 % of which is
  inside one sigma. It trains sigma only; joints get no gradient from it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.features import Lifted
from pose.structures.skeletons import H36M17
from pose.training.config import LossWeights
from pose.training.evaluation.metrics import MM_PER_M

_LIMBS = [
    [H36M17.names.index(f"{side}_{joint}") for joint in joints for side in ("right", "left")]
    for joints in (("hip", "shoulder"), ("knee", "elbow"), ("ankle", "wrist"))
]


def lifting_loss(
    lifted: Lifted,
    joints: Tensor,
    root: Tensor,
    times: Tensor,
    valid: Tensor,
    weights: LossWeights,
    *,
    sigma: bool = True,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the weighted sum of the loss terms, and the unweighted terms by name; `valid` may be weights (B, T)."""
    error = (lifted.joints - joints).norm(dim=-1)
    frames = valid.to(error.dtype)
    pairs = torch.minimum(frames[:, 1:], frames[:, :-1])
    step = torch.diff(times, dim=1).clamp(min=1e-3).float() * 30
    drift = torch.diff(lifted.joints - joints, dim=1).norm(dim=-1) / step[..., None].clamp(min=0.25)
    scale = (lifted.joints * joints).sum((-2, -1)) / (lifted.joints**2).sum((-2, -1)).clamp(min=1e-6)
    shape_error = (lifted.joints * scale[..., None, None] - joints).norm(dim=-1)
    root_error = (lifted.root - root).norm(dim=-1) / root[..., 2].clamp(min=0.3)
    parts = {
        "position": _mean(error.mean(-1), frames),
        "velocity": _mean(drift.mean(-1), pairs),
        "shape": _mean(shape_error.mean(-1), frames),
        "root": _mean(root_error.clamp(max=1.0), frames),
        "bend": _mean((bends(lifted.joints) - bends(joints)).abs().mean(-1), frames),
    }
    if sigma:
        parts["spread"] = _mean(_likelihood(lifted.sigma[..., 1:], error[..., 1:].detach()).mean(-1), frames)
    return torch.stack([getattr(weights, name) * value for name, value in parts.items()]).sum(), parts


def _likelihood(sigma: Tensor, error: Tensor) -> Tensor:
    """Return the negative log likelihood, up to a constant, of errors in m for `sigma` in mm."""
    return sigma.log() + (MM_PER_M * error) ** 2 / (2 * sigma**2)


@torch.no_grad()
def sequence_losses(
    lifted: Lifted, joints: Tensor, root: Tensor, times: Tensor, valid: Tensor, weights: LossWeights
) -> Tensor:
    """Return the loss (B,) of each sequence without gradients, for the arguments of `lifting_loss`."""

    def one(*parts: Tensor) -> Tensor:
        predicted, truth = [part[None] for part in parts[:3]], [part[None] for part in parts[3:]]
        return lifting_loss(Lifted(*predicted), truth[0], truth[1], truth[2], truth[3], weights)[0]

    losses: Tensor = torch.vmap(one)(lifted.joints, lifted.root, lifted.sigma, joints, root, times, valid)
    return losses


def bends(joints: Tensor) -> Tensor:
    """Return the flexion (..., 4) of knees and elbows, right first, as 2 sin(angle / 2): 0 for a straight limb."""
    near, middle, far = (joints[..., which, :] for which in _LIMBS)
    upper, lower = F.normalize(middle - near, dim=-1), F.normalize(far - middle, dim=-1)
    return ((lower - upper) ** 2).sum(-1).clamp(min=1e-6).sqrt()


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return torch.where(weights > 0, weights * values, 0.0).sum() / weights.sum().clamp(min=1)
