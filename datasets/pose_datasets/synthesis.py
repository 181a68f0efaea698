"""Endless training batches from motion capture, and fixed sets to measure with.

Motion of one or several clips -> another body -> other poses -> a camera -> a detector's errors. All of it is NumPy,
vectorised over the batch; a batch depends only on the clips, the config, the seed and the step, so a resumed run sees
the same batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.sequences import LiftBatch
from pose.types import F32
from pose_datasets import bodies, poses, postures
from pose_datasets.bodies import BodyConfig
from pose_datasets.definitions import CANONICAL
from pose_datasets.filming import FilmConfig, film
from pose_datasets.mocap import Clip
from pose_datasets.poses import PoseConfig
from pose_datasets.postures import PostureConfig
from pose_datasets.sampling import ClipPool, random_times, resample

F64 = NDArray[np.float64]

# What is measured: exact 2D of the target joints, the same with a detector's errors, and a detector's skeleton with
# its errors: (derived, exact).
CONDITIONS = {"gt": (0.0, 1.0), "noisy": (0.0, 0.0), "detector": (1.0, 0.0)}

# The hard set is one of poses and bodies that training has in plenty, and stays what it was.
_HARD = PoseConfig(turned=0.9, folded=0.5, raised=0.3, tilted=0.4, spun=0.08, straight=0.0, bent=0.0)
_HARD_POSTURES = PostureConfig(held=0.0, leaning=0.0, reaching=0.0)


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig:
    """How motion capture becomes training sequences."""

    natural: float = 0.5  # share of sequences with the poses as they were recorded; the others are varied
    variable_rate: float = 0.1  # share of sequences with uneven time stamps
    speed: float = 0.35  # spread of the log of the playing speed, which stays within 0.5 to 2
    bodies: BodyConfig = field(default_factory=BodyConfig)
    poses: PoseConfig = field(default_factory=PoseConfig)
    postures: PostureConfig = field(default_factory=PostureConfig)
    film: FilmConfig = field(default_factory=FilmConfig)


class Synthesis:
    """Training batches. clips: as `pose_datasets.mocap` gives them. seed: of all randomness."""

    def __init__(self, clips: list[Clip], *, config: SynthesisConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self._pool = ClipPool(clips)

    def batch(self, size: int, frames: int, step: int) -> LiftBatch:
        """Batch number `step`: `size` sequences of `frames` frames, at mixed frame rates."""
        rng = np.random.default_rng((self.seed, step))
        times = random_times(rng, size, frames, self.config.variable_rate)
        world, valid = self.people(rng, times)
        return film(rng, world, times, valid, self.config.film)

    def people(self, rng: np.random.Generator, times: F64) -> tuple[F32, NDArray[np.bool_]]:
        """Random people in motion at `times` (B, T) s: points (B, T, 19, 3) m in the world, and valid (B, T)."""
        config = self.config
        speed = np.exp(np.clip(rng.normal(0, config.speed, len(times)), np.log(0.5), np.log(2)))
        points, valid = self._pool.windows(rng, times, speed)
        bones = bodies.to_bones(points)
        flipped = rng.random(len(bones)) < config.bodies.mirror
        bones[flipped] = bodies.mirror(bones[flipped])
        varied = rng.random(len(bones)) >= config.natural
        bones[varied] = self._spliced(rng, bones[varied], times[varied])
        bones *= bodies.random_proportions(rng, len(bones), config.bodies)[:, None, :, None]
        bones[varied] = _varied(rng, bones[varied], times[varied], config)
        poses.flex_limbs(rng, bones, times, config.poses)
        if config.poses.whole_range:
            poses.bend_over_the_whole_range(rng, bones, times, config.poses)
        # Tilted about the middle of the walk, so that the person does not swing far out.
        middle = bones[:, :, 0].mean(axis=1)
        bones[:, :, 0] -= middle[:, None]
        world = bodies.assemble(bones)
        world[varied] @= np.swapaxes(poses.random_tilts(rng, times[varied], config.poses), -1, -2)
        return world + middle[:, None, None], valid

    def _spliced(self, rng: np.random.Generator, bones: F32, times: F64) -> F32:
        """Some sequences with the legs or the arms of other clips."""
        config = self.config.bodies
        for share, splice in ((config.other_legs, bodies.on_other_legs), (config.other_arms, bodies.with_other_arms)):
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
    """Fixed sequences to measure with: every frame of the clips once, in pieces of at most `frames`, at `fps`.

    condition: one of `CONDITIONS`. The recorded people as they are, our own joint definitions, known intrinsics, random
    cameras that depend on the clips and `seed` only. Of `config` only the detector's errors are used.
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


_EVALUATION_BATCH = 16  # fixed: the cameras of a batch depend on it


def hard_batches(
    clips: list[Clip], *, condition: str, fps: float = 30.0, frames: int = 150, count: int = 16, seed: int = 0,
    config: SynthesisConfig | None = None,
) -> Iterator[LiftBatch]:  # fmt: skip
    """`count` fixed batches of unusual poses and bodies, made from the motion of `clips` as training data are.

    Most sequences are turned, folded, lifted or tilted; otherwise as `evaluation_batches`.
    """
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
    if condition not in CONDITIONS:
        raise ValueError(f"condition: expected one of {', '.join(CONDITIONS)}, got {condition!r}")
    derived, exact = CONDITIONS[condition]
    base = config.film if config else FilmConfig()
    return replace(
        base, derived=derived, exact=exact, intrinsics_known=1.0, white=0.0, steep=0.0, definitions=CANONICAL
    )


def _pieces(points: F32, frames: int) -> list[F32]:
    """Cut (T, 19, 3) into windows of at most `frames` that differ by one frame, so that none is a stump."""
    return np.array_split(points, -(-len(points) // frames))
