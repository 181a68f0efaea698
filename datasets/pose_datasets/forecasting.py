"""Training data of forecasters: motion with ground truth at a high rate, and outputs of a streaming lifter.

Lifting costs more than training, so it is done once: `prepare_motions` writes a file, and `load_motions` reads its
parts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32, F64, Flags
from pose.utils.archives import open_arrays, write_arrays
from pose.utils.written_files import writing
from pose_datasets.filming import FilmConfig, film
from pose_datasets.mocap import Clip, split
from pose_datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches

PARTS = ("train", "validation", "test", "calibration")
CALIBRATION_SEQUENCES = 256  # of the validation subjects with the augmentation of training: other speeds and bodies
FRAMES = 192  # frames of a training sequence: 3.2 s at 60 frames/s
EVALUATION_FPS = 60.0
EVALUATION_FRAMES = 600
_BASE_RATES = (60.0, 60.0, 50.0, 48.0)  # rates of the ground truth, one per batch
_STRIDES = {60.0: (1, 2, 2, 2, 3, 4), 50.0: (1, 2, 2), 48.0: (2, 2, 3)}  # every n-th frame is an image of the camera
_BATCH = 32

Lifted3D = tuple[F32, F32, F32]  # joints (B, T, 17, 3) m, root (B, T, 3) m, sigma (B, T, 17) mm
Lift = Callable[[LiftBatch], Lifted3D]


@dataclass(frozen=True, slots=True)
class Motions:
    """Ground truth and lifter outputs of N sequences with T frames."""

    times: F64  # (N, T) s
    valid: Flags  # (N, T) mask, False after the end of a sequence
    joints: F32  # (N, T, 17, 3) m, ground truth in the axes of the camera, relative to the root (the pelvis)
    root: F32  # (N, T, 3) m, ground truth of the pelvis in the camera frame
    seen: Flags  # (N, T) mask of the frames with an image and a detection
    lifted_joints: F32  # (N, T, 17, 3) m, output of the lifter in the axes of the camera, relative to the pelvis
    lifted_root: F32  # (N, T, 3) m, output of the lifter for the pelvis, in the camera frame
    lifted_sigma: F32  # (N, T, 17) mm, uncertainty predicted by the lifter
    stride: NDArray[np.int64]  # (N,) number of frames per image

    def __len__(self) -> int:
        return len(self.times)


def training_motions(clips: list[Clip], count: int, lift: Lift, seed: int) -> Iterator[Motions]:
    """Yield at least `count` augmented random sequences in batches, with images at 15 to 60 frames/s."""
    film_config = FilmConfig(derived=0.7, exact=0.1, intrinsics_known=0.65)
    synthesis = Synthesis(clips, config=SynthesisConfig(natural=0.6, film=film_config), seed=seed)
    for number in range(-(-count // _BATCH)):
        rng = np.random.default_rng((seed, number))
        rate = _BASE_RATES[rng.integers(len(_BASE_RATES))]
        times = np.tile(np.arange(FRAMES) / rate, (_BATCH, 1))
        world, valid = synthesis.people(rng, times)
        stride = int(rng.choice(_STRIDES[rate]))
        yield _lifted(film(rng, world, times, valid, film_config), stride, lift)


def evaluation_motions(clips: list[Clip], lift: Lift, stride: int = 2) -> Iterator[Motions]:
    """Yield the clips as recorded, each frame once, at 60 frames/s, with a simulated detector every `stride` frames."""
    for batch in evaluation_batches(clips, condition="detector", fps=EVALUATION_FPS, frames=EVALUATION_FRAMES):
        short = EVALUATION_FRAMES - batch.times.shape[1]
        yield _lifted(_padded(batch, short) if short else batch, stride, lift)


def _padded(batch: LiftBatch, count: int) -> LiftBatch:
    """Return the batch with `count` invalid frames appended."""
    grown = {name: np.pad(getattr(batch, name), [(0, 0), (0, count)] + [(0, 0)] * extra, mode="edge")
             for name, extra in (("keypoints", 2), ("scores", 1), ("joints", 2), ("root", 1))}  # fmt: skip
    after = batch.times[:, -1:] + np.arange(1, count + 1) / EVALUATION_FPS
    times = np.concatenate([batch.times, after], axis=1)
    return replace(batch, **grown, times=times, valid=np.pad(batch.valid, ((0, 0), (0, count))))


def _lifted(batch: LiftBatch, stride: int, lift: Lift) -> Motions:
    images = slice(None, None, stride)
    per_frame = ("keypoints", "scores", "times", "valid", "joints", "root")
    taken = replace(batch, **{name: getattr(batch, name)[:, images] for name in per_frame})
    joints, root, sigma = (np.zeros_like(array) for array in (batch.joints, batch.root, batch.scores))
    joints[:, images], root[:, images], sigma[:, images] = lift(taken)
    seen = np.zeros_like(batch.valid)
    seen[:, images] = taken.valid & (taken.scores > 0).any(axis=-1)
    return Motions(
        batch.times, batch.valid, batch.joints, batch.root, seen, joints, root, sigma, np.full(len(seen), stride)
    )


def prepare_motions(clips: list[Clip], out: Path, lift: Lift, count: int, seed: int = 0) -> str:
    """Write a data set of all parts for forecasters to one file, and return a summary line.

    Raises:
        PoseError: If a part has no clips.
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    for part in PARTS:
        people = split(clips, "validation" if part == "calibration" else part)
        if not people:
            raise PoseError(f"no clip of a {part} subject; give every file that `pose-prepare mocap` wrote")
        count_of_part = {"train": count, "calibration": min(count, CALIBRATION_SEQUENCES)}.get(part)
        batches = list(
            training_motions(people, count_of_part, lift, seed) if count_of_part else evaluation_motions(people, lift)
        )
        for name in Motions.__slots__:
            arrays[f"{part}_{name}"] = np.concatenate([getattr(batch, name) for batch in batches])
    with writing([out]):
        write_arrays(out, arrays)
    counts = ", ".join(f"{len(arrays[f'{part}_times'])} {part}" for part in PARTS)
    return f"{out}: {counts} sequences"


def load_motions(path: Path, part: str) -> Motions:
    """Open one part of a file written by `prepare_motions`, with memory-mapped arrays.

    Raises:
        PoseError: If the file is not a file of motions.
    """
    try:
        with open_arrays(path) as arrays:
            return Motions(*(arrays.mapped(f"{part}_{name}") for name in Motions.__slots__))  # type: ignore[arg-type]
    except (KeyError, ValueError, TypeError) as error:
        raise PoseError(f"{path}: not a file of motions to forecast; make one with `pose-prepare forecast`") from error
