"""What training minimises. Distances are metres; frames without ground truth have weight zero.

- position: mean joint error (MPJPE), the usual figure.
- velocity: error of the motion from frame to frame, at the scale of 30 frames a second, so that jitter costs the same
  at any frame rate (Pavllo et al., 2019, use the same idea for trajectories; Zhang et al., MixSTE, 2022, for joints).
- shape: joint error after the best scale, so that proportions are learnt even where size cannot be known.
- root: relative error of the pelvis's place in space: a metre matters less far away.
- bend: error of how far knees and elbows are bent, as 2 sin(angle / 2). Two bones that are each a little wrong never
  form a line, so where depth is uncertain the joints that position likes best bend a straight limb; this does not.
- spread: negative log likelihood of the error's length under a half-normal distribution of scale sigma, of which 68 %
  lies inside one sigma. It trains sigma only; the joints learn nothing from being declared uncertain.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.evaluation.metrics import MM_PER_M
from pose.lifter.features import Lifted
from pose.skeletons import H36M17
from pose.training.config import LossWeights

_LIMBS = [
    [H36M17.names.index(f"{side}_{joint}") for joint in joints for side in ("right", "left")]
    for joints in (("hip", "shoulder"), ("knee", "elbow"), ("ankle", "wrist"))
]


def lifting_loss(
    lifted: Lifted, joints: Tensor, root: Tensor, times: Tensor, valid: Tensor, weights: LossWeights
) -> tuple[Tensor, dict[str, Tensor]]:
    """The weighted sum, and its parts by name.

    joints: (B, T, J, 3) and root: (B, T, 3) m are the truth, times: (B, T) s, valid: (B, T) bool.
    """
    error = (lifted.joints - joints).norm(dim=-1)
    pairs = valid[:, 1:] & valid[:, :-1]
    step = torch.diff(times, dim=1).clamp(min=1e-3).float() * 30
    drift = torch.diff(lifted.joints - joints, dim=1).norm(dim=-1) / step[..., None].clamp(min=0.25)
    scale = (lifted.joints * joints).sum((-2, -1)) / (lifted.joints**2).sum((-2, -1)).clamp(min=1e-6)
    shape_error = (lifted.joints * scale[..., None, None] - joints).norm(dim=-1)
    root_error = (lifted.root - root).norm(dim=-1) / root[..., 2].clamp(min=0.3)
    sigma, length = lifted.sigma[..., 1:], MM_PER_M * error[..., 1:].detach()  # the pelvis is the origin
    likelihood = sigma.log() + length**2 / (2 * sigma**2)
    parts = {
        "position": _mean(error.mean(-1), valid),
        "velocity": _mean(drift.mean(-1), pairs),
        "shape": _mean(shape_error.mean(-1), valid),
        "root": _mean(root_error.clamp(max=1.0), valid),
        "bend": _mean((bends(lifted.joints) - bends(joints)).abs().mean(-1), valid),
        "spread": _mean(likelihood.mean(-1), valid),
    }
    return torch.stack([getattr(weights, name) * value for name, value in parts.items()]).sum(), parts


@torch.no_grad()
def sequence_losses(
    lifted: Lifted, joints: Tensor, root: Tensor, times: Tensor, valid: Tensor, weights: LossWeights
) -> Tensor:
    """`lifting_loss` of each sequence alone, (B,)."""

    def one(*parts: Tensor) -> Tensor:
        said, truth = [part[None] for part in parts[:3]], [part[None] for part in parts[3:]]
        return lifting_loss(Lifted(*said), truth[0], truth[1], truth[2], truth[3], weights)[0]

    losses: Tensor = torch.vmap(one)(lifted.joints, lifted.root, lifted.sigma, joints, root, times, valid)
    return losses


def bends(joints: Tensor) -> Tensor:
    """How far both knees and elbows of joints (..., 17, 3) are bent: (..., 4), 2 sin(angle / 2), 0 where straight."""
    near, middle, far = (joints[..., which, :] for which in _LIMBS)
    upper, lower = F.normalize(middle - near, dim=-1), F.normalize(far - middle, dim=-1)
    return ((lower - upper) ** 2).sum(-1).clamp(min=1e-6).sqrt()


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)
