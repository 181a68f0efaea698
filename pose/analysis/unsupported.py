"""People, tracks and angles outside the scope of the definitions. They get a one-line reason instead of metrics."""

import numpy as np

from pose.body.gait import analyse_gait
from pose.body.segments import MAX_GAP_S, MIN_DURATION_S, MIN_FRAMES, SIDES, Motion
from pose.results import Recording
from pose.structures.types import F32, F64
from pose.world.foot_points import foot_joints

CHILD_HEIGHT_M = 1.3  # minimum of body height plus sigma; metrics are validated for adults and older children only
SEATED_LEGS = 0.72  # maximum height of a seated person's pelvis above the ankles, in leg lengths
SEATED_SHARE = 0.8  # minimum fraction of seated frames
TRAVELLED_M = 2.0
SWAP_S = 0.3  # s before and after a frame over which the motion of two people is compared
SWAP_GAIN_M = 0.8  # minimum decrease of the deviation when two tracks are swapped
SWAP_SHARE = 0.35  # maximum deviation of swapped tracks, relative to that of the tracks as they are


def small_body_reason(table: Recording, person: int) -> str:
    """Return why the person with this track id is too small to analyse; empty if large enough or of unknown height."""
    heights = {} if table.world_info is None else table.world_info.heights
    height, sigma = heights.get(person, (np.inf, 0.0))
    if height + sigma >= CHILD_HEIGHT_M:
        return ""
    return f"body height {height:.2f} m: the errors of small children are not known"


def no_world_reason(joints: F32) -> str:
    """Return why a person is excluded whose world coordinates (T, 17, 3) m are all unknown; empty for others."""
    if not len(joints) or np.isfinite(joints).any():
        return ""
    return "the camera's motion is unknown while the person is in view"


def too_short_reason(times: F64) -> str:
    """Return the reason to report for a person without a part that is long enough to analyse."""
    if len(times) > MIN_FRAMES and float(np.median(np.diff(times))) > MAX_GAP_S:
        return f"frames are more than {MAX_GAP_S:g} s apart"
    return f"the person is fully visible for less than {MIN_DURATION_S:g} s at a time"


def unobserved_angles(table: Recording) -> list[str]:
    """Return the joint angles that may be missing, each with its reason."""
    feet = "heels and toes are not seen in all frames of two cycles"
    ends = "the lifted skeleton ends at the wrist; --hands adds hands, but no wrist angle"
    hands = "the error of an angle between forearm and estimated hand was not measured"
    return [
        f"ankle: {'the 2D keypoints have no heel and toe' if foot_joints(table.skeleton) is None else feet}",
        f"wrist: {ends if table.hand_keypoints is None else hands}",
        "pelvic tilt: two hip joints do not show it",
    ]


def seated_traveller_reason(parts: list[Motion]) -> str:
    """Return why a person who travels without steps (wheelchair or vehicle) is excluded; empty for others."""
    for motion in parts:
        ankles = np.mean([motion.joint(f"{side}_ankle") for side in SIDES], axis=0)
        height = (motion.joint("pelvis") - ankles)[:, 1] / motion.leg_length
        steps_m = np.linalg.norm(motion.velocity, axis=1) * np.gradient(motion.times)
        if (
            (height < SEATED_LEGS).mean() > SEATED_SHARE
            and steps_m.sum() > TRAVELLED_M
            and not analyse_gait(motion).strides
        ):
            return "moves without steps, seated (wheelchair or vehicle): metrics are defined for people on their legs"
    return ""


def id_switches(table: Recording) -> dict[int, str]:
    """Find probable id switches between two people who come close, as a text by track id."""
    # People are assumed to move at constant velocity over `SWAP_S` before and after a frame. Two tracks are swapped if
    # the later part of each fits the earlier part of the other far better than its own.
    assert table.placed is not None
    switches: dict[int, str] = {}
    people = table.people
    pelvises = {person: _pelvis(table, person) for person in people}
    for at, first in enumerate(people):
        for second in people[at + 1 :]:
            time = _switch_time(pelvises[first], pelvises[second])
            if time is not None:
                text = f"the tracks of persons {first} and {second} are probably swapped at {time:.1f} s"
                switches.setdefault(first, text)
                switches.setdefault(second, text)
    return switches


def _pelvis(table: Recording, person: int) -> tuple[F64, F64]:
    """Return times (T,) s and horizontal positions of the pelvis (T, 2) m."""
    assert table.placed is not None
    rows = np.flatnonzero((table.id == person) & np.isfinite(table.placed.joints[:, 0, 0]))
    return table.time[rows], table.placed.joints[rows, 0][:, [0, 2]].astype(np.float64)


def _switch_time(a: tuple[F64, F64], b: tuple[F64, F64]) -> float | None:
    """Return the time in s at which two tracks are probably swapped; None if they are not."""
    times = np.intersect1d(a[0], b[0])
    inner = times[(times - 2 * SWAP_S >= times[:1]) & (times + 2 * SWAP_S <= times[-1:])] if len(times) else times
    if not len(inner):
        return None

    def positions(track: tuple[F64, F64], shift: float) -> F64:
        return np.stack([np.interp(inner + shift, track[0], track[1][:, axis]) for axis in range(2)], axis=1)

    before = [
        (positions(track, -SWAP_S), positions(track, -SWAP_S) - positions(track, -2 * SWAP_S)) for track in (a, b)
    ]
    after = [(positions(track, SWAP_S), positions(track, 2 * SWAP_S) - positions(track, SWAP_S)) for track in (a, b)]

    def deviation(one: tuple[F64, F64], other: tuple[F64, F64]) -> F64:
        """Return the distance in m of `other` from the continuation of `one`, plus the change of movement."""
        ahead = np.linalg.norm(one[0] + 2 * one[1] - other[0], axis=1)
        return np.asarray(ahead + np.linalg.norm(one[1] - other[1], axis=1))

    unswitched = deviation(before[0], after[0]) + deviation(before[1], after[1])
    switched = deviation(before[0], after[1]) + deviation(before[1], after[0])
    clear = (unswitched - switched > SWAP_GAIN_M) & (switched < SWAP_SHARE * unswitched)
    return float(inner[np.argmax(np.where(clear, unswitched - switched, -np.inf))]) if clear.any() else None
