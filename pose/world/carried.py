"""Path of a carried camera in metres: structure from motion up to scale, and the scale from people.

Structure from motion gives the camera's path up to scale; the lifter gives people in metres, relative to the camera.
Standing feet do not move in the static frame. A foot's velocity relative to the camera, in axes that do not rotate, is
therefore the negative velocity of the camera. The lower foot is mostly in contact. The scale is therefore the one at
which the density of lower-foot velocities is highest at zero (as in `pose.world.footing`), refined by least squares.

The uncertainty combines that of this estimate with that of body heights. Errors of neighbouring frames are correlated,
so the former comes from blocks of time (a sandwich estimator). If people, or the halves of the clip, contradict each
other, there is no scale.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton
from pose.structures.types import F64, Frame, FrameResult
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.structure import (
    choose_keys,
    has_colmap,
    key_images,
    reconstruct,
    scaled_matrix,
    with_translation,
)
from pose.world.camera_motion.verdict import TRANSLATING
from pose.world.clean import Steps, prepare
from pose.world.gravity import ANKLES, BodyMotion, body_up
from pose.world.rules import TRAVEL
from pose.world.store import SeenPeople, Works
from pose.world.work import Work

_CANDIDATES = 300  # candidate scales
_ITERATIONS = 20  # iterations of the refinement
_MIN_SAMPLES = 20  # minimum samples


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of the camera's path."""

    value: float  # scale in m per unit of the path's positions
    sigma: float  # standard deviation of its logarithm, including that of body heights


@dataclass(frozen=True, slots=True)
class _Samples:
    """Velocities of lower feet."""

    feet: F64  # (N, 3) m/s, the component along the line of sight times `TRAVEL.along_share`
    camera: F64  # (N, 3) units/s, velocities of the camera, with the same factor along the line of sight
    seconds: F64  # (N,) s, times
    people: NDArray[np.int64]  # (N,) track ids

    def select(self, rows: NDArray[np.bool_]) -> "_Samples":
        return _Samples(self.feet[rows], self.camera[rows], self.seconds[rows], self.people[rows])


def find_scale(works: Mapping[int, Work], path: CameraPath, depth: float) -> Scale | str:
    """Estimate the metric scale of a path's positions, or return the reason why there is none."""
    # The axes of `works` are those of the path, with the origin at the camera of each frame.
    samples = _samples(works, path)
    if len(samples.feet) < _MIN_SAMPLES:
        return "no standing feet are in view that give the scale"
    value = _densest_scale(samples, depth)
    value, sigma = _refined(samples, value)
    if not sigma < TRAVEL.max_log_sigma:
        return "standing feet do not give the scale of the camera's path"
    for mask, strict in _parts(samples):
        part_samples = samples.select(mask)
        part_value, part_sigma = _refined(part_samples, _densest_scale(part_samples, depth))
        if (strict or part_sigma < TRAVEL.max_log_sigma) and not abs(
            np.log(max(part_value, 1e-9) / value)
        ) < TRAVEL.max_log_difference:
            return "people, or parts of the clip, contradict each other in the scale of the camera's path"
    return Scale(value, float(np.linalg.norm([sigma, TRAVEL.feet_log_sigma, TRAVEL.height_log_sigma])))


def _samples(works: Mapping[int, Work], path: CameraPath) -> _Samples:
    assert path.positions is not None
    up = body_up(BodyMotion(work.joints, work.root, work.times) for work in works.values())
    speeds = np.gradient(path.positions, path.times, axis=0)
    parts = []
    for number, work in works.items():
        if len(work.times) < 3:
            continue
        rows = path.rows(work.times)
        ankles = work.joints[:, ANKLES] + work.root[:, None]
        low = (ankles @ up).argmin(axis=1)
        every = np.arange(len(low))
        velocity, camera = np.gradient(ankles, work.times, axis=0)[every, low], speeds[rows]
        line_of_sight = work.root / np.maximum(np.linalg.norm(work.root, axis=1, keepdims=True), 1e-9)
        usable = work.feet_seen[every, low] & ~work.filled & np.isfinite(path.sigmas[rows])
        parts.append(
            _Samples(
                _scaled_along_sight(velocity, line_of_sight)[usable],
                _scaled_along_sight(camera, line_of_sight)[usable],
                work.times[usable],
                np.full(int(usable.sum()), number),
            )
        )
    if not parts:
        return _Samples(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64))
    return _Samples(
        np.concatenate([part.feet for part in parts]), np.concatenate([part.camera for part in parts]),
        np.concatenate([part.seconds for part in parts]), np.concatenate([part.people for part in parts]),
    )  # fmt: skip


def _scaled_along_sight(vectors: F64, line_of_sight: F64) -> F64:
    along = (vectors * line_of_sight).sum(axis=1, keepdims=True)
    return np.asarray(vectors - (1 - TRAVEL.along_share) * along * line_of_sight)


