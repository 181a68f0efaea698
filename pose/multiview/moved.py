"""Detection of cameras that were rotated after their calibration, from the people they see."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview import residuals as r
from pose.multiview.bundle import BodyUnknowns, BundleAdjustment, Freedom, start_body
from pose.multiview.calibrate import start_points
from pose.multiview.camera_batch import CameraBatch
from pose.multiview.observations import knots_of, observe
from pose.multiview.types import ViewCamera, ViewTrack
from pose.multiview.windows import MAX_ROUGH_KNOTS, calibration_windows, is_shared

MIN_DEGREES = 1.5  # minimum rotation that is reported
MIN_DEVIATIONS = 5.0  # minimum rotation in standard deviations; large, because 2D errors are correlated over time
STEPS = 6  # iterations of the bundle adjustment per camera


@dataclass(frozen=True, slots=True)
class CameraRotation:
    """Rotation of a camera about its centre that fits the people best."""

    degrees: float  # angle of the rotation
    deviation: float  # standard deviation of the angle in degrees, for independent residuals
    gain: float  # decrease of the cost of bundle adjustment by this rotation


def camera_rotations(people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera]) -> list[CameraRotation]:
    """Return the best-fitting rotation of each camera while all other cameras are fixed."""
    seen = [
        observe(tracks, cameras, knots_of(tracks, cameras, grid), width=0.03)
        for grid in calibration_windows(people, cameras, MAX_ROUGH_KNOTS)
        for tracks in people
        if is_shared(tracks, cameras, grid)
    ]
    bodies = [start_body(start_points(item, CameraBatch.of(cameras))) for item in seen]
    fixed = BundleAdjustment(seen, _only_rotation(len(cameras), None)).solve(
        cameras, bodies, iterations=15, tolerance=1e-3
    )
    rotations = []
    for index, camera in enumerate(cameras):
        # With the origin of the world at the camera's centre, a rotation does not move the centre.
        moved = [replace(item, translation=item.rotation @ camera.position + item.translation) for item in cameras]
        shifted_bodies = [BodyUnknowns(body.points - camera.position, body.bones) for body in fixed.bodies]
        bundle = BundleAdjustment(seen, _only_rotation(len(cameras), index))
        solution = bundle.solve(moved, shifted_bodies, STEPS, tolerance=1e-3, covariance=True)
        cosine = (np.trace(solution.cameras[index].rotation @ camera.rotation.T) - 1) / 2
        deviation = math.degrees(float(np.linalg.norm(solution.deviation[index, r.ROTATION])))
        rotations.append(
            CameraRotation(
                math.degrees(math.acos(float(np.clip(cosine, -1, 1)))), deviation, fixed.cost - solution.cost
            )
        )
    return rotations


def moved_notes(
    people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera], names: Sequence[str]
) -> list[str]:
    """Return a warning if people fit better with one camera rotated (of two, it is unknown which); else none."""
    turns = camera_rotations(people, cameras)
    index = int(np.argmax([turn.gain for turn in turns]))
    turn = turns[index]
    if turn.degrees < MIN_DEGREES or turn.degrees < MIN_DEVIATIONS * turn.deviation:
        return []
    which = f"{names[index]} is" if len(cameras) > 2 else "one of the two cameras is"
    return [f"people fit better if {which} rotated by {turn.degrees:.1f} degrees; was it moved since the calibration?"]


def _only_rotation(cameras: int, which: int | None) -> Freedom:
    shape = (cameras, r.PARAMETERS)
    free = np.zeros(shape, bool)
    if which is not None:
        free[which, r.ROTATION] = True
    return Freedom(free, np.zeros(shape), np.zeros(shape))
