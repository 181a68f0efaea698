"""The streaming lifter: one frame in, one frame out, at constant cost and memory for as long as the stream lasts.

`LifterStream` holds what the network still sees of a number of people: the bounded caches of its attention layers and,
for a look-ahead, the last few observations. It answers what the causal network answers for the whole sequence at once.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from pose.attention import Context, KVCache
from pose.geometry import intrinsics_from_fov
from pose.lifter.features import Observations, decode, observe
from pose.lifter.model import streaming_token
from pose.lifter.pending import LONGEST_GAP_SECONDS, PendingFrame, take_finished
from pose.lifter.predict import Lifter, join_outputs
from pose.skeletons import Skeleton, to_h36m17
from pose.types import F32, FrameResult, People

_TYPICAL_STEP = 1 / 30


@dataclass(slots=True)
class PersonState:
    """What the network still sees of one person.

    caches: one a layer. recent: observations and times of the last frames, the asked-for one first. last_seen:
    keypoints (17, 2) and scores (17,) of the newest frame that saw something (of the first frame, until one does).
    time: of the newest frame.
    """

    caches: list[KVCache]
    recent: deque[tuple[Observations, float]]
    last_seen: tuple[F32, F32] | None = None
    time: float = 0.0


class LifterStream:
    """Steps a streaming `Lifter` for any number of people.

    skeleton: of the keypoints. image_size: (width, height) px. intrinsics: (3, 3) px, None if unknown. lookahead: how
    many frames later a frame is answered. Raises ValueError for an offline lifter.
    """

    def __init__(
        self,
        lifter: Lifter,
        skeleton: Skeleton,
        image_size: tuple[int, int],
        intrinsics: NDArray[np.float64] | None = None,
        lookahead: int = 0,
    ) -> None:
        if not lifter.streaming:
            raise ValueError(f"lifter: {lifter.name} sees whole windows and cannot stream")
        if lookahead < 0:
            raise ValueError(f"lookahead: must be at least 0 frames, got {lookahead}")
        self.lookahead, self._network, self._skeleton = lookahead, lifter.network, skeleton
        self._known = intrinsics is not None
        camera = intrinsics_from_fov(image_size) if intrinsics is None else intrinsics
        self._camera = torch.from_numpy(np.asarray(camera, np.float64))[None]

    def new_person(self) -> PersonState:
        """The state of somebody of whom nothing is known yet."""
        return PersonState(self._network.init_caches(1), deque(maxlen=self.lookahead + 1))

    @torch.inference_mode()
    def step(self, people: Sequence[PersonState], keypoints: F32, scores: F32, time: float) -> list[F32 | None]:
        """The next frame of some people: keypoints (P, J, 2) px and scores (P, J) at `time` s.

        Returns for each person the answer (71,), see `split_outputs`, for the frame `lookahead` frames ago; None while
        the person has not been there for so long. Score 0 in all joints: the person was not seen.
        """
        keypoints, scores = to_h36m17(keypoints, scores, self._skeleton)
        self._observe(people, keypoints, scores, time)
        ready = [person for person in people if len(person.recent) > self.lookahead]
        answers = iter(self._answer(ready, time)) if ready else iter(())
        return [next(answers) if len(person.recent) > self.lookahead else None for person in people]

    def _observe(self, people: Sequence[PersonState], keypoints: F32, scores: F32, time: float) -> None:
        """Append what the frame shows to each person's `recent`."""
        before = []
        for person, xy, score in zip(people, keypoints, scores, strict=True):
            if person.last_seen is None:
                person.last_seen, person.time = (xy, score), time - _TYPICAL_STEP
            before.append((*person.last_seen, person.time))
            if (score > 0).any():
                person.last_seen = (xy, score)
            person.time = time
        count = len(people)
        observations = observe(
            torch.from_numpy(np.stack([np.stack([b[0] for b in before]), keypoints], axis=1)),
            torch.from_numpy(np.stack([np.stack([b[1] for b in before]), scores], axis=1)),
            torch.tensor([[b[2], time] for b in before], dtype=torch.float64),
            self._camera.expand(count, 3, 3),
            torch.full((count,), self._skeleton.derived),
            torch.full((count,), self._known),
        )
        newest = observations.frames(slice(1, 2))
        for row, person in enumerate(people):
            person.recent.append((newest.sequences(slice(row, row + 1)), time))

    def _answer(self, people: Sequence[PersonState], time: float) -> F32:
        newest = Observations.concatenate([person.recent[-1][0] for person in people])
        target = Observations.concatenate([person.recent[0][0] for person in people])
        delay = torch.tensor([[time - person.recent[0][1]] for person in people], dtype=torch.float64)
        context = Context.from_times(torch.full((len(people), 1), time, dtype=torch.float64), self._network.head_dim)
        caches = [join_caches(layer) for layer in zip(*(person.caches for person in people), strict=True)]
        outputs, caches = self._network.step(streaming_token(newest.features, target.features, delay), context, caches)
        for row, person in enumerate(people):
            person.caches = [KVCache(*(part[row : row + 1] for part in cache)) for cache in caches]
        return join_outputs(decode(outputs, target, self._network.sigma_scale))[:, 0]


