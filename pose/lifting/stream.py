"""The streaming lifter: one frame in, one frame out, with constant cost and memory.

`LifterStream` keeps, for each person, the bounded caches of the layers and the features of the last frames. With a
causal network, its outputs equal those of the network on the whole sequence.

Each new pose is averaged with a prediction: the smoothed pose of the frame before, plus part of the motion between the
two frames before, which the window has already lifted again with later context (docs/studies/lifter-live.md).
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pose.lifting.format import TYPICAL_STEP
from pose.lifting.pending import PendingFrame, PersonFrame, RecentFrames, Refinements, take_finished
from pose.lifting.predict import Lifter
from pose.lifting.repair.person import PersonRepair
from pose.lifting.step_batch import PeopleState, StreamSettings, StreamState, gather
from pose.structures.camera import Camera
from pose.structures.defaults import MAX_TRACK_GAP_S
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F32, FrameResult, People

_SECONDS = 0.048  # the weight of the new pose is 1 - exp(-step / _SECONDS): 0.5 at 30 frames/s
_DAMPING = 0.5  # part of the latest refined motion that is expected to continue
_JOINTS = slice(0, 51)  # root-relative joints in an output (71,)


class Steady:
    """Smoothing filter for the newest poses of one person."""

    def __init__(self) -> None:
        self._before: F32 | None = None  # smoothed output of the frame before
        self._time = -math.inf

    def smooth(self, output: F32, state: StreamState, time: float) -> F32:
        """Return the output (71,) of a sliding window's newest frame, at `time` s, with smoothed joints."""
        result = output.copy()
        last, last_but_one = state.output_of(1), state.output_of(2)
        if self._before is not None and last is not None:
            motion = np.zeros_like(output) if last_but_one is None else last - last_but_one
            predicted = self._before + np.float32(_DAMPING) * motion
            share = np.float32(math.exp((self._time - time) / _SECONDS))
            result[_JOINTS] += share * (predicted - output)[_JOINTS]
        self._before, self._time = result, time
        return result


REFINE_DELAY_FRAMES = 9  # 0.3 s at 30 frames/s; later context hardly changes an output


class LifterStream:
    """Streaming lifter for any number of people, with a delay of `lookahead` frames.

    A sliding window lifts frames only at certain ages (`pose.lifting.sliding.AGES`), so its output is the estimate at
    the largest of these up to `lookahead`. An offline lifter is a ValueError.
    """

    def __init__(self, lifter: Lifter, skeleton: Skeleton, camera: Camera, lookahead: int = 0) -> None:
        if not lifter.streaming:
            raise ValueError(f"lifter: {lifter.name} processes whole windows and cannot stream")
        if lookahead < 0:
            raise ValueError(f"lookahead: must be at least 0 frames, got {lookahead}")
        supported = lifter.step.cache_layout.supported_lookahead(lookahead)
        self.lookahead, self.skeleton, self._extra_delay = lookahead, skeleton, lookahead - supported
        camera_inputs = {
            "intrinsics": camera.matrix,
            "derived": np.array(skeleton.derived),
            "intrinsics_known": np.array(camera.known),
        }
        self._settings = StreamSettings(lifter.step, supported, camera_inputs)

    @property
    def refines(self) -> bool:
        """Whether `StreamLifter` can improve poses after their look-ahead: for a sliding window with a look-ahead below
        `REFINE_DELAY_FRAMES` frames.
        """
        return self._settings.step.cache_layout.ages is not None and self.lookahead < REFINE_DELAY_FRAMES

    def refinement_ages(self, max_age: int) -> tuple[int, ...]:
        """Return the delays after which a pose is estimated again; ValueError if never, as by a causal network."""
        ages = self._settings.step.cache_layout.ages
        if ages is None:
            raise ValueError("refine: a causal network lifts each frame once; use the lifter sliding")
        return tuple(age for age in ages if age <= max_age)

    def new_person(self) -> StreamState:
        """Return the state of a person before the first frame."""
        return StreamState(PeopleState(self._settings, 1), 0)

    def step(self, people: Sequence[StreamState], keypoints: F32, scores: F32, time: float) -> list[F32 | None]:
        """Process the next frame; return each person's output (71,) of `lookahead` frames ago, or None."""
        if not people:
            return []
        keypoints, scores = to_h36m17(keypoints, scores, self.skeleton)
        state = gather(self._settings, people)
        ready = [person.ready for person in people]
        outputs = state.advance(keypoints, scores, time)
        valid_outputs = (output if known else None for output, known in zip(outputs, ready, strict=True))
        return [
            person.delay_output(output, self._extra_delay) for person, output in zip(people, valid_outputs, strict=True)
        ]


