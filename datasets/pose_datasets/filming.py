"""People in the world -> what a camera and a detector make of them, with the truth beside it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.sequences import LiftBatch
from pose.types import F32
from pose_datasets import cameras, errors
from pose_datasets.definitions import DefinitionConfig, detectors_points, observed_joints, redefine
from pose_datasets.errors import ErrorConfig

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """Shares of sequences in which each thing happens, and the settings of its parts.

    white: in half of the sequences, exact ones included, joints also have white noise of which scores say nothing: such
    as small people's, whose joints are found to the pixel, or what files from elsewhere hold. Its standard deviation in
    each axis is uniform from 0 to this share of the person's size.
    """

    derived: float = 0.4  # seen through a detector's skeleton; otherwise the joints themselves are seen
    exact: float = 0.2  # without any detector error
    intrinsics_known: float = 0.6
    steep: float = 0.2  # from 15 to 45 degrees above or below, besides what cameras see anyway
    white: float = 0.0
    definitions: DefinitionConfig = field(default_factory=DefinitionConfig)
    errors: ErrorConfig = field(default_factory=ErrorConfig)


def film(rng: np.random.Generator, world: F32, times: F64, valid: Mask, config: FilmConfig) -> LiftBatch:
    """Film points (B, T, 19, 3) m in the world with random cameras, and detect them.

    times: (B, T) s. valid: (B, T), False after a sequence's end. The target is Human3.6M-17 as `pose_datasets.mapping`
    defines it where a sequence is seen through a detector's skeleton, and otherwise the very joints that are seen.
    """
    size = len(world)
    view = cameras.random_cameras(rng, world, times, steep=config.steep)
    points = view.to_camera(world)
    derived = rng.random(size) < config.derived
    targets = points[:, :, :17].copy()
    targets[~derived] = redefine(rng, points[~derived], config.definitions)
    observed = targets.copy()
    observed[derived] = observed_joints(detectors_points(rng, points[derived], config.definitions))
    keypoints = cameras.project_batch(observed, view.intrinsics)
    person_size = errors.person_size(keypoints)
    scores = np.ones(keypoints.shape[:3], np.float32)
    wrong = rng.random(size) >= config.exact
    if wrong.any():
        depth = targets[wrong, :, :, 2] - targets[wrong, :, :1, 2]
        keypoints[wrong], scores[wrong] = errors.add_errors(
            rng, keypoints[wrong], times[wrong], view.image_size[wrong], depth, config.errors
        )
    moved = wrong
    if config.white:
        moved = wrong | _add_white_noise(rng, keypoints, person_size * (scores > 0), config.white)
    found, sure = keypoints[moved & derived], scores[moved & derived]
    errors.rederive(found, sure)
    keypoints[moved & derived], scores[moved & derived] = found, sure
    known = rng.random(size) < config.intrinsics_known
    told = np.where(known[:, None, None], view.intrinsics, cameras.assumed_intrinsics(view.image_size))
    return LiftBatch(
        keypoints=keypoints,
        scores=scores * valid[..., None],
        derived=derived,
        times=times,
        valid=valid,
        intrinsics=told,
        intrinsics_known=known,
        image_size=view.image_size,
        joints=targets - targets[:, :, :1],
        root=reproject_root(targets[:, :, 0], view.intrinsics, told),
    )


def _add_white_noise(rng: np.random.Generator, keypoints: F32, size: F32, most: float) -> Mask:
    """Move joints (B, T, 17, 2) px by shares of a size (B, T, 17) px, in place. Returns in which sequences."""
    level = np.float32(most) * rng.uniform(-1, 1, (len(keypoints), 1, 1, 1)).clip(0).astype(np.float32)
    noise = level * rng.standard_normal(keypoints.shape, dtype=np.float32)
    keypoints += noise * size[..., None]
    return (level > 0).ravel()


def reproject_root(root: F32, true: F64, told: F64) -> F32:
    """Root (B, T, 3) m that projects through `told` (B, 3, 3) to the pixels it has through `true`.

    Its depth is scaled by told / true focal length, so that the person keeps the size in the picture.
    """
    depth = root[..., 2:] * (told[:, 0, 0] / true[:, 0, 0]).astype(np.float32)[:, None, None]
    pixels = cameras.project_batch(root[:, :, None], true)[:, :, 0]
    centre = told[:, None, :2, 2].astype(np.float32)
    focal = told[:, None, 0, :1].astype(np.float32)
    return np.concatenate([(pixels - centre) / focal * depth, depth], axis=-1)
