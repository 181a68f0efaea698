"""Rigid skeletons of the people of a live run: constant bone lengths so far, and rotations of the bones."""

from dataclasses import dataclass, field

import numpy as np

from pose.body.skeleton import ORDER, Body, SkeletonMotion, fit_body, forward_kinematics, solve
from pose.body.space import CAMERA_SPACE
from pose.live.result import LiveResult, Stream
from pose.structures.defaults import CAMERA, WORLD
from pose.structures.types import F64, I64, FrameResult

_FITTED_AT = (1, 4, 16, 64, 256)  # numbers of frames after which the bone lengths are computed again
_MAX_PEOPLE = 64  # number of people whose bone lengths are kept; those seen last


@dataclass(frozen=True, slots=True, eq=False)
class RigidFrame:
    """The n people of a frame with finite poses, as rigid skeletons in file axes (y up, right-handed), m."""

    space: str  # 'world' (floor at y = 0) or 'camera' (x right, y up, z towards the camera)
    rows: I64  # (n,) index of each person in the arrays of the frame
    observed: F64  # (n, 17, 3) joints before the fit, in the order of `H36M17`
    offsets: F64  # (n, 17, 3) vectors from the parent to each joint in the T-pose, in the order of `NAMES`
    motion: SkeletonMotion  # positions of the pelvis (n, 3) and local quaternions (n, 17, 4), in the order of `NAMES`
    points: F64  # (n, 17, 3) joints of the rigid skeletons, in the order of `NAMES`
    rotations: F64  # (n, 17, 4) quaternions (w, x, y, z) of the joints in file axes, in the order of `NAMES`

    def joints(self) -> F64:
        """Return the joints (n, 17, 3) of the rigid skeletons in the order of `H36M17`."""
        placed = np.empty_like(self.points)
        placed[:, ORDER] = self.points
        return placed


@dataclass(slots=True)
class _Person:
    poses: list[F64] = field(default_factory=list)
    count: int = 0
    body: Body | None = None


class RigidBodies:
    """Rigid skeletons of the people of a live run, whose bone lengths are the medians of up to 256 frames."""

    def __init__(self) -> None:
        self._people: dict[int, _Person] = {}
        self._stream: Stream | None = None

    def of(self, live: LiveResult) -> RigidFrame:
        """Add the frame and return the rigid skeletons of its people."""
        if live.stream is not self._stream:  # ids restart
            self._stream, self._people = live.stream, {}
        space, joints = file_joints(live.result)
        rows = np.flatnonzero(np.isfinite(joints).all(axis=(1, 2)))
        observed = joints[rows]
        bodies = [self._body(int(live.result.people.ids[row]), joints[row]) for row in rows.tolist()]
        offsets = np.stack([body.offsets for body in bodies]) if bodies else np.zeros((0, 17, 3))
        # All people in one call: the joint is the first axis of the lengths, the person the second.
        body = Body(offsets.swapaxes(0, 1), np.zeros_like(offsets).swapaxes(0, 1))
        motion = solve(observed, body)
        points, rotations = forward_kinematics(body, motion)
        return RigidFrame(space, rows, observed, offsets, motion, points, rotations)

    def _body(self, number: int, joints: F64) -> Body:
        person = self._people.pop(number, None) or _Person()
        self._people[number] = person  # the last seen person is the last one
        for oldest in list(self._people)[:-_MAX_PEOPLE]:
            del self._people[oldest]
        if person.count < _FITTED_AT[-1]:
            person.count += 1
            person.poses.append(joints[None])
            if person.count in _FITTED_AT:
                person.body = fit_body(person.poses)
                if person.count == _FITTED_AT[-1]:
                    person.poses = []
        assert person.body is not None
        return person.body


def file_joints(result: FrameResult) -> tuple[str, F64]:
    """Return the space, 'world' or 'camera', and the joints (P, 17, 3) m in its file axes (y up)."""
    if result.placed is not None:
        return WORLD, result.placed.joints.astype(np.float64)
    joints = (result.poses.joints + result.poses.root[:, None]).astype(np.float64)
    return CAMERA, CAMERA_SPACE.to_file(joints)