class StreamLifter:
    """Lifter stage for live pipelines, which runs a `LifterStream`. Follows `pose.structures.stages.LifterStage`.

    With `steady`, the newest poses of a sliding window without look-ahead are smoothed.

    Frames are returned with a delay of `lookahead` frames. A person who is not detected is kept for one second. Results
    contain the original keypoints, and flags that state whether repair swapped left and right limbs.
    """

    def __init__(self, stream: LifterStream, *, repair: bool = False, refine: int = 0, steady: bool = False) -> None:
        """Start without people; ValueError if the stream cannot be smoothed or refined."""
        if steady and (stream.lookahead or not stream.refines):
            raise ValueError("steady: smooths the newest poses of the lifter sliding, without look-ahead")
        self._stream, self._repair, self._steady = stream, repair, steady
        self._refined = Refinements(stream.refinement_ages(refine)[-1]) if refine else None
        self._people: dict[int, _LivePerson] = {}
        self._pending: deque[PendingFrame] = deque()
        self._step = TYPICAL_STEP
        self._time = -np.inf

    def push(self, people: People) -> list[FrameResult]:
        """Add a frame; returns the frames that are complete now, oldest first."""
        ended: list[FrameResult] = []
        if people.time - self._time > MAX_TRACK_GAP_S:  # after a long gap in the stream, start again without people
            ended = self.flush()
            self._people = {}
        elif self._pending:
            self._step = people.time - self._time
        self._time = people.time
        frame = PendingFrame(people)
        self._pending.append(frame)
        refined = self._refined.push(people) if self._refined else None
        for person in people.ids.tolist():
            if person not in self._people:
                repair = PersonRepair(self._stream.skeleton, lookahead=0.0) if self._repair else None
                self._people[person] = _LivePerson(self._stream.new_person(), repair)
        self._advance(people, frame, refined)
        return ended + take_finished(self._pending)

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns each frame again with its improved pose."""
        return self._refined is not None

    def take_refined(self) -> list[FrameResult]:
        """Return the refined frames that became final since the last call, oldest first; all after `flush`."""
        return self._refined.take() if self._refined else []

    def flush(self) -> list[FrameResult]:
        """Return the frames that still wait after the end of the source."""
        results: list[FrameResult] = []
        if self._pending:
            last = self._pending[-1].people
            for ahead in range(1, self._stream.lookahead + 1):
                self._advance(empty_frame(last, last.time + ahead * self._step), None)
                results += take_finished(self._pending)
        if self._refined:
            self._refined.end()
        return results

    def _advance(self, people: People, frame: PendingFrame | None, refined: PendingFrame | None = None) -> None:
        """Run one step for all people, missing ones with score 0, and store the outputs in the waiting frames."""
        rows = {person: row for row, person in enumerate(people.ids.tolist())}
        keypoints = np.zeros((len(self._people), *people.keypoints.shape[1:]), np.float32)
        scores = np.zeros(keypoints.shape[:2], np.float32)
        for slot, (person, live) in enumerate(self._people.items()):
            person_frame = None
            if frame is not None and person in rows:
                person_frame = live.add_detection(PersonFrame.of(frame, rows[person]))
                keypoints[slot], scores[slot] = person_frame.keypoints, person_frame.scores
            live.waiting.append(person_frame)
        if not self._people:
            return
        states = [live.state for live in self._people.values()]
        outputs = self._stream.step(states, keypoints, scores, people.time)
        if self._refined and refined:
            ages = self._stream.refinement_ages(self._refined.delay)
            for live in self._people.values():
                newest = live.waiting[-1]
                refined_frame = None if newest is None else replace(newest, pending=refined)
                live.recent.add(refined_frame, live.state, ages)
        for live, output in zip(self._people.values(), outputs, strict=True):
            if output is not None and (person_frame := live.waiting.popleft()) is not None:
                person_frame.lifted = live.steady.smooth(output, live.state, people.time) if self._steady else output
                person_frame.store_output()
        oldest = people.time - MAX_TRACK_GAP_S
        self._people = {
            person: live for person, live in self._people.items() if live.last_seen >= oldest or any(live.waiting)
        }


@dataclass(slots=True)
class _LivePerson:
    """State of a person in the stream: network state, and the frames (None if missing) that wait for an output."""

    state: StreamState  # state of the network for the person
    repair: PersonRepair | None  # repair of the person's 2D; None if disabled
    waiting: deque[PersonFrame | None] = field(default_factory=deque)  # frames that wait for their output
    recent: RecentFrames = field(default_factory=RecentFrames)  # frames whose poses a sliding window may still improve
    steady: Steady = field(default_factory=Steady)  # filter of the newest poses
    last_seen: float = 0.0  # time of the last detection, s

    def add_detection(self, frame: PersonFrame) -> PersonFrame:
        """Add the next frame in which the person is detected; returns it repaired."""
        self.last_seen = frame.time
        if self.repair is not None:
            self.repair.push(frame.keypoints, frame.scores, frame.time)
            ((frame.keypoints, frame.scores, frame.swapped),) = self.repair.take(frame.time)
        return frame


def empty_frame(template: People, time: float) -> People:
    """Return a frame at `time` (s) without people, with the skeleton of `template`."""
    none = slice(0, 0)
    return People(
        template.index,
        time,
        template.ids[none],
        template.boxes[none],
        template.box_scores[none],
        template.keypoints[none],
        template.scores[none],
    )
