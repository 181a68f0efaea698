"""Synthetic training batches from motion capture, and fixed evaluation sets.

Clips are augmented with other bodies and poses, and filmed by a virtual camera with detector errors. The code is
NumPy, vectorised over the batch. A batch depends only on the clips, the config, the seed and the step, so resumed runs
get the same batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.sequences import LiftBatch
from pose.structures.types import F32, F64
from pose_datasets import bodies, poses, postures
from pose_datasets.bodies import BodyConfig
from pose_datasets.filming import CANONICAL, FilmConfig, film
from pose_datasets.mocap import Clip
from pose_datasets.poses import PoseConfig
from pose_datasets.postures import PostureConfig
from pose_datasets.sampling import ClipPool, random_times, resample

# Fractions (`derived`, `exact`) of `FilmConfig` for each condition of the evaluation: exact 2D of the target joints,
# the same with detector errors, and a detector's skeleton with errors.
CONDITIONS = {"gt": (0.0, 1.0), "noisy": (0.0, 0.0), "detector": (1.0, 0.0)}

# Augmentation of the hard set. It must not change, so that results stay comparable.
_HARD = PoseConfig(turned=0.9, folded=0.5, raised=0.3, tilted=0.4, spun=0.08, straight=0.0, bent=0.0)
_HARD_POSTURES = PostureConfig(held=0.0, leaning=0.0, reaching=0.0)


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig:
    """Settings of the augmentation of motion capture.

    Attributes:
        natural: Fraction of sequences with poses as recorded. The others get the changes of `poses` and `postures`.
        variable_rate: Fraction of sequences with uneven time stamps.
        fastest_rate: Highest frame rate of the 2D joints, frames/s; the lowest is 10.
        speed: Standard deviation of the log of the playback speed, which is clamped to 0.5 to 2.
        equal_laboratories: Whether clips of each laboratory (`mocap.laboratory`) are equally probable.
        bodies: Augmentation of bodies.
        poses: Augmentation of poses.
        postures: Augmentation with rare postures.
        film: Simulated cameras and detectors.
    """

    natural: float = 0.5
    variable_rate: float = 0.1
    fastest_rate: float = 120.0
    speed: float = 0.35
    equal_laboratories: bool = False
    bodies: BodyConfig = field(default_factory=BodyConfig)
    poses: PoseConfig = field(default_factory=PoseConfig)
    postures: PostureConfig = field(default_factory=PostureConfig)
    film: FilmConfig = field(default_factory=FilmConfig)


class Synthesis:
    """Generator of synthetic training batches."""

    def __init__(self, clips: list[Clip], *, config: SynthesisConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self._pool = ClipPool(clips, config.equal_laboratories)

    def batch(self, size: int, frames: int, step: int) -> LiftBatch:
        """Return the training batch of a step. Equal arguments give equal batches."""
        rng = np.random.default_rng((self.seed, step))
        times = random_times(rng, size, frames, self.config.variable_rate, self.config.fastest_rate)
        world, valid = self.people(rng, times)
        return film(rng, world, times, valid, self.config.film)

    def people(self, rng: np.random.Generator, times: F64) -> tuple[F32, NDArray[np.bool_]]:
        """Draw B random people with augmented bodies and poses: points (B, T, 19, 3) m and valid frames (B, T)."""
        config = self.config
        speed = np.exp(np.clip(rng.normal(0, config.speed, len(times)), np.log(0.5), np.log(2)))
        points, valid = self._pool.windows(rng, times, speed)
        bones = bodies.to_bones(points)
        flipped = rng.random(len(bones)) < config.bodies.mirror
        bones[flipped] = bodies.mirror(bones[flipped])
        varied = rng.random(len(bones)) >= config.natural
        bones[varied] = self._spliced(rng, bones[varied], times[varied])
        bones *= bodies.random_proportions(rng, len(bones), config.bodies)[:, None, :, None]
        bodies.widen_shoulders(rng, bones, config.bodies)
        bones[varied] = _varied(rng, bones[varied], times[varied], config)
        poses.flex_limbs(rng, bones, times, config.poses)
        if config.poses.whole_range:
            poses.bend_over_whole_range(rng, bones, times, config.poses)
        # The centre of the tilt is the mean position of the pelvis, so that people stay near their path.
        middle = bones[:, :, 0].mean(axis=1)
        bones[:, :, 0] -= middle[:, None]
        world = bodies.assemble(bones)
        world[varied] @= np.swapaxes(poses.random_tilts(rng, times[varied], config.poses), -1, -2)
        return world + middle[:, None, None], valid

    def _spliced(self, rng: np.random.Generator, bones: F32, times: F64) -> F32:
        """Give some sequences the legs or the arms of other clips."""
        config = self.config.bodies
        for share, splice in (
            (config.other_legs, bodies.combine_with_legs),
            (config.other_arms, bodies.combine_with_arms),
        ):
            rows = rng.random(len(bones)) < share
            if rows.any():
                donor, _ = self._pool.windows(rng, times[rows], np.ones(int(rows.sum())))
                bones[rows] = splice(bones[rows], bodies.to_bones(donor))
        return bones


def _varied(rng: np.random.Generator, bones: F32, times: F64, config: SynthesisConfig) -> F32:
    poses.vary_poses(rng, bones, times, config.poses)
    postures.take_postures(rng, bones, times, config.postures)
    return bones


def evaluation_batches(
    clips: list[Clip], *, condition: str, fps: float = 30.0, frames: int = 300, seed: int = 0,
    config: SynthesisConfig | None = None,
) -> Iterator[LiftBatch]:  # fmt: skip
    """Yield fixed evaluation sequences, in which each frame of the resampled clips appears once.

    People are as recorded, with the joint definitions of `pose_datasets.mapping` and known intrinsics. The random
    cameras depend only on the clips and `seed`. `condition` is the 2D: "gt" (exact), "noisy" (with detector errors) or
    "detector" (from a detector's skeleton, with errors); of `config`, only the detector errors and `film.chest_height`
    are used.
    """
    settings = _film_settings(condition, config)
    pieces = [piece for clip in clips for piece in _pieces(resample(clip, fps)[0], frames)]
    for number, first in enumerate(range(0, len(pieces), _EVALUATION_BATCH)):
        group = pieces[first : first + _EVALUATION_BATCH]
        length = max(map(len, group))
        world = np.stack([np.concatenate([p, np.repeat(p[-1:], length - len(p), axis=0)]) for p in group])
        times = np.tile(np.arange(length) / fps, (len(group), 1))
        valid = np.arange(length) < np.array([[len(piece)] for piece in group])
        yield film(np.random.default_rng((seed, number)), world, times, valid, settings)


_EVALUATION_BATCH = 16  # constant, because the cameras of a batch depend on it


def hard_batches(
    clips: list[Clip], *, condition: str, fps: float = 30.0, frames: int = 150, count: int = 16, seed: int = 0,
    config: SynthesisConfig | None = None,
) -> Iterator[LiftBatch]:  # fmt: skip
    """Yield `count` fixed batches of unusual poses and bodies, made by augmentation of `clips` as in training."""
    # In most sequences limbs are rotated, the body is folded or tilted, or arms are raised. The 2D is "gt" (exact),
    # "noisy" or "detector".
    settings = SynthesisConfig(
        natural=0.0, bodies=BodyConfig(unlike=0.0), poses=_HARD, postures=_HARD_POSTURES,
        film=_film_settings(condition, config),
    )  # fmt: skip
    synthesis = Synthesis(clips, config=settings, seed=seed)
    times = np.tile(np.arange(frames) / fps, (_EVALUATION_BATCH, 1))
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        world, valid = synthesis.people(rng, times)
        yield film(rng, world, times, valid, settings.film)


def _film_settings(condition: str, config: SynthesisConfig | None) -> FilmConfig:
    """Return the settings of an evaluation, with known intrinsics and without variation of joint definitions."""
    if condition not in CONDITIONS:
        raise ValueError(f"condition: expected one of {', '.join(CONDITIONS)}, got {condition!r}")
    derived, exact = CONDITIONS[condition]
    base = config.film if config else FilmConfig()
    return replace(
        base, derived=derived, exact=exact, intrinsics_known=1.0, white=0.0, steep=0.0, definitions=CANONICAL
    )


def _pieces(points: F32, frames: int) -> list[F32]:
    """Cut (T, 19, 3) into windows of at most `frames` whose lengths differ by at most one frame."""
    return np.array_split(points, -(-len(points) // frames))
