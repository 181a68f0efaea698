"""Endless training batches from motion capture: other bodies, virtual cameras, detectors' errors; and fixed test sets.

Everything is NumPy and vectorised over the batch. A batch depends only on the clips, the config, the seed and the
step, so a resumed run sees the same batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from datasets import bodies, cameras, errors, poses
from datasets.bodies import BodyConfig
from datasets.definitions import DefinitionConfig, detectors_points, observed_joints, redefine
from datasets.errors import ErrorConfig
from datasets.mocap import Clip
from datasets.poses import PoseConfig
from pose.types import F32, LiftBatch

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_FRAME_RATES = np.array([30, 25, 24, 50, 60, 15, 120], np.float64)
_RATE_SHARES = np.array([0.38, 0.12, 0.08, 0.12, 0.1, 0.05, 0.03])  # the rest: anything from 10 to 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisConfig:
    """Shares of sequences in which each thing happens, and the settings of the parts."""

    derived: float = 0.4  # seen through a detector's skeleton; otherwise the joints themselves are seen
    exact: float = 0.2  # without any detector error
    intrinsics_known: float = 0.6
    variable_rate: float = 0.1  # with uneven time stamps
    speed: float = 0.35  # of the log of the playing speed, within 0.5 to 2
    bodies: BodyConfig = field(default_factory=BodyConfig)
    poses: PoseConfig = field(default_factory=PoseConfig)
    definitions: DefinitionConfig = field(default_factory=DefinitionConfig)
    errors: ErrorConfig = field(default_factory=ErrorConfig)


class Synthesis:
    """Training batches.

    clips: from `datasets.mocap`, any number of frames a second. seed: of all randomness.
    """

    def __init__(self, clips: list[Clip], *, config: SynthesisConfig, seed: int) -> None:
        if not clips:
            raise ValueError("clips: there is none to make batches from")
        self.config = config
        self.seed = seed
        self._points = np.concatenate([clip.points for clip in clips]).reshape(-1, 57)
        self._length = np.array([len(clip.times) for clip in clips])
        self._start = np.cumsum(self._length) - self._length
        self._rate = np.array([(len(clip.times) - 1) / (clip.times[-1] - clip.times[0]) for clip in clips])
        self._weight = _weights(clips)

    def batch(self, size: int, frames: int, step: int) -> LiftBatch:
        """Batch number `step`: `size` sequences of `frames` frames."""
        rng = np.random.default_rng((self.seed, step))
        config = self.config
        times, valid, points = self._motion(rng, size, frames)
        bones = self._bodies(rng, points, times)
        poses.vary_poses(rng, bones, times, config.poses)
        tilt = poses.random_tilts(rng, times, config.poses)
        # Turned about the middle of the walk, so that a tilted one does not swing far out.
        middle = bones[:, :, 0].mean(axis=1)
        bones[:, :, 0] -= middle[:, None]
        world = bodies.assemble(bones) @ np.swapaxes(tilt, -1, -2)
        world += middle[:, None, None]
        return see(rng, world, times, valid, config)

    def _bodies(self, rng: np.random.Generator, points: F32, times: F64) -> F32:
        """Bone vectors (B, T, 19, 3) of other people who move like `points`, partly with the limbs of other clips."""
        config = self.config.bodies
        bones = bodies.to_bones(points)
        for share, splice in ((config.other_legs, bodies.on_other_legs), (config.other_arms, bodies.with_other_arms)):
            rows = rng.random(len(bones)) < share
            if rows.any():
                donor, _ = self._windows(rng, times[rows], np.ones(int(rows.sum())))
                bones[rows] = splice(bones[rows], bodies.to_bones(donor))
        flipped = rng.random(len(bones)) < config.mirror
        bones[flipped] = bodies.mirror(bones[flipped])
        bones *= bodies.random_proportions(rng, len(bones), config)[:, None, :, None]
        return bones

    def _motion(self, rng: np.random.Generator, size: int, frames: int) -> tuple[F64, NDArray[np.bool_], F32]:
        times = random_times(rng, size, frames, self.config.variable_rate)
        speed = np.exp(np.clip(rng.normal(0, self.config.speed, size), np.log(0.5), np.log(2)))
        points, valid = self._windows(rng, times, speed)
        return times, valid, points

    def _windows(self, rng: np.random.Generator, times: F64, speed: F64) -> tuple[F32, NDArray[np.bool_]]:
        """Motion of random clips at `times` (B, T), played `speed` (B,) times as fast -> (B, T, 19, 3), valid."""
        batch = len(times)
        needed = times[:, -1] * speed
        candidates = rng.choice(len(self._weight), (batch, 6), p=self._weight)
        seconds = (self._length[candidates] - 1) / self._rate[candidates]
        enough = seconds >= needed[:, None]
        best = np.where(enough.any(axis=1), enough.argmax(axis=1), seconds.argmax(axis=1))
        clip = np.take_along_axis(candidates, best[:, None], axis=1)[:, 0]
        slack = np.maximum(np.take_along_axis(seconds, best[:, None], axis=1)[:, 0] - needed, 0)
        position = (rng.random(batch) * slack)[:, None] + times * speed[:, None]
        position *= self._rate[clip][:, None]
        valid = position <= self._length[clip][:, None] - 1 + 1e-6
        points = interpolate(self._points, self._start[clip], self._length[clip], position)
        return points.reshape(batch, -1, 19, 3), valid


def _weights(clips: list[Clip]) -> F64:
    """How often each clip is drawn: longer ones less than in proportion, rare poses and motion more, subjects alike."""
    weights = []
    for clip in clips:
        points = clip.points[:, :17] - clip.points[:, :1]
        spread = points[::6].std(axis=0).mean()
        weights.append(np.sqrt(clip.times[-1] - clip.times[0]) * (0.03 + spread))
    weight = np.array(weights)
    subjects = np.array([clip.subject for clip in clips])
    for subject in set(subjects):
        rows = subjects == subject
        weight[rows] /= np.sqrt(weight[rows].sum())
    return weight / weight.sum()


def random_times(rng: np.random.Generator, size: int, frames: int, variable: float) -> F64:
    """(B, T) s from 0: usual frame rates most often, now and then any from 10 to 120, or uneven time stamps."""
    shares = np.append(_RATE_SHARES, 1 - _RATE_SHARES.sum())
    rate = np.append(_FRAME_RATES, 0)[rng.choice(len(shares), size, p=shares)]
    rate = np.where(rate > 0, rate, np.exp(rng.uniform(np.log(10), np.log(120), size)))
    steps = np.ones((size, frames))
    uneven = rng.random(size) < variable
    steps[uneven] = rng.uniform(0.5, 1.5, (int(uneven.sum()), frames))
    steps[:, 0] = 0
    return np.cumsum(steps, axis=1) / rate[:, None]


def interpolate(flat: F32, start: I64, length: I64, position: F64) -> F32:
    """Catmull-Rom interpolation of rows of `flat` (N, D): clip b occupies rows start[b] ... start[b] + length[b] - 1.

    position: (B, T) rows after the clip's first, held at its last. Returns (B, T, D).
    """
    last = (length - 1)[:, None]
    position = np.clip(position, 0, last)
    index = np.minimum(position.astype(np.int64), np.maximum(last - 1, 0))
    u = (position - index).astype(np.float32)[..., None]
    taps = [flat[start[:, None] + np.clip(index + k, 0, last)] for k in (-1, 0, 1, 2)]
    before, a, b, after = taps
    slope_a, slope_b = (b - before) / 2, (after - a) / 2
    rise = b - a
    return a + u * (slope_a + u * (3 * rise - 2 * slope_a - slope_b + u * (slope_a + slope_b - 2 * rise)))


def see(
    rng: np.random.Generator, world: F32, times: F64, valid: NDArray[np.bool_], config: SynthesisConfig,
    redefined: bool = True,
) -> LiftBatch:  # fmt: skip
    """Film points (B, T, 19, 3) m in the world with random cameras and detect them.

    redefined: let joints that are seen themselves lie where other data sets have them.
    """
    size = len(world)
    view = cameras.random_cameras(rng, world, times)
    points = view.to_camera(world)
    derived = rng.random(size) < config.derived
    targets = points[:, :, :17].copy()
    if redefined:
        targets[~derived] = redefine(rng, points[~derived], config.definitions)
    observed = targets.copy()
    observed[derived] = observed_joints(
        detectors_points(rng, points[derived], config.definitions) if redefined else points[derived]
    )
    keypoints = cameras.project_batch(observed, view.intrinsics)
    scores = np.ones(keypoints.shape[:3], np.float32)
    wrong = rng.random(size) >= config.exact
    if wrong.any():
        depth = targets[wrong, :, :, 2] - targets[wrong, :, :1, 2]
        keypoints[wrong], scores[wrong] = errors.add_errors(
            rng, keypoints[wrong], times[wrong], view.image_size[wrong], depth, config.errors
        )
    known = rng.random(size) < config.intrinsics_known
    return finish(keypoints, scores * valid[..., None], derived, times, valid, view, known, targets)


def finish(
    keypoints: F32, scores: F32, derived: NDArray[np.bool_], times: F64, valid: NDArray[np.bool_],
    view: cameras.Cameras, known: NDArray[np.bool_], targets: F32,
) -> LiftBatch:  # fmt: skip
    """Put a batch together; where the intrinsics are not known, say the assumed ones and move the root to fit."""
    assumed = cameras.assumed_intrinsics(view.image_size)
    told = np.where(known[:, None, None], view.intrinsics, assumed)
    root = reproject_root(targets[:, :, 0], view.intrinsics, told)
    return LiftBatch(
        keypoints=keypoints,
        scores=scores,
        derived=derived,
        times=times,
        valid=valid,
        intrinsics=told,
        intrinsics_known=known,
        image_size=view.image_size,
        joints=targets - targets[:, :, :1],
        root=root,
    )


def reproject_root(root: F32, true: F64, told: F64) -> F32:
    """Root (B, T, 3) m that projects through `told` (B, 3, 3) to the pixels it has through `true`.

    Its depth is scaled by told / true focal length, so that the person keeps the size in the picture.
    """
    depth = root[..., 2:] * (told[:, 0, 0] / true[:, 0, 0]).astype(np.float32)[:, None, None]
    pixels = cameras.project_batch(root[:, :, None], true)[:, :, 0]
    centre = told[:, None, :2, 2].astype(np.float32)
    focal = told[:, None, 0, :1].astype(np.float32)
    return np.concatenate([(pixels - centre) / focal * depth, depth], axis=-1)


def evaluation_batches(
    clips: list[Clip], *, condition: str, fps: float = 30.0, frames: int = 300, seed: int = 0, size: int = 16,
    config: SynthesisConfig | None = None,
) -> Iterator[LiftBatch]:  # fmt: skip
    """Fixed test sequences: every frame of the clips once, at `fps`, from random cameras that depend on `seed` only.

    condition: "gt" (the 2D of the target joints themselves) or "detector" (through a detector's skeleton, with errors).
    No change of body or pose; intrinsics are known.
    """
    if condition not in ("gt", "detector"):
        raise ValueError(f"condition: expected gt or detector, got {condition!r}")
    share = 0.0 if condition == "gt" else 1.0
    base = config or SynthesisConfig()
    film = SynthesisConfig(derived=share, exact=1 - share, intrinsics_known=1.0, errors=base.errors)
    pieces = [piece for clip in clips for piece in _pieces(clip, fps, frames)]
    for number, first in enumerate(range(0, len(pieces), size)):
        rng = np.random.default_rng((seed, number))
        group = pieces[first : first + size]
        length = max(map(len, group))
        world = np.stack([np.concatenate([p, np.repeat(p[-1:], length - len(p), axis=0)]) for p in group])
        times = np.tile(np.arange(length) / fps, (len(group), 1))
        valid = np.arange(length) < np.array([[len(p)] for p in group])
        yield see(rng, world, times, valid, film, redefined=False)


def _pieces(clip: Clip, fps: float, frames: int) -> list[F32]:
    seconds = clip.times[-1] - clip.times[0]
    count = int(seconds * fps + 1e-6) + 1
    position = np.arange(count)[None] / fps * (len(clip.times) - 1) / seconds
    flat = clip.points.reshape(len(clip.points), 57)
    points = interpolate(flat, np.zeros(1, np.int64), np.array([len(flat)]), position)[0].reshape(-1, 19, 3)
    # Windows of one clip differ by one frame at most, so that none is a stump.
    return np.array_split(points, max(1, -(-count // frames)))
