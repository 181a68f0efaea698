"""Lifting of whole sequences with overlapping windows that are blended (`pose.lifting.blending`).

Each window is lifted a second time with its keypoints mirrored, and the two outputs are averaged. This halves errors
that occur in only one of the two, mostly in depth. A streaming network needs no windows: it runs once over the whole
sequence.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.errors import UsageError
from pose.lifting.backends import Arrays
from pose.lifting.blending import Blend, Windows
from pose.lifting.format import WINDOW_INPUT_NAMES
from pose.lifting.names import OFFLINE, SHIPPED, SLIDING
from pose.lifting.step_batch import PeopleState, Step, StreamSettings
from pose.structures.incoming import check_units
from pose.structures.sequences import Sequence2D, Sequence3D, mirror_observations
from pose.structures.skeletons import H36M17, get_skeleton, to_h36m17
from pose.structures.types import F32
from pose.utils.whole_file import checked_path

if TYPE_CHECKING:
    from pose.lifting.features import Lifted

CHUNK = 64  # windows per forward pass; fewer if they are longer


# Mirroring of joined outputs: order with left and right swapped, and signs of the coordinates.
_FLIP = np.array(H36M17.flip_order)
_MIRROR_ORDER = np.concatenate([(3 * _FLIP[:, None] + np.arange(3)).ravel(), np.arange(51, 54), 54 + _FLIP])
_MIRROR_SIGNS = np.concatenate([np.tile([-1, 1, 1], 18), np.ones(17)]).astype(np.float32)


class Lifter(ABC):
    """Trained lifter that takes and returns NumPy arrays. `OnnxLifter` and `TorchLifter` differ in the backend."""

    name: str  # name for messages and results
    sha256: str  # hash of the checkpoint; empty without one
    path: Path | None  # file of the checkpoint; None without one
    streaming: bool  # whether the lifter processes frame by frame, as a causal network or with a sliding window
    averages_mirrored = False  # whether `forward` returns means of a window and its mirror image

    @property
    @abstractmethod
    def windows(self) -> Windows:
        """Windows of an offline network, from its configuration."""

    @property
    @abstractmethod
    def step(self) -> Step:
        """Function that processes one frame of a stream, with its initial state; ValueError if offline."""

    @abstractmethod
    def forward(self, windows: list[Sequence2D], lookahead: int = 0) -> list[F32]:
        """Return outputs (T - lookahead, 71), see `split_outputs`, of sequences of equal length T."""

    def forward_mirrored(self, windows: list[Sequence2D]) -> list[F32]:
        """Return the mean (T, 71) of an offline network's outputs for each window and its mirror image."""
        outputs = self.forward([*windows, *map(mirror_observations, windows)])
        plain, mirrored = outputs[: len(windows)], outputs[len(windows) :]
        return [mirror_mean(one, other) for one, other in zip(plain, mirrored, strict=True)]

    def lift(self, sequence: Sequence2D, lookahead: int = 0) -> Sequence3D:
        """Lift every frame of one person to 3D, for streaming networks with `lookahead` later frames for each output.

        Warns if the units of the keypoints look wrong (`pose.structures.incoming.check_units`); relative coordinates (0
        to 1), or an offline network with a look-ahead, are a ValueError.
        """
        check_units(sequence.keypoints, sequence.scores, sequence.times, sequence.camera.size)
        return self.lift_many([sequence], lookahead)[0]

    def lift_many(self, sequences: list[Sequence2D], lookahead: int = 0, *, mirrored: bool = True) -> list[Sequence3D]:
        """Lift several sequences like `lift`, with few forward passes; `mirrored` (offline) averages mirror images."""
        if self.streaming:
            return [self._lift_streaming(sequence, lookahead) for sequence in sequences]
        if lookahead:
            raise ValueError(f"lookahead: the lifter {self.name} processes whole windows; use a streaming one")
        divisions = [self.windows.at_rate_of(sequence.times) for sequence in sequences]
        spans = [(i, start, stop) for i, s in enumerate(sequences) for start, stop in divisions[i].spans(len(s))]
        blends = [Blend(windows, len(s)) for windows, s in zip(divisions, sequences, strict=True)]
        for length in sorted({stop - start for _, start, stop in spans}):
            same_length = [span for span in spans if span[2] - span[1] == length]
            at_once = max(1, CHUNK * self.windows.size // max(length, self.windows.size))
            for first in range(0, len(same_length), at_once):
                chunk = same_length[first : first + at_once]
                windows = [sequences[i][start:stop] for i, start, stop in chunk]
                outputs = self.forward_mirrored(windows) if mirrored else self.forward(windows)
                for (i, start, _), output in zip(chunk, outputs, strict=True):
                    blends[i].add(start, output)
        return [
            Sequence3D(*split_outputs(blend.take(len(sequence))), times=sequence.times)
            for blend, sequence in zip(blends, sequences, strict=True)
        ]

    def run_stream(self, window: Sequence2D, lookahead: int) -> F32:
        """Run the stream over T frames, one step per frame; returns outputs (T - lookahead, 71) for `split_outputs`."""
        seen = {name: array[0] for name, array in network_inputs([window]).items()}
        keypoints, scores, times = (seen.pop(name) for name in ("keypoints", "scores", "times"))
        person = PeopleState(StreamSettings(self.step, lookahead, seen), 1)
        outputs = [person.advance(*frame)[0] for frame in zip(keypoints, scores, times.tolist(), strict=True)]
        return np.stack(outputs[lookahead:])

    def _lift_streaming(self, sequence: Sequence2D, lookahead: int) -> Sequence3D:
        lookahead = self.step.cache_layout.supported_lookahead(lookahead)
        output = self.forward([padded_with_empty_frames(sequence, lookahead)], lookahead)[0]
        return Sequence3D(*split_outputs(output), times=sequence.times)


def checkpoint_path(name_or_path: str | Path) -> Path:
    """Return the path of a shipped lifter (`SHIPPED`) or of the user's file; UsageError if missing."""
    if str(name_or_path) in SHIPPED:
        stem = OFFLINE if str(name_or_path) == SLIDING else name_or_path
        return Path(str(resources.files("pose"))) / "models" / f"{stem}.safetensors"
    path = checked_path(name_or_path, "lifter")
    if not path.is_file():
        raise UsageError(f"lifter: {name_or_path} is neither a file nor one of {', '.join(SHIPPED)}")
    return path


def network_inputs(windows: list[Sequence2D]) -> Arrays:
    """Return the network inputs of equally long sequences by the names in `pose.lifting.config.WINDOW_INPUT_NAMES`."""
    seen = [to_h36m17(w.keypoints, w.scores, get_skeleton(w.skeleton)) for w in windows]
    arrays = (
        np.stack([keypoints for keypoints, _ in seen]),
        np.stack([scores for _, scores in seen]),
        np.stack([w.times for w in windows]).astype(np.float64),
        np.stack([w.camera.matrix for w in windows]).astype(np.float64),
        np.array([get_skeleton(w.skeleton).derived for w in windows]),
        np.array([w.camera.known for w in windows]),
    )
    return dict(zip(WINDOW_INPUT_NAMES, arrays, strict=True))


def padded_with_empty_frames(sequence: Sequence2D, count: int) -> Sequence2D:
    """Append `count` frames without detections, so that a stream with look-ahead returns all frames."""
    if not count:
        return sequence
    step = float(np.diff(sequence.times[-2:])[0]) if len(sequence) > 1 else 1 / 30
    return replace(
        sequence,
        keypoints=np.pad(sequence.keypoints, ((0, count), (0, 0), (0, 0))),
        scores=np.pad(sequence.scores, ((0, count), (0, 0))),
        times=np.append(sequence.times, sequence.times[-1] + step * np.arange(1, count + 1)),
    )


def join_outputs(lifted: "Lifted") -> F32:
    """Concatenate joints (m), root (m) and sigma (mm) to (B, T, 71), where 71 is 17 * 3 + 3 + 17."""
    parts = (lifted.joints.flatten(2), lifted.root, lifted.sigma)
    return np.concatenate([part.float().cpu().numpy() for part in parts], axis=-1)


def mirror_mean(plain: F32, mirrored: F32) -> F32:
    """Return the mean (..., 71) of two outputs, the second mirrored back; geometric for sigma."""
    back = mirrored[..., _MIRROR_ORDER] * _MIRROR_SIGNS
    mean: F32 = np.float32(0.5) * (plain + back)
    mean[..., 54:] = np.sqrt(plain[..., 54:] * back[..., 54:])
    return mean


def split_outputs(joined: F32) -> tuple[F32, F32, F32]:
    """Split outputs (T, D) of `join_outputs` into joints (T, 17, 3) m, root (T, 3) m and sigma (T, 17) mm."""
    t = len(joined)
    return joined[:, :51].reshape(t, 17, 3), joined[:, 51:54], joined[:, 54:]
