"""Events of a live run: people enter and leave, feet touch the floor, repetitions, postures and possible falls.

Posture and falls are simple rules on the rigid skeleton, not a medical device: a person lies if the trunk is more than
60 degrees from the vertical, and sits if both thighs are. A possible fall is a person who lies within 2 s of having
stood or sat, while the pelvis sank by at least 0.3 m; the flag stays until the person is upright again.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from pose.live.result import LiveResult, Stream
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64

ENTERED, LEFT, REPETITION, CONTACT, RELEASE, FALL = (
    "entered", "left", "repetition", "foot_contact", "foot_release", "possible_fall"
)  # fmt: skip
STANDING, SITTING, LYING = "standing", "sitting", "lying"
GONE_S = 1.0  # time without a pose after which a person has left
_CONTACT_ON, _CONTACT_OFF = 0.6, 0.4  # contact probabilities (hysteresis)
_TILT = np.cos(np.radians(60))  # cosine of the angle to the vertical above which a trunk or thigh counts as level
_FALL_S, _FALL_M = 2.0, 0.3  # longest duration and smallest descent of a fall
_HOLD_S = 0.3  # time for which a new posture must last


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """Something that happened in a frame."""

    kind: str  # 'entered', 'left', 'repetition', 'foot_contact', 'foot_release' or 'possible_fall'
    person: int  # id of the person
    detail: str = ""  # foot ('left', 'right') or name of the movement
    count: int = 0  # number of repetitions so far


@dataclass(slots=True)
class State:
    """State of one person between frames."""

    seen: float = 0.0  # time of the last pose, s
    feet: list[bool] = field(default_factory=lambda: [False, False])
    repetitions: int = 0
    posture: str = STANDING
    fallen: bool = False
    candidate: tuple[str, float] = (STANDING, 0.0)  # posture of the last frames and its begin, s
    upright_at: float = -np.inf  # time of the last frame that was not lying, s
    heights: deque[tuple[float, float]] = field(default_factory=deque)  # times and pelvis heights of the last 2 s


class EventWatch:
    """Detector of the events of one run."""

    def __init__(self) -> None:
        self._people: dict[int, State] = {}
        self._stream: Stream | None = None

    @property
    def present(self) -> frozenset[int]:
        """Ids of the people who are present."""
        return frozenset(self._people)

    def update(
        self, live: LiveResult, ids: list[int], joints: F64, contacts: F32 | None, rows: list[int]
    ) -> tuple[dict[int, State], tuple[LinkEvent, ...]]:
        """Process the people of the next frame, and return their states and the events.

        Args:
            ids: Ids of the n people with finite poses.
            joints: (n, 17, 3) m in file axes (y up).
            contacts: (P, 2) contact probabilities of all people of the frame; None if unknown.
            rows: Index of each of the n people in `contacts`.
        """
        time, events = live.result.time, []
        restarted = live.stream is not self._stream
        self._stream = live.stream
        gone = [one for one, state in self._people.items() if restarted or time - state.seen > GONE_S]
        for number in gone:
            del self._people[number]
            events.append(LinkEvent(LEFT, number))
        for at, number in enumerate(ids):
            state = self._people.get(number)
            if state is None:
                state = self._people[number] = State()
                events.append(LinkEvent(ENTERED, number))
            state.seen = time
            if contacts is not None:
                events += _foot_events(state, number, contacts[rows[at]])
            count = live.counts.get(number)
            if count is not None and count.count > state.repetitions:
                events.append(LinkEvent(REPETITION, number, count.movement, count.count))
            state.repetitions = 0 if count is None else count.count
            if _update_posture(state, joints[at], time):
                events.append(LinkEvent(FALL, number))
        return {number: self._people[number] for number in ids}, tuple(events)


def _foot_events(state: State, number: int, contacts: F32) -> list[LinkEvent]:
    events = []
    for foot, side in enumerate(("left", "right")):
        probability = float(contacts[foot])
        if not state.feet[foot] and probability > _CONTACT_ON:
            state.feet[foot] = True
            events.append(LinkEvent(CONTACT, number, side))
        elif state.feet[foot] and probability < _CONTACT_OFF:
            state.feet[foot] = False
            events.append(LinkEvent(RELEASE, number, side))
    return events


def posture_of(joints: F64) -> str:
    """Return 'standing', 'sitting' or 'lying' of one pose (17, 3) in file axes (y up)."""

    def level(start: str, end: str) -> bool:
        line = joints[H36M17.index(end)] - joints[H36M17.index(start)]
        return bool(abs(line[1]) < _TILT * np.linalg.norm(line))

    if level("pelvis", "thorax"):
        return LYING
    return SITTING if level("left_hip", "left_knee") and level("right_hip", "right_knee") else STANDING


def _update_posture(state: State, joints: F64, time: float) -> bool:
    """Update the posture of a person, and return whether a possible fall begins."""
    now, height = posture_of(joints), float(joints[H36M17.index("pelvis"), 1])
    while state.heights and time - state.heights[0][0] > _FALL_S + _HOLD_S:
        state.heights.popleft()
    state.heights.append((time, height))
    if now != state.candidate[0]:
        state.candidate = now, time
    if now != LYING:
        state.upright_at = time
    if now == state.posture or time - state.candidate[1] < _HOLD_S:
        return False
    state.posture, before = now, state.posture
    if now != LYING:
        state.fallen = False
        return False
    sank = max(one for _, one in state.heights) - height
    recently = state.candidate[1] - state.upright_at <= _FALL_S
    state.fallen = before != LYING and recently and sank >= _FALL_M
    return state.fallen
