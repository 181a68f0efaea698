"""Frames for links: people as rigid skeletons with confidences, fingers and faces, and the events of the frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pose.body.fingers import hand_quaternions
from pose.body.fitted_bodies import hands_in
from pose.body.joint_angles import NAMES as ANGLE_NAMES
from pose.body.joint_angles import joint_angles
from pose.body.skeleton import NAMES, PARENTS
from pose.body.space import CAMERA_SPACE
from pose.live.links.events import EventWatch, LinkEvent
from pose.live.result import LiveResult
from pose.live.rigid import RigidBodies
from pose.structures.defaults import CAMERA
from pose.structures.face_points import MEASURES, measures
from pose.structures.skeletons import H36M17, to_h36m17
from pose.structures.types import F32, F64

FOREARMS = tuple(PARENTS[NAMES.index(f"{side}_wrist")] for side in ("left", "right"))


@dataclass(frozen=True, eq=False)
class LinkPerson:
    """One person of a frame, in file axes (y up, right-handed; m), as in exported files."""

    id: int
    slot: int  # smallest number, from 0, that no other present person has; kept while the person is present
    row: int  # index in the arrays of the frame
    observed: F64  # (17, 3) joints before the fit of the rigid skeleton, in the order of `H36M17`
    joints: F64  # (17, 3) joints of the rigid skeleton, in the order of `H36M17`
    scores: F32  # (17,) confidence of the joints
    sigma: F32  # (17,) mm, radius that contains the joint with a probability of 68 %
    root: F64  # (3,) position of the pelvis
    offsets: F64  # (17, 3) from the parent to each joint in the T-pose, in the order of `pose.body.skeleton.NAMES`
    local: F64  # (17, 4) quaternions (w, x, y, z) relative to the parents, in that order
    rotations: F64  # (17, 4) quaternions in file axes, in that order
    points: F64  # (17, 3) joints of the rigid skeleton, in that order
    hands: F64 | None  # (2, 21, 3) points of both hands, NaN for undetected ones; None without hands
    face: Mapping[str, float] | None  # `pose.structures.face_points.MEASURES`; None without a detected face
    contacts: F32 | None  # (2,) contact probability of the left and right foot; None in camera coordinates
    height: float | None  # body height, m; None if unknown
    movement: str  # name of the repeated movement; empty without one
    repetitions: int  # number of complete repetitions
    posture: str  # 'standing', 'sitting', 'lying'
    fallen: bool  # whether the person lies down after a fast descent (`pose.live.links.events`)
    up: F64  # (3,) vertical in file axes

    @cached_property
    def angles(self) -> dict[str, float]:
        """Joint angles in degrees by name, as in exported tables."""
        found = joint_angles(self.observed[None], self.sigma[None].astype(np.float64), self.up)
        return dict(zip(ANGLE_NAMES, found.degrees[0].tolist(), strict=True))

    @cached_property
    def fingers(self) -> F64 | None:
        """Quaternions (2, 16, 4) of wrist and fingers relative to the parents, NaN for undetected hands."""
        if self.hands is None:
            return None
        quaternions: F64 = hand_quaternions(self.hands[None], self.rotations[None, FOREARMS])[0]
        return quaternions


@dataclass(frozen=True, eq=False)
class LinkFrame:
    """A frame for links."""

    live: LiveResult  # the result, with image and 2D keypoints
    space: str  # 'world' or 'camera': the space of the people's joints
    people: tuple[LinkPerson, ...]
    events: tuple[LinkEvent, ...]

    @property
    def camera(self) -> tuple[F64, F64]:
        """Rotation (3, 3) from camera axes (x right, y down, z forward) to file axes, and position (3,) m."""
        if self.space == CAMERA or self.live.world is None:
            return CAMERA_SPACE.rotation, np.zeros(3)
        world, view = self.live.world.world, self.live.result.view
        position = np.array([0.0, -world.floor, 0.0])
        if view is not None and view.position is not None:
            position += world.rotation @ view.rotation.T @ view.position
        return world.rotation, position

    @property
    def time(self) -> float:
        """Time of the frame in the source, s."""
        return self.live.result.time

    @property
    def captured(self) -> float:
        """Capture time in s on the clock of `time.monotonic`."""
        return self.live.captured


class FrameBuilder:
    """Converter of the results of one run to frames, in order."""

    def __init__(self) -> None:
        self._bodies = RigidBodies()
        self._watch = EventWatch()
        self._slots: dict[int, int] = {}

    def build(self, live: LiveResult) -> LinkFrame:
        """Return the frame of the next result."""
        rigid = self._bodies.of(live)
        result, people = live.result, live.result.people
        rows = rigid.rows.tolist()
        ids = people.ids[rigid.rows].tolist()
        if result.poses.seen_by.any():
            scores = (result.poses.seen_by > 0).astype(np.float32)
        else:
            scores = to_h36m17(people.keypoints, people.scores, live.skeleton)[1]
        contacts = None if result.placed is None else result.placed.contacts
        states, events = self._watch.update(live, ids, rigid.joints(), contacts, rows)
        self._assign_slots(self._watch.present)
        up = np.array([0.0, 1.0, 0.0])
        joints = rigid.joints()
        faces, heights = _faces(live), {} if live.world is None else live.world.heights
        found = []
        for at, (row, number) in enumerate(zip(rows, ids, strict=True)):
            count, state = live.counts.get(number), states[number]
            found.append(
                LinkPerson(
                    number, self._slots[number], row, rigid.observed[at], joints[at], scores[row],
                    result.poses.sigma[row], rigid.motion.root[at], rigid.offsets[at], rigid.motion.quaternions[at],
                    rigid.rotations[at], rigid.points[at], _hands(live, row, rigid.observed[at]), faces.get(row),
                    None if contacts is None else contacts[row], heights.get(number, (None,))[0],
                    "" if count is None else count.movement, 0 if count is None else count.count, state.posture,
                    state.fallen, up,
                )
            )  # fmt: skip
        return LinkFrame(live, rigid.space, tuple(found), events)

    def _assign_slots(self, present: frozenset[int]) -> None:
        """Give each present person the smallest free slot, and free those of people who left."""
        self._slots = {number: slot for number, slot in self._slots.items() if number in present}
        for number in sorted(present - self._slots.keys()):
            used = set(self._slots.values())
            self._slots[number] = next(slot for slot in range(len(used) + 1) if slot not in used)


def _faces(live: LiveResult) -> dict[int, dict[str, float]]:
    """Return the measures of the detected faces by index of the person in the frame."""
    faces = live.result.people.faces
    if faces is None:
        return {}
    rows = np.flatnonzero(faces.detected)
    values = measures(faces.points[rows])
    return {int(row): dict(zip(MEASURES, one, strict=True)) for row, one in zip(rows, values.tolist(), strict=True)}


def _hands(live: LiveResult, row: int, observed: F64) -> F64 | None:
    """Return the hand points (2, 21, 3) of a person in file axes, at the observed wrists; None without hands."""
    result = live.result
    if result.people.hands is None:
        return None
    joints = (result.poses.joints[row] + result.poses.root[row])[None]
    hands = hands_in([(result, row)], joints)
    if hands is None:
        return None
    wrists = [H36M17.index(f"{side}_wrist") for side in ("left", "right")]
    points = hands[0] - hands[0][:, :1]
    if live.world is not None and result.placed is not None:
        # From the camera's file axes (x, -y, -z) through its own axes to the world.
        points = (points * (1, -1, -1)) @ live.world.world.rotation.T
    placed: F64 = points + observed[wrists][:, None]
    return placed
