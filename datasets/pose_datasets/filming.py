"""Simulation of cameras and detectors that observe people in the world frame, with ground truth."""

from dataclasses import dataclass, field

import numpy as np

from pose.structures.sequences import LiftBatch
from pose.structures.types import F32, F64, Flags
from pose_datasets import cameras, errors
from pose_datasets.definitions import DefinitionConfig, detector_points, observed_joints, redefine
from pose_datasets.errors import ErrorConfig


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """Settings of simulated cameras and detectors. Fractions are of all sequences.

    Attributes:
        derived: Fraction whose 2D joints are converted from a detector's skeleton. In the others, the detector observes
            the target joints themselves.
        exact: Fraction without detector errors.
        intrinsics_known: Fraction with known intrinsics. The others have default intrinsics
            (`cameras.assumed_intrinsics`).
        steep: Fraction filmed from 15 to 45 degrees above or below.
        white: Maximum standard deviation per axis of white noise that scores do not reflect, relative to the person's
            size. Half of the sequences, including exact ones, get noise with a random level up to this. This models
            small people, whose joints are detected to the nearest pixel, and files from other programs.
        chest_height: Whether all cameras stand at chest height (`cameras.chest_height_cameras`), for evaluation.
        definitions: Variation of joint definitions.
        errors: Magnitudes of detector errors.
    """

    derived: float = 0.4
    exact: float = 0.2
    intrinsics_known: float = 0.6
    steep: float = 0.2
    white: float = 0.0
    chest_height: bool = False
    definitions: DefinitionConfig = field(default_factory=DefinitionConfig)
    errors: ErrorConfig = field(default_factory=ErrorConfig)


def film(rng: np.random.Generator, world: F32, times: F64, valid: Flags, config: FilmConfig) -> LiftBatch:
    """Project people with random cameras, simulate a 2D detector, and return the 2D joints and 3D targets."""
    # Targets are joints with random definitions (`definitions.redefine`), which are also the observed joints. In a
    # fraction `config.derived` of the sequences, the detector has its own skeleton; the targets are then the joints of
    # `pose_datasets.mapping`.
    size = len(world)
    if config.chest_height:
        view = cameras.chest_height_cameras(rng, world)
    else:
        view = cameras.random_cameras(rng, world, times, steep=config.steep)
    points = view.to_camera(world)
    derived = rng.random(size) < config.derived
    targets = points[:, :, :17].copy()
    targets[~derived] = redefine(rng, points[~derived], config.definitions)
    observed = targets.copy()
    observed[derived] = observed_joints(detector_points(rng, points[derived], config.definitions))
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
    derived_keypoints, derived_scores = keypoints[moved & derived], scores[moved & derived]
    errors.rederive(derived_keypoints, derived_scores)
    keypoints[moved & derived], scores[moved & derived] = derived_keypoints, derived_scores
    known = rng.random(size) < config.intrinsics_known
    given = np.where(known[:, None, None], view.intrinsics, cameras.assumed_intrinsics(view.image_size))
    return LiftBatch(
        keypoints=keypoints,
        scores=scores * valid[..., None],
        derived=derived,
        times=times,
        valid=valid,
        intrinsics=given,
        intrinsics_known=known,
        image_size=view.image_size,
        joints=targets - targets[:, :, :1],
        root=reproject_root(targets[:, :, 0], view.intrinsics, given),
    )


def _add_white_noise(rng: np.random.Generator, keypoints: F32, size: F32, max_level: float) -> Flags:
    """Add white noise of up to `max_level` person's sizes to 2D joints in place; return the noisy sequences (B,)."""
    level = np.float32(max_level) * rng.uniform(-1, 1, (len(keypoints), 1, 1, 1)).clip(0).astype(np.float32)
    noise = level * rng.standard_normal(keypoints.shape, dtype=np.float32)
    keypoints += noise * size[..., None]
    return (level > 0).ravel()


def reproject_root(root: F32, true_intrinsics: F64, given_intrinsics: F64) -> F32:
    """Return the root (B, T, 3) m that has the same pixels with the given intrinsics as `root` with the true ones."""
    # Depth is scaled by the ratio of given to true focal length, which keeps the size of the person in the image.
    depth = root[..., 2:] * (given_intrinsics[:, 0, 0] / true_intrinsics[:, 0, 0]).astype(np.float32)[:, None, None]
    pixels = cameras.project_batch(root[:, :, None], true_intrinsics)[:, :, 0]
    centre = given_intrinsics[:, None, :2, 2].astype(np.float32)
    focal = given_intrinsics[:, None, 0, :1].astype(np.float32)
    return np.concatenate([(pixels - centre) / focal * depth, depth], axis=-1)
