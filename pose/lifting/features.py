"""Input features of the lifter from pixels, and decoding of its outputs to metres, for training and inference.

Joints are centred on the pelvis and divided by the spread of the body, the root-mean-square distance of the joints
from the centre. They are therefore independent of the person's distance. Centre and spread are extra inputs, which the
network needs for perspective. All coordinates are camera-normalised, so focal length and image size cancel out.

Axes: B batch, T time, J joint (17), F feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.format import JOINTS, MIN_SPREAD, PELVIS, TYPICAL_STEP

# A typical body: root-mean-square distance of the joints from the pelvis (m), and one sigma (mm).
# The pelvis is the origin: its sigma is set to 1 mm, because losses divide by it.
_TYPICAL_SPREAD = 0.5
TYPICAL_SIGMA = 40.0
_PELVIS_SIGMA = 1.0
_GATE_GAIN = 4.0  # gain of the gate's logit: lets the network close a gate without large outputs


@dataclass(frozen=True, slots=True)
class LifterInput:
    """A batch of 2D sequences as network inputs."""

    features: Tensor  # (B, T, F) network input, F features per frame
    # (B, T, J, 2) joints relative to `centres`, in units of `spreads`; zero for joints that are not detected.
    offsets: Tensor
    rays: Tensor  # (B, T, J, 2) camera-normalised joints; zero for joints that are not detected
    # (B, T, 2) centre of the body, camera-normalised: the pelvis, or the mean of the detected joints if the pelvis is
    # not detected. A frame without detected joints repeats the last known centre.
    centres: Tensor
    # (B, T) root-mean-square distance of the joints from the centre, camera-normalised; repeated like `centres`.
    spreads: Tensor
    seen: Tensor  # (B, T) whether any joint of the frame is detected

    def frames(self, index: Tensor | slice) -> "LifterInput":
        """Return the observations of the frames selected by `index` on the time axis."""
        return LifterInput(*(getattr(self, name)[:, index] for name in self.__slots__))

    def sequences(self, index: Tensor | slice) -> "LifterInput":
        """Return the observations of the sequences selected by `index` on the batch axis."""
        return LifterInput(*(getattr(self, name)[index] for name in self.__slots__))

    @classmethod
    def concatenate(cls, parts: Sequence["LifterInput"]) -> "LifterInput":
        """Concatenate batches of observations along the batch axis."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.__slots__))


def observe(
    keypoints: Tensor,
    scores: Tensor,
    times: Tensor,
    intrinsics: Tensor,
    derived: Tensor,
    intrinsics_known: Tensor,
) -> LifterInput:
    """Compute the network inputs of 2D sequences: keypoints (B, T, J, 2) px, scores (B, T, J), times (B, T) s.

    Coordinates of joints of score 0 are ignored and may be NaN. `derived` (B,) tells whether trunk and head joints were
    computed from joints of a detector, `intrinsics_known` (B,) whether the intrinsics (B, 3, 3) px are not assumed.
    """
    mask = scores > 0
    rays = _camera_rays(keypoints, mask, intrinsics[:, None, None])
    centres, spreads, seen = _frame_of_reference(rays, mask)
    last = last_seen(seen)
    centres = centres.gather(1, last[..., None].expand_as(centres))
    steps = torch.diff(times, dim=1, prepend=times[:, :1] - TYPICAL_STEP)
    flags = torch.stack([derived, intrinsics_known], dim=-1).float()[:, None].expand(*seen.shape, 2)
    return _describe(rays, scores, mask, centres, spreads.gather(1, last), seen, flags, steps)


def observe_next(
    keypoints: Tensor,
    scores: Tensor,
    step: Tensor,
    previous: Tensor,
    intrinsics: Tensor,
    derived: Tensor,
    intrinsics_known: Tensor,
) -> Tensor:
    """Compute the features (B, F) of one more frame, `step` s after `previous`, equal to those of `observe`."""
    mask = scores > 0
    rays = _camera_rays(keypoints, mask, intrinsics[:, None])
    centre, spread, seen = _frame_of_reference(rays, mask)
    last = split_features(previous)
    centre = torch.where(seen[:, None], centre, last.centres)
    spread = torch.where(seen, spread, last.spreads)
    flags = torch.stack([derived, intrinsics_known], dim=-1).float()
    return _describe(rays, scores, mask, centre, spread, seen, flags, step).features


