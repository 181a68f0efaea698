"""From pixels to what the lifter sees, and from what it says back to metres: used in training and at inference alike.

One frame of one person is described relative to itself: joints are centred on the pelvis and divided by the spread of
the body, so that a person far away and one close by look the same; where the centre was and how large the spread are
extra inputs (together they are what perspective needs). All in camera-normalised coordinates, so the focal length and
the size of the picture do not matter.

Axis legend: B batch, T time, J joint (17), F feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifter.format import JOINTS, MIN_SPREAD, PELVIS, TYPICAL_STEP

# A typical body: root-mean-square distance of the joints from the pelvis (m), and one sigma (mm).
# The pelvis is the origin: its sigma is a token millimetre, so that dividing by it stays possible.
_TYPICAL_SPREAD = 0.5
TYPICAL_SIGMA = 40.0
_PELVIS_SIGMA = 1.0
_TRUST_GAIN = 4.0  # so that the network can close a gate without large outputs


@dataclass(frozen=True, slots=True)
class Observations:
    """One batch of 2D sequences, ready for the network.

    features: (B, T, F) network input. offsets: (B, T, J, 2) joints relative to `centres` in units of `spreads`, zero
    where not seen. rays: (B, T, J, 2) camera-normalised joints, zero where not seen. centres: (B, T, 2) and spreads:
    (B, T) of the body; a frame in which nothing is seen carries those of the last frame that saw something, but none of
    its joints. seen: (B, T) whether any joint of the frame is seen.
    """

    features: Tensor
    offsets: Tensor
    rays: Tensor
    centres: Tensor
    spreads: Tensor
    seen: Tensor

    def frames(self, rows: Tensor | slice) -> "Observations":
        """The observations of some frames: `rows` indexes the time axis."""
        return Observations(*(getattr(self, name)[:, rows] for name in self.__slots__))

    def sequences(self, rows: Tensor | slice) -> "Observations":
        """The observations of some sequences: `rows` indexes the batch axis."""
        return Observations(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def concatenate(cls, parts: Sequence["Observations"]) -> "Observations":
        """One batch of several."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.__slots__))


def observe(
    keypoints: Tensor,
    scores: Tensor,
    times: Tensor,
    intrinsics: Tensor,
    derived: Tensor,
    intrinsics_known: Tensor,
) -> Observations:
    """Describe keypoints (B, T, J, 2) px with scores (B, T, J) at times (B, T) s, seen with intrinsics (B, 3, 3).

    derived, intrinsics_known: (B,) bool, see `pose.sequences.LiftBatch`. A joint of score 0 has no influence on the
    result, whatever its coordinate, NaN included.
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
    before: Tensor,
    intrinsics: Tensor,
    derived: Tensor,
    intrinsics_known: Tensor,
) -> Tensor:
    """The features (B, F) of one frame more: what `observe` gives for it after the frames before.

    keypoints: (B, J, 2) px. scores: (B, J). step: (B,) s since the frame before. before: (B, F), that frame's features,
    or `pose.lifter.format.nothing_observed`. The rest is as in `observe`.
    """
    mask = scores > 0
    rays = _camera_rays(keypoints, mask, intrinsics[:, None])
    centre, spread, seen = _frame_of_reference(rays, mask)
    last = split_features(before)
    centre = torch.where(seen[:, None], centre, last.centres)
    spread = torch.where(seen, spread, last.spreads)
    flags = torch.stack([derived, intrinsics_known], dim=-1).float()
    return _describe(rays, scores, mask, centre, spread, seen, flags, step).features


def split_features(features: Tensor) -> Observations:
    """The observations that features (..., F) describe."""
    offsets, _, mask, centres, log_spread, seen, _, _ = features.split([2 * JOINTS, JOINTS, JOINTS, 2, 1, 1, 2, 1], -1)
    offsets = offsets.unflatten(-1, (JOINTS, 2))
    spread = log_spread.exp()
    rays = torch.where(mask[..., None] > 0, offsets * spread[..., None] + centres[..., None, :], 0.0)
    return Observations(features, offsets, rays, centres, spread[..., 0], seen[..., 0] > 0)


def _camera_rays(keypoints: Tensor, mask: Tensor, intrinsics: Tensor) -> Tensor:
    """Camera-normalised joints, zero where not seen. The last two axes of `intrinsics` are the matrix."""
    focal, centre = intrinsics[..., (0, 1), (0, 1)], intrinsics[..., :2, 2]
    return torch.where(mask[..., None], (keypoints - centre) / focal, 0.0).float()


def _frame_of_reference(rays: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Centre (..., 2) and spread (...) of the seen joints, and whether there are any."""
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
) -> Observations:
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
    return Observations(torch.cat(parts, dim=-1), offsets, rays, centres, spreads, seen)


def last_seen(seen: Tensor) -> Tensor:
    """For each frame of (B, T) the index of the newest frame up to it that sees something (0 if there is none)."""
    return torch.where(seen, torch.arange(seen.shape[1], device=seen.device), 0).cummax(dim=1).values


@dataclass(frozen=True, slots=True)
class Lifted:
    """joints: (B, T, J, 3) m root-relative. root: (B, T, 3) m. sigma: (B, T, J) mm, the radius of 68 %."""

    joints: Tensor
    root: Tensor
    sigma: Tensor


def decode(outputs: Tensor, observations: Observations, calibration: Tensor | None = None) -> Lifted:
    """Turn network outputs (B, T, OUTPUTS) into a pose in the camera frame, along the rays that were observed.

    The network says how large the body's spread is in metres (so how far away it is), how deep each joint lies relative
    to the pelvis, how far to trust where each joint was seen, and a correction across the ray. Fully trusted and not
    corrected the result projects exactly onto the observation: P_j = Z c + A u_j + dz_j ray_j for spread A, root depth
    Z = A / s, offset u_j and centre c. calibration: (2, 16) slope and offset of log sigma (`pose.training.sigma`).
    """
    o = observations
    parts = outputs.float().split([1, JOINTS, JOINTS, 2 * JOINTS, JOINTS - 1], dim=-1)
    size, depths, trust, corrections, log_sigma = parts
    spread = size.clamp(-3, 3).exp() * _TYPICAL_SPREAD
    root_depth = spread / o.spreads[..., None]
    depths = depths - depths[..., :1]
    seen = spread[..., None] * o.offsets + depths[..., None] * o.rays
    across = torch.sigmoid(_TRUST_GAIN * trust)[..., None] * seen + corrections.unflatten(-1, (JOINTS, 2))
    joints = torch.cat([across - across[..., :1, :], depths[..., None]], dim=-1)
    root = torch.cat([root_depth * o.centres + across[..., PELVIS, :], root_depth], dim=-1)
    log_sigma = log_sigma.clamp(-5, 4)
    if calibration is not None:
        log_sigma = calibration[0] * log_sigma + calibration[1]
    sigma = F.pad(log_sigma.exp() * TYPICAL_SIGMA, (1, 0), value=_PELVIS_SIGMA)
    return Lifted(joints, root, sigma)
