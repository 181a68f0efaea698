"""Training batches for `pose-train` from Human3.6M: protocol V (CPN or ground-truth 2D) or protocol M."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.structures.labelled import LabelledSequence
from pose.structures.sequences import LiftBatch, Sequence2D, mirror_observations, mirror_poses
from pose.structures.types import F32
from pose_datasets import human36m, human36m_motionbert
from pose_datasets.training import BATCH_FRAMES, FRAMES

Kind = TypeVar("Kind", bound=np.generic)
# Frames in periodic evaluations, spread over all held-out sequences.
_EVALUATION_FRAMES = 20_000
_EVALUATION_BATCH = 16


@dataclass(frozen=True, kw_only=True)
class Human36mConfig:
    """Settings of the batches from Human3.6M."""

    folder: str = ""  # folder with the prepared files; empty to train on motion capture instead
    protocol: str = "V"  # files and pose space: `V`, those of VideoPose3D, or `M`, those of MotionBERT
    # Source of the 2D joints of protocol V: `cpn` (detections of the network CPN) or `gt` (ground truth).
    input_2d: str = "cpn"
    # Training subject used for validation. If empty, all five subjects are used for training, as in papers; the
    # validation error is then not meaningful.
    held_out: str = "S8"
    frames: tuple[int, ...] = FRAMES  # possible numbers of frames of a sequence; one is sampled per training step
    batch_frames: int = BATCH_FRAMES  # number of frames of a batch, summed over its sequences
    mirror: bool = True  # whether to mirror each sequence with a probability of one half

    def __post_init__(self) -> None:
        for name, allowed in (
            ("protocol", ("V", "M")),
            ("input_2d", tuple(human36m.FILES_2D)),
            ("held_out", ("", *human36m.TRAIN_SUBJECTS)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"human36m.{name}: {getattr(self, name)!r} is not one of {', '.join(allowed)}")
        if not self.frames or min(self.frames) < 3 or max(self.frames) > self.batch_frames:
            raise ValueError(
                f"human36m.frames: must be from 3 to batch_frames ({self.batch_frames}), got {self.frames}"
            )


class Human36mSource:
    """Training batches (`BatchSource`) and fixed evaluation sets of Human3.6M; errors of missing or invalid files."""

    def __init__(self, config: Human36mConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        folder = Path(config.folder)
        if config.protocol == "M":
            known = human36m_motionbert.load_poses(folder, "train")
        else:
            known = human36m.load_sequences(folder, config.input_2d, human36m.TRAIN_SUBJECTS)
        self._validation = [one for one in known if one.subject == (config.held_out or human36m.TRAIN_SUBJECTS[-1])]
        self._training = [one for one in known if one.subject != config.held_out]
        self._weights = [len(one) for one in self._training]

    def batch(self, step: int) -> LiftBatch:
        """Return the training batch of a step. Equal steps give equal batches."""
        draw = random.Random(f"{self._seed}/{step}")
        frames = draw.choice(self._config.frames)
        count = self._config.batch_frames // frames
        windows = []
        for one in draw.choices(self._training, self._weights, k=count):
            start = draw.randrange(max(len(one) - frames, 0) + 1)
            mirror = self._config.mirror and draw.random() < 0.5
            windows.append(window(one, slice(start, start + frames), mirror))
        return collate(windows, frames)

    def evaluation(self, part: str) -> dict[str, Iterator[LiftBatch]]:
        """Return batches of a fixed sample of "validation" or "test", by source of 2D; `pose-eval` uses the whole."""
        return {self._config.input_2d if self._config.protocol == "V" else "sh": self._pieces(self._sequences(part))}

    def calibration(self) -> list[Iterator[LiftBatch]]:
        """Return the batches for calibrating sigma: one set, of the held-out subject; none without such a subject."""
        return list(self.evaluation("validation").values()) if self._config.held_out else []

    def _sequences(self, part: str) -> list[LabelledSequence]:
        if part == "validation":
            return self._validation
        folder = Path(self._config.folder)
        if self._config.protocol == "V":
            return human36m.load_sequences(folder, self._config.input_2d)
        return human36m_motionbert.load_poses(folder, "test")

    def _pieces(self, sequences: Sequence[LabelledSequence]) -> Iterator[LiftBatch]:
        frames = max(self._config.frames)
        pieces = [(sequence, start) for sequence in sequences for start in range(0, len(sequence), frames)]
        step = max(len(pieces) * frames // _EVALUATION_FRAMES, 1)
        chosen = [window(sequence, slice(start, start + frames), mirror=False) for sequence, start in pieces[::step]]
        for first in range(0, len(chosen), _EVALUATION_BATCH):
            yield collate(chosen[first : first + _EVALUATION_BATCH], frames)


@dataclass(frozen=True, slots=True)
class TrainingWindow:
    """Consecutive T frames of a sequence with ground truth."""

    observed: Sequence2D  # 2D joints of the frames
    truth: F32  # (T, 17, 3) m, true poses in the camera frame
    counted: NDArray[np.bool_]  # (T,) mask of the frames with ground truth


def window(sequence: LabelledSequence, rows: slice, mirror: bool) -> TrainingWindow:
    """Return a range of frames of a sequence, mirrored horizontally or not."""
    part, truth = sequence.observed[rows], sequence.truth[rows]
    if mirror:
        part, truth = mirror_observations(part), mirror_poses(truth)
    return TrainingWindow(part, truth, sequence.counted[rows])


def collate(windows: Sequence[TrainingWindow], frames: int) -> LiftBatch:
    """Combine windows of sequences into a batch. Shorter windows are padded with invalid frames."""

    def filled(arrays: Sequence[NDArray[Kind]], mode: Literal["constant", "edge"] = "constant") -> NDArray[Kind]:
        return np.stack([np.pad(a, [(0, frames - len(a)), *[(0, 0)] * (a.ndim - 1)], mode) for a in arrays])

    poses = filled([one.truth for one in windows], "edge")
    seen = [one.observed for one in windows]
    return LiftBatch(
        keypoints=filled([one.keypoints for one in seen]),
        scores=filled([one.scores for one in seen]),
        derived=np.zeros(len(windows), bool),
        times=np.tile(np.arange(frames) / human36m.FPS, (len(windows), 1)),
        valid=filled([one.counted for one in windows]),
        intrinsics=np.stack([one.camera.matrix for one in seen]),
        intrinsics_known=np.array([one.camera.known for one in seen]),
        image_size=np.array([one.camera.size for one in seen], np.float32),
        joints=poses - poses[:, :, :1],
        root=poses[:, :, 0],
    )