def split_features(features: Tensor) -> LifterInput:
    """Reconstruct the observations from features (..., F), the inverse of `observe`."""
    offsets, _, mask, centres, log_spread, seen, _, _ = features.split([2 * JOINTS, JOINTS, JOINTS, 2, 1, 1, 2, 1], -1)
    offsets = offsets.unflatten(-1, (JOINTS, 2))
    spread = log_spread.exp()
    rays = torch.where(mask[..., None] > 0, offsets * spread[..., None] + centres[..., None, :], 0.0)
    return LifterInput(features, offsets, rays, centres, spread[..., 0], seen[..., 0] > 0)


def _camera_rays(keypoints: Tensor, mask: Tensor, intrinsics: Tensor) -> Tensor:
    """Return camera-normalised joints (..., J, 2) of px, with zeros for joints that are not detected."""
    focal, centre = intrinsics[..., (0, 1), (0, 1)], intrinsics[..., :2, 2]
    return torch.where(mask[..., None], (keypoints - centre) / focal, 0.0).float()


def _frame_of_reference(rays: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return centre (..., 2) and spread (...) of the detected joints, and whether any is detected (...)."""
    count = mask.sum(-1)
    mean = rays.sum(-2) / count.clamp(min=1)[..., None]
    centres = torch.where(mask[..., PELVIS, None], rays[..., PELVIS, :], mean)
    squares = ((rays - centres[..., None, :]) ** 2).sum(-1) * mask
    spreads = (squares.sum(-1) / count.clamp(min=1)).sqrt().clamp(min=MIN_SPREAD)
    return centres, spreads, count > 0


def _describe(
    rays: Tensor,
    scores: Tensor,
    mask: Tensor,
    centres: Tensor,
    spreads: Tensor,
    seen: Tensor,
    flags: Tensor,
    steps: Tensor,
) -> LifterInput:
    offsets = torch.where(mask[..., None], (rays - centres[..., None, :]) / spreads[..., None, None], 0.0)
    parts = [
        offsets.flatten(-2),
        scores.float(),
        mask.float(),
        centres,
        spreads.log()[..., None],
        seen.float()[..., None],
        flags,
        (steps.clamp(min=1e-4) / TYPICAL_STEP).log().float()[..., None],
    ]
    return LifterInput(torch.cat(parts, dim=-1), offsets, rays, centres, spreads, seen)


def last_seen(seen: Tensor) -> Tensor:
    """Return for each frame the index (B, T) of the last frame with a detected joint; 0 before the first."""
    return torch.where(seen, torch.arange(seen.shape[1], device=seen.device), 0).cummax(dim=1).values


@dataclass(frozen=True, slots=True)
class Lifted:
    """3D poses of a batch."""

    joints: Tensor  # (B, T, J, 3) m, relative to the root (the pelvis), camera axes
    root: Tensor  # (B, T, 3) m, position of the pelvis in the camera frame
    sigma: Tensor  # (B, T, J) mm, radius that contains the true joint with a probability of 68 %


def decode(outputs: Tensor, observations: LifterInput, calibration: Tensor | None = None) -> Lifted:
    """Decode network outputs (B, T, OUTPUTS) into poses in the camera frame.

    The network predicts the spread A of the body in metres. For each joint j it predicts the depth dz_j relative to the
    pelvis, a gate g_j from 0 to 1, and a correction e_j of x and y in metres. With the observed centre c, spread s,
    offsets u_j and rays r_j, the depth of the pelvis is Z = A / s. Joint j has the depth Z + dz_j, and its x and y are
    Z c + g_j (A u_j + dz_j r_j) + e_j. With g_j = 1 and e_j = 0 the joint projects exactly onto its observation.
    `calibration` (2, 16) has slope and offset of log sigma (`pose.training.measure`).
    """
    o = observations
    parts = outputs.float().split([1, JOINTS, JOINTS, 2 * JOINTS, JOINTS - 1], dim=-1)
    size, depths, gates, corrections, log_sigma = parts
    spread = size.clamp(-3, 3).exp() * _TYPICAL_SPREAD
    root_depth = spread / o.spreads[..., None]
    depths = depths - depths[..., :1]
    on_rays = spread[..., None] * o.offsets + depths[..., None] * o.rays
    xy = torch.sigmoid(_GATE_GAIN * gates)[..., None] * on_rays + corrections.unflatten(-1, (JOINTS, 2))
    joints = torch.cat([xy - xy[..., :1, :], depths[..., None]], dim=-1)
    root = torch.cat([root_depth * o.centres + xy[..., PELVIS, :], root_depth], dim=-1)
    log_sigma = log_sigma.clamp(-5, 4)
    if calibration is not None:
        log_sigma = calibration[0] * log_sigma + calibration[1]
    sigma = F.pad(log_sigma.exp() * TYPICAL_SIGMA, (1, 0), value=_PELVIS_SIGMA)
    return Lifted(joints, root, sigma)
