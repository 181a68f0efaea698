"""Lift whole sequences: overlapping windows of an offline network, blended so that there are no seams.

Windows start every `HOP` frames. Where two overlap, the earlier fades out while the later fades in, so every frame is
answered with plenty of context on both sides, and only a long sequence's first and last frames lack one of them. Each
window is lifted together with its mirror image, and the two answers are averaged: what the network gets wrong in one
of them only, above all in depth, halves. A streaming network needs no windows: it runs once over the whole sequence,
as it would live.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.incoming import check_units
from pose.lifter.backends import Arrays
from pose.lifter.format import WINDOW_SEEN
from pose.lifter.step_batch import PeopleState, Setting, Step
from pose.sequences import Sequence2D, Sequence3D, mirror_picture
from pose.skeletons import H36M17, get_skeleton, to_h36m17
from pose.types import F32

if TYPE_CHECKING:
    from pose.lifter.features import Lifted

SLIDING = "sliding"  # the weights of `offline` as a stream (`pose.lifter.sliding`)
SHIPPED = ("offline", "stream", SLIDING)
WINDOW = 81
HOP = 63
CHUNK = 64  # windows a forward pass


# Of joined outputs: where left and right trade places, and the coordinates that a mirror turns round.
_FLIP = np.array(H36M17.flip_order)
_MIRROR_ORDER = np.concatenate([(3 * _FLIP[:, None] + np.arange(3)).ravel(), np.arange(51, 54), 54 + _FLIP])
_MIRROR_SIGNS = np.concatenate([np.tile([-1, 1, 1], 18), np.ones(17)]).astype(np.float32)


class Lifter(ABC):
    """A trained network that takes and returns arrays. sha256, path: of its checkpoint, if it has one.

    streaming: it steps frame by frame, as a causal network or by a window that slides. `OnnxLifter` and `TorchLifter`
    differ in what computes.
    """

    name: str
    sha256: str
    path: Path | None
    streaming: bool

    @property
    @abstractmethod
    def step(self) -> Step:
        """One frame of a stream. Raises ValueError for an offline network."""

    @abstractmethod
    def forward(self, windows: list[Sequence2D], lookahead: int = 0) -> list[F32]:
        """One pass of the network over sequences of one length T: (T - lookahead, 71) each, see `split_outputs`."""

    def forward_mirrored(self, windows: list[Sequence2D]) -> list[F32]:
        """Like `forward`, of an offline network: the mean of the answers for the windows and for their mirrors."""
        answers = self.forward([*windows, *map(mirror_picture, windows)])
        plain, turned = answers[: len(windows)], answers[len(windows) :]
        return [mirror_mean(one, other) for one, other in zip(plain, turned, strict=True)]

    def lift(self, sequence: Sequence2D, lookahead: int = 0) -> Sequence3D:
        """3D for every frame of one person. lookahead: frames, for a streaming network only.

        Raises ValueError for keypoints that are not in px; warns where units look wrong (`pose.incoming.check_units`).
        """
        check_units(sequence.keypoints, sequence.scores, sequence.times, sequence.camera.size)
        return self.lift_many([sequence], lookahead)[0]

    def lift_many(self, sequences: list[Sequence2D], lookahead: int = 0, *, mirrored: bool = True) -> list[Sequence3D]:
        """Like `lift`, with the windows of all sequences in as few forward passes as possible.

        mirrored: whether an offline network also sees each window's mirror image; a streaming one never does.
        """
        if self.streaming:
            return [self._lift_whole(sequence, lookahead) for sequence in sequences]
        if lookahead:
            raise ValueError(f"lookahead: the lifter {self.name} sees whole windows; use a streaming one")
        spans = [(i, start, stop) for i, s in enumerate(sequences) for start, stop in window_spans(len(s))]
        blends = [Blend(len(sequence)) for sequence in sequences]
        for length in sorted({stop - start for _, start, stop in spans}):
            alike = [span for span in spans if span[2] - span[1] == length]
            for first in range(0, len(alike), CHUNK):
                chunk = alike[first : first + CHUNK]
                windows = [sequences[i][start:stop] for i, start, stop in chunk]
                answers = self.forward_mirrored(windows) if mirrored else self.forward(windows)
                for (i, start, _), answer in zip(chunk, answers, strict=True):
                    blends[i].add(start, answer)
        return [
            Sequence3D(*split_outputs(blend.take(len(sequence))), times=sequence.times)
            for blend, sequence in zip(blends, sequences, strict=True)
        ]

    def stepped(self, window: Sequence2D, lookahead: int) -> F32:
        """(T - lookahead, 71): the answers of a stream over a sequence, one step a frame."""
        seen = {name: array[0] for name, array in network_inputs([window]).items()}
        keypoints, scores, times = (seen.pop(name) for name in ("keypoints", "scores", "times"))
        person = PeopleState(Setting(self.step, lookahead, seen), 1)
        answers = [person.advance(*frame)[0] for frame in zip(keypoints, scores, times.tolist(), strict=True)]
        return np.stack(answers[lookahead:])

    def _lift_whole(self, sequence: Sequence2D, lookahead: int) -> Sequence3D:
        lookahead = self.step.memory.lookahead(lookahead)
        answer = self.forward([followed_by_nothing(sequence, lookahead)], lookahead)[0]
        return Sequence3D(*split_outputs(answer), times=sequence.times)


def checkpoint_path(name_or_path: str | Path) -> Path:
    """The file of a shipped lifter (`offline`, `stream`, `sliding`) or of the user's own.

    Raises UsageError when there is none.
    """
    if str(name_or_path) in SHIPPED:
        stem = "offline" if str(name_or_path) == SLIDING else name_or_path
        return Path(str(resources.files("pose"))) / "models" / f"{stem}.safetensors"
    path = Path(name_or_path)
    if not path.is_file():
        raise UsageError(f"lifter: {name_or_path} is neither a file nor one of {', '.join(SHIPPED)}")
    return path


def network_inputs(windows: list[Sequence2D]) -> Arrays:
    """What a network sees of sequences of one length T, by the names of `pose.lifter.format.WINDOW_SEEN`."""
    seen = [to_h36m17(w.keypoints, w.scores, get_skeleton(w.skeleton)) for w in windows]
    arrays = (
        np.stack([keypoints for keypoints, _ in seen]),
        np.stack([scores for _, scores in seen]),
        np.stack([w.times for w in windows]).astype(np.float64),
        np.stack([w.camera.matrix for w in windows]).astype(np.float64),
        np.array([get_skeleton(w.skeleton).derived for w in windows]),
        np.array([w.camera.known for w in windows]),
    )
    return dict(zip(WINDOW_SEEN, arrays, strict=True))


def followed_by_nothing(sequence: Sequence2D, count: int) -> Sequence2D:
    """The sequence with `count` frames more that see nothing, as a stream with look-ahead is flushed at its end."""
    if not count:
        return sequence
    step = float(np.diff(sequence.times[-2:])[0]) if len(sequence) > 1 else 1 / 30
    return replace(
        sequence,
        keypoints=np.pad(sequence.keypoints, ((0, count), (0, 0), (0, 0))),
        scores=np.pad(sequence.scores, ((0, count), (0, 0))),
        times=np.append(sequence.times, sequence.times[-1] + step * np.arange(1, count + 1)),
    )


def window_spans(length: int) -> list[tuple[int, int]]:
    """The (start, stop) of the windows that cover `length` frames: every HOP frames until one reaches the end."""
    spans = [(0, min(WINDOW, length))]
    while spans[-1][1] < length:
        start = spans[-1][0] + HOP
        spans.append((start, min(start + WINDOW, length)))
    return spans


def fade(length: int, first: bool) -> NDArray[np.float64]:
    """Weights of a window's frames: rising over the overlap with the window before, falling over the one after.

    They are only ever used relative to those of the windows that overlap, so the last window may fall as well.
    """
    overlap = WINDOW - HOP
    ramp = (np.arange(overlap) + 0.5) / overlap
    weights = np.ones(length)
    if not first:
        n = min(overlap, length)
        weights[:n] = ramp[:n]
    falling = length - HOP
    if falling > 0:
        weights[HOP:] *= ramp[::-1][:falling]
    return weights


class Blend:
    """Weighted sum of windows over the frames not yet taken. Frames are (T, D)."""

    def __init__(self, capacity: int = WINDOW + HOP) -> None:
        self._sum = np.zeros((capacity, 17 * 4 + 3))
        self._weight = np.zeros((capacity, 1))
        self._first = 0

    def add(self, start: int, answer: F32) -> None:
        """One window's answer, whose first frame is frame `start` of the sequence."""
        weights = fade(len(answer), first=start == 0)[:, None]
        rows = slice(start - self._first, start - self._first + len(answer))
        self._sum[rows] += weights * answer
        self._weight[rows] += weights

    def take(self, count: int) -> F32:
        """The next `count` frames, which no later window will touch."""
        taken = (self._sum[:count] / self._weight[:count]).astype(np.float32)
        for array in (self._sum, self._weight):
            array[: -count or None] = array[count:]
            array[len(array) - count :] = 0
        self._first += count
        return taken


def join_outputs(lifted: "Lifted") -> F32:
    """(B, T, 17 * 3 + 3 + 17): joints (m), root (m) and sigma (mm) side by side."""
    parts = (lifted.joints.flatten(2), lifted.root, lifted.sigma)
    return np.concatenate([part.float().cpu().numpy() for part in parts], axis=-1)


def mirror_mean(plain: F32, turned: F32) -> F32:
    """(..., D): the mean of what a network says of a picture and, turned back, of its mirror image. Of sigma the
    geometric one: sigma is calibrated by its logarithm, which an arithmetic mean would not keep."""
    back = turned[..., _MIRROR_ORDER] * _MIRROR_SIGNS
    mean: F32 = np.float32(0.5) * (plain + back)
    mean[..., 54:] = np.sqrt(plain[..., 54:] * back[..., 54:])
    return mean


def split_outputs(joined: F32) -> tuple[F32, F32, F32]:
    """The inverse of `join_outputs` for (T, D): joints (T, 17, 3), root (T, 3), sigma (T, 17)."""
    t = len(joined)
    return joined[:, :51].reshape(t, 17, 3), joined[:, 51:54], joined[:, 54:]