def _densest_scale(samples: _Samples, depth: float) -> float:
    scales = np.geomspace(TRAVEL.min_background_m / depth, TRAVEL.max_background_m / depth, _CANDIDATES)
    density = [float(_weights(samples, scale, 2 * TRAVEL.kernel_width_mps).sum()) for scale in scales]
    return float(scales[int(np.argmax(density))])


def _weights(samples: _Samples, scale: float, width: float) -> F64:
    left = samples.feet + scale * samples.camera
    return np.asarray(np.exp(-0.5 * (left * left).sum(axis=1) / width**2))


def _refined(samples: _Samples, scale: float) -> tuple[float, float]:
    """Return the refined scale, and the standard deviation of its logarithm."""
    square, product = (samples.camera**2).sum(axis=1), (samples.camera * samples.feet).sum(axis=1)
    weight = np.ones(len(square))
    for _ in range(_ITERATIONS):
        weight = _weights(samples, scale, TRAVEL.kernel_width_mps)
        scale = -float(weight @ product) / max(float(weight @ square), 1e-12)
        if scale <= 0:
            return 1e-9, float("inf")
    score = weight * (product + scale * square)
    blocks = np.unique(
        np.column_stack([samples.people, samples.seconds // TRAVEL.correlation_s]), axis=0, return_inverse=True
    )
    sums = np.bincount(blocks[1].ravel(), score)
    information = (
        float(weight @ square) - float((weight * (product + scale * square) ** 2).sum()) / TRAVEL.kernel_width_mps**2
    )
    return scale, float(np.sqrt((sums**2).sum())) / max(information, 1e-12) / scale


def _parts(samples: _Samples) -> list[tuple[NDArray[np.bool_], bool]]:
    """Return masks (N,) of samples, and whether the scale of each part must agree with the total scale."""
    # The two halves of the time must agree. A person must agree only if its own scale is certain; people with few
    # samples are left out.
    late = samples.seconds >= np.median(samples.seconds)
    people = [samples.people == number for number in np.unique(samples.people)]
    return [(late, True), (~late, True), *((person, False) for person in people if person.sum() >= _MIN_SAMPLES)]


Images = Callable[[], Iterator[Frame]]

INSTALL = "pip install 'pose-run[slam]' estimates translation"


@dataclass(frozen=True, slots=True)
class RunData:
    """Access to the recorded data of a run."""

    results: Iterable[FrameResult]  # results of the run; can be iterated repeatedly
    skeleton: Skeleton  # joint set of the 2D keypoints
    camera: Camera  # intrinsics of the camera
    # Function that returns an iterator over the frames of the run; None if they are not available.
    images: Images | None = None
    folder: Path | None = None  # folder for unnamed temporary files; None for the system's temporary folder


def carry(decision: Decision, run: RunData, steps: Steps) -> Decision:
    """Estimate the translation of a camera that may be carried, and return the decision with its path in metres.

    `decision` is that from the background alone, whose `measured` path must not be None. Without a reliable
    reconstruction, it is returned with the reason in `translation`, and otherwise unchanged. `steps` are run for the
    people who give the scale.
    """
    assert decision.measured is not None
    found = _travel(run, decision.measured, steps)
    if isinstance(found, str):
        return replace(decision, translation=found)
    path, scale = found
    assert path.positions is not None
    distance = float(np.linalg.norm(np.diff(path.positions, axis=0), axis=1).sum())
    sigma = distance * scale.sigma
    motion = replace(decision.motion, kind=TRANSLATING, distance=distance, distance_sigma=sigma)
    return Decision(motion, path, check_feet=True, measured=decision.measured)


def _travel(run: RunData, path: CameraPath, steps: Steps) -> tuple[CameraPath, Scale] | str:
    if not has_colmap():
        return INSTALL
    if run.images is None:
        return "the images are not available any more"
    keys = choose_keys(path)
    if isinstance(keys, str):
        return keys
    pairs = ((frame, result.people) for frame, result in zip(run.images(), run.results, strict=False))
    images, reduced = key_images(pairs, keys, run.skeleton)
    if len(images) < len(keys):
        return "the images are not available any more"
    found = reconstruct(images, scaled_matrix(run.camera.matrix, reduced), run.camera.known)
    if isinstance(found, str):
        return found
    unscaled = with_translation(path, keys, found)
    with SeenPeople(run.skeleton, run.camera, run.folder) as people, Works(run.folder) as works:
        people.gather(run.results)
        still = replace(steps, path=replace(unscaled, positions=None))
        for number, person in people.items():
            works.add(number, prepare(number, person, people.frames, still))
        scale = find_scale(works, unscaled, found.depth)
    if isinstance(scale, str):
        return scale
    assert unscaled.positions is not None
    return replace(unscaled, positions=scale.value * unscaled.positions), scale