def join_caches(caches: Sequence[KVCache]) -> KVCache:
    """One cache for several people, from one each."""
    return caches[0] if len(caches) == 1 else KVCache(*(torch.cat(parts) for parts in zip(*caches, strict=True)))


class StreamLifter:
    """`pose.stages.LifterStage` over a `LifterStream`: what a live pipeline lifts with.

    A frame is answered `lookahead` frames later. Somebody who is away for a moment stays in mind, unseen, and is
    forgotten after a second.
    """

    def __init__(self, stream: LifterStream) -> None:
        self._stream = stream
        self._people: dict[int, _Live] = {}
        self._pending: deque[PendingFrame] = deque()
        self._step = _TYPICAL_STEP

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are answered now, oldest first."""
        if self._pending:
            self._step = people.time - self._pending[-1].people.time
        frame = PendingFrame(people)
        self._pending.append(frame)
        for person in people.ids.tolist():
            self._people.setdefault(person, _Live(self._stream.new_person()))
        self._advance(people, frame)
        return take_finished(self._pending)

    def flush(self) -> list[FrameResult]:
        """The source has ended: return the frames that still wait, answered from what was seen."""
        results: list[FrameResult] = []
        if self._pending:
            last = self._pending[-1].people
            for ahead in range(1, self._stream.lookahead + 1):
                self._advance(nobody(last, last.time + ahead * self._step), None)
                results += take_finished(self._pending)
        return results

    def _advance(self, people: People, frame: PendingFrame | None) -> None:
        """Step everybody in mind, those who are not in the frame as unseen, and hand out the answers."""
        rows = {person: row for row, person in enumerate(people.ids.tolist())}
        keypoints = np.zeros((len(self._people), *people.keypoints.shape[1:]), np.float32)
        scores = np.zeros(keypoints.shape[:2], np.float32)
        for slot, (person, live) in enumerate(self._people.items()):
            if person in rows:
                keypoints[slot], scores[slot] = people.keypoints[rows[person]], people.scores[rows[person]]
                live.seen = people.time
            live.asked.append((frame, rows[person]) if frame and person in rows else None)
        if not self._people:
            return
        states = [live.state for live in self._people.values()]
        answers = self._stream.step(states, keypoints, scores, people.time)
        for live, answer in zip(self._people.values(), answers, strict=True):
            if answer is not None and (asked := live.asked.popleft()) is not None:
                asked[0].answer(asked[1], answer)
        oldest = people.time - LONGEST_GAP_SECONDS
        self._people = {person: live for person, live in self._people.items() if live.seen >= oldest or any(live.asked)}


@dataclass(slots=True)
class _Live:
    """Somebody in mind: what the network sees of them, the frames that wait for an answer, when they were last seen."""

    state: PersonState
    asked: deque[tuple[PendingFrame, int] | None] = field(default_factory=deque)
    seen: float = 0.0


def nobody(like: People, time: float) -> People:
    """A frame at `time` in which nobody is seen, with the skeleton of another."""
    none = slice(0, 0)
    return People(
        like.index,
        time,
        like.ids[none],
        like.boxes[none],
        like.box_scores[none],
        like.keypoints[none],
        like.scores[none],
    )
