"""RULA and REBA over time from joint positions.

Wrist posture, load, grip and muscle use cannot be observed. The caller passes them as `Inputs`.

RULA: McAtamney and Corlett, Applied Ergonomics 24(2), 1993. REBA: Hignett and McAtamney, Applied Ergonomics 31, 2000.
The index into a table is the score minus 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.analysis.metrics import Event, Metric, Series, quality, worst
from pose.body.segments import SIDES, Motion
from pose.structures.types import F64, I64


def _digits(rows: str, *shape: int) -> I64:
    return np.array([int(word) for word in rows.split()], np.int64).reshape(shape)


# Upper arm 1 to 6, lower arm 1 to 3, wrist 1 to 4, wrist twist 1 to 2.
RULA_A = _digits(
    """
    1 2 2 2 2 3 3 3  2 2 2 2 3 3 3 3  2 3 3 3 3 3 4 4
    2 3 3 3 3 4 4 4  3 3 3 3 3 4 4 4  3 4 4 4 4 4 5 5
    3 3 4 4 4 4 5 5  3 4 4 4 4 4 5 5  4 4 4 4 4 5 5 5
    4 4 4 4 4 5 5 5  4 4 4 4 4 5 5 5  4 4 4 5 5 5 6 6
    5 5 5 5 5 6 6 7  5 6 6 6 6 7 7 7  6 6 6 7 7 7 7 8
    7 7 7 7 7 8 8 9  8 8 8 8 8 9 9 9  9 9 9 9 9 9 9 9
    """,
    6, 3, 4, 2,
)  # fmt: skip
# Neck 1 to 6, trunk 1 to 6, legs 1 to 2.
RULA_B = _digits(
    """
    1 3 2 3 3 4 5 5 6 6 7 7
    2 3 2 3 4 5 5 5 6 7 7 7
    3 3 3 4 4 5 5 6 6 7 7 7
    5 5 5 6 6 7 7 7 7 7 8 8
    7 7 7 7 7 8 8 8 8 8 8 8
    8 8 8 8 8 8 8 9 9 9 9 9
    """,
    6, 6, 2,
)  # fmt: skip
# Score C 1 to 8 (and more), score D 1 to 7 (and more).
RULA_C = _digits(
    """
    1 2 3 3 4 5 5
    2 2 3 4 4 5 5
    3 3 3 4 4 5 6
    3 3 3 4 5 6 6
    4 4 4 5 6 7 7
    4 4 5 6 6 7 7
    5 5 6 6 7 7 7
    5 5 6 7 7 7 7
    """,
    8, 7,
)  # fmt: skip
# Neck 1 to 3, trunk 1 to 5, legs 1 to 4.
REBA_A = _digits(
    """
    1 2 3 4  2 3 4 5  2 4 5 6  3 5 6 7  4 6 7 8
    1 2 3 4  3 4 5 6  4 5 6 7  5 6 7 8  6 7 8 9
    3 3 5 6  4 5 6 7  5 6 7 8  6 7 8 9  7 8 9 9
    """,
    3, 5, 4,
)  # fmt: skip
# Lower arm 1 to 2, upper arm 1 to 6, wrist 1 to 3.
REBA_B = _digits(
    """
    1 2 2  1 2 3  3 4 5  4 5 5  6 7 8  7 8 8
    1 2 3  2 3 4  4 5 5  5 6 7  7 8 8  8 9 9
    """,
    2, 6, 3,
)  # fmt: skip
# Score A 1 to 12, score B 1 to 12.
REBA_C = _digits(
    """
    1 1 1 2 3 3 4 5 6 7 7 7
    1 2 2 3 4 4 5 6 6 7 7 8
    2 3 3 3 4 5 6 7 7 8 8 8
    3 4 4 4 5 6 7 8 8 9 9 9
    4 4 4 5 6 7 8 8 9 9 9 9
    6 6 6 7 8 8 9 9 10 10 10 10
    7 7 7 8 9 9 9 10 10 11 11 11
    8 8 8 9 10 10 10 10 10 11 11 11
    9 9 9 10 10 10 11 11 11 12 12 12
    10 10 10 11 11 11 11 12 12 12 12 12
    11 11 11 11 12 12 12 12 12 12 12 12
    12 12 12 12 12 12 12 12 12 12 12 12
    """,
    12, 12,
)  # fmt: skip


def rula(
    upper_arm: I64, lower_arm: I64, wrist: I64, twist: I64, neck: I64, trunk: I64, legs: I64,
    arm_use: int = 0, arm_force: int = 0, body_use: int = 0, body_force: int = 0,
) -> I64:  # fmt: skip
    """Return RULA grand scores (T,), 1 to 7, from the scores of the body parts."""
    a = RULA_A[upper_arm - 1, lower_arm - 1, wrist - 1, twist - 1] + arm_use + arm_force
    b = RULA_B[neck - 1, trunk - 1, legs - 1] + body_use + body_force
    result: I64 = RULA_C[np.minimum(a, 8) - 1, np.minimum(b, 7) - 1]
    return result


def reba(
    neck: I64, trunk: I64, legs: I64, upper_arm: I64, lower_arm: I64, wrist: I64,
    load: int = 0, coupling: int = 0, activity: int = 0,
) -> I64:  # fmt: skip
    """Return REBA scores (T,), 1 to 15, from the scores of the body parts."""
    a = np.minimum(REBA_A[neck - 1, trunk - 1, legs - 1] + load, 12)
    b = np.minimum(REBA_B[lower_arm - 1, upper_arm - 1, wrist - 1] + coupling, 12)
    result: I64 = REBA_C[a - 1, b - 1] + activity
    return result


TWIST_DEGREES, BEND_DEGREES = 15.0, 12.0  # degrees beyond which trunk or neck count as twisted or bent to the side
ABDUCTED_DEGREES = 30.0
NEUTRAL_NECK_DEGREES = 10.0  # default neutral angle of the line from thorax to head
UPRIGHT_LEAN_DEGREES, UPRIGHT_KNEE_DEGREES, UPRIGHT_FRAMES = 15.0, 60.0, 10
RAISED_SHARE = 0.06  # height of a raised shoulder above its median, as a fraction of the trunk's length
UPRIGHT_DEGREES = 5.0  # trunk flexion that still counts as 0
ONE_LEG_M = 0.08  # height difference of the ankles beyond which the weight is on one leg
RULA_LEVELS = ((2, "acceptable"), (4, "investigate"), (6, "change soon"), (7, "change now"))
REBA_LEVELS = ((1, "negligible"), (3, "low"), (7, "medium"), (10, "high"), (15, "very high"))


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs that a camera cannot observe."""

    wrist: int = 1  # wrist score of both methods, 1 (neutral) to 3
    wrist_twist: int = 1  # RULA wrist twist, 1 (mid range) or 2
    load: int = 0  # RULA and REBA load or force score, 0 to 3
    coupling: int = 0  # REBA grip score, 0 (good) to 3 (unacceptable)
    # RULA muscle use score, 1 for static or repeated postures, else 0. Also the REBA activity score.
    muscle_use: int = 0

    @property
    def note(self) -> str:
        """Text for the note of a metric that lists the inputs."""
        if self == NEUTRAL:
            return "assumed: no load, neutral wrists, good grip"
        wrist = f"wrist {self.wrist}, twist {self.wrist_twist}"
        return f"given scores: {wrist}, load {self.load}, grip {self.coupling}, muscle use {self.muscle_use}"


NEUTRAL = Inputs()


@dataclass(frozen=True, slots=True)
class Scores:
    """RULA and REBA scores of T frames, for the worse side of the body."""

    rula: I64  # (T,) 1 to 7
    reba: I64  # (T,) 1 to 15


def ergonomic_scores(motion: Motion, inputs: Inputs = NEUTRAL) -> Scores:
    """Return the RULA and REBA scores of every frame. `inputs` has the scores that a camera cannot observe."""
    return scores_of(posture_of(motion), inputs)


def scores_of(posture: "PostureScores", inputs: Inputs = NEUTRAL) -> Scores:
    """Return the RULA and REBA scores of every frame, given the scores of the body parts."""
    wrist = np.full(len(posture.trunk_rula), inputs.wrist)
    twist = np.full(len(posture.trunk_rula), inputs.wrist_twist)
    rula_scores, reba_scores = [], []
    for side in range(2):
        upper, lower = posture.upper_arm[:, side], posture.lower_arm[:, side]
        crossed = np.minimum(lower + posture.across[:, side], 3)
        rula_scores.append(
            rula(
                upper, crossed, wrist, twist, posture.neck_rula, posture.trunk_rula, posture.legs_rula,
                inputs.muscle_use, inputs.load, inputs.muscle_use, inputs.load,
            )
        )  # fmt: skip
        reba_scores.append(
            reba(
                posture.neck_reba, posture.trunk_reba, posture.legs_reba, upper, lower, wrist,
                inputs.load, inputs.coupling, inputs.muscle_use,
            )
        )  # fmt: skip
    return Scores(np.max(rula_scores, axis=0), np.max(reba_scores, axis=0))


@dataclass(frozen=True, slots=True)
class PostureScores:
    """RULA and REBA scores of the body parts in T frames. Arms have the same scores in both methods."""

    upper_arm: I64  # (T, 2) scores of the left and the right upper arm, 1 to 6
    lower_arm: I64  # (T, 2) scores of the left and the right lower arm, 1 to 2
    across: I64  # (T, 2) 1 where the left or right hand crosses the midline or is far outside the body, else 0
    neck_rula: I64  # (T,) RULA score of the neck
    trunk_rula: I64  # (T,) RULA score of the trunk
    legs_rula: I64  # (T,) RULA score of the legs
    neck_reba: I64  # (T,) REBA score of the neck
    trunk_reba: I64  # (T,) REBA score of the trunk
    legs_reba: I64  # (T,) REBA score of the legs


def posture_of(motion: Motion) -> PostureScores:
    """Return the scores of the body parts in every frame."""
    trunk = motion.joint("thorax") - motion.joint("pelvis")
    forward = motion.facing
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    flexion = np.degrees(np.arctan2(_dot(trunk, forward), trunk[:, 1]))
    side_bend = np.abs(np.degrees(np.arctan2(_dot(trunk, left), trunk[:, 1])))
    shoulders = motion.joint("left_shoulder") - motion.joint("right_shoulder")
    hips = motion.joint("left_hip") - motion.joint("right_hip")
    twist = np.abs(_angle(_flat(shoulders), _flat(hips)))
    twisted = ((twist > TWIST_DEGREES) | (side_bend > BEND_DEGREES)).astype(np.int64)
    up = trunk / np.linalg.norm(trunk, axis=1, keepdims=True)
    chest_left = _unit(shoulders - _dot(shoulders, up)[:, None] * up)
    chest_forward = np.cross(chest_left, up)
    neck_forward, neck_bent = _neck(motion, up, chest_left, chest_forward)
    upper, lower, across = zip(
        *(
            _arm(motion, side, up, chest_left * outward, chest_forward)
            for side, outward in zip(SIDES, (1, -1), strict=True)
        ),
        strict=True,
    )
    knees = _knees(motion)
    ankles = np.stack([motion.joint(f"{side}_ankle")[:, 1] for side in SIDES], axis=1)
    one_leg = (np.abs(ankles[:, 0] - ankles[:, 1]) > ONE_LEG_M).astype(np.int64)
    bent = np.digitize(knees.max(axis=1), [30, 60])
    backwards = (flexion < -UPRIGHT_DEGREES).astype(np.int64)
    trunk_score = 1 + np.digitize(np.abs(flexion), [UPRIGHT_DEGREES, 20, 60])
    trunk_reba = np.where(backwards == 1, np.where(flexion < -20, 3, 2), trunk_score)
    return PostureScores(
        np.stack(upper, axis=1), np.stack(lower, axis=1), np.stack(across, axis=1),
        neck_rula=np.where(neck_forward < -5, 4, 1 + np.digitize(neck_forward, [10, 20])) + neck_bent,
        trunk_rula=trunk_score + twisted,
        legs_rula=1 + one_leg,
        neck_reba=np.where((neck_forward > 20) | (neck_forward < -5), 2, 1) + neck_bent,
        trunk_reba=trunk_reba + twisted,
        legs_reba=np.minimum(1 + one_leg + bent, 4),
    )  # fmt: skip


def _neck(motion: Motion, up: F64, left: F64, forward: F64) -> tuple[F64, I64]:
    """Return the neck flexion relative to the trunk in degrees (0 upright), and 1 where the head bends sideways."""
    # The position of the skeleton's head joint varies between people. The neutral angle is therefore the person's
    # median while upright, or `NEUTRAL_NECK_DEGREES`.
    head = motion.joint("head") - motion.joint("thorax")
    flexion = np.degrees(np.arctan2(_dot(head, forward), _dot(head, up)))
    bend = np.degrees(np.arctan2(_dot(head, left), _dot(head, up)))
    lean = np.degrees(np.arccos(np.clip(up[:, 1], -1, 1)))
    upright = (lean < UPRIGHT_LEAN_DEGREES) & (_knees(motion).max(axis=1) < UPRIGHT_KNEE_DEGREES)
    neutral = float(np.median(flexion[upright])) if upright.sum() >= UPRIGHT_FRAMES else NEUTRAL_NECK_DEGREES
    return flexion - neutral, (np.abs(bend) > BEND_DEGREES).astype(np.int64)


def _arm(motion: Motion, side: str, up: F64, outward: F64, forward: F64) -> tuple[I64, I64, I64]:
    """Return scores of upper arm (1 to 6), lower arm (1 to 2), and `across`: 1 where the hand crosses the midline."""
    upper = motion.joint(f"{side}_elbow") - motion.joint(f"{side}_shoulder")
    lower = motion.joint(f"{side}_wrist") - motion.joint(f"{side}_elbow")
    ahead, aside, below = _dot(upper, forward), _dot(upper, outward), -_dot(upper, up)
    flexion = np.degrees(np.arctan2(ahead, below))
    elevation = np.degrees(np.arctan2(np.hypot(ahead, aside), below))
    flexion = np.where(flexion >= 0, np.maximum(flexion, np.where(np.abs(aside) < ahead, elevation, flexion)), flexion)
    score = np.where(flexion < -20, 2, 1 + np.digitize(np.maximum(flexion, 0), [20, 45, 90]))
    abduction = np.degrees(np.arcsin(np.clip(aside / np.linalg.norm(upper, axis=1), -1, 1)))
    trunk = np.linalg.norm(motion.joint("thorax") - motion.joint("pelvis"), axis=1)
    lift = _dot(motion.joint(f"{side}_shoulder") - motion.joint("thorax"), up) / trunk
    raised = lift > np.median(lift) + RAISED_SHARE
    score = score + (abduction > ABDUCTED_DEGREES) + raised
    elbow = _angle(upper, lower)
    hand = motion.joint(f"{side}_wrist") - motion.joint("thorax")
    width = np.linalg.norm(motion.joint(f"{side}_shoulder") - motion.joint("thorax"), axis=1)
    place = _dot(hand, outward)
    across = (place < 0) | (place > width + 0.25)
    return np.clip(score, 1, 6), np.where((elbow >= 60) & (elbow <= 100), 1, 2), across.astype(np.int64)


def _knees(motion: Motion) -> F64:
    """Return flexion of the knees, (T, 2) degrees."""
    return np.stack(
        [
            _angle(
                motion.joint(f"{side}_knee") - motion.joint(f"{side}_hip"),
                motion.joint(f"{side}_ankle") - motion.joint(f"{side}_knee"),
            )
            for side in SIDES
        ],
        axis=1,
    )


def _dot(a: F64, b: F64) -> F64:
    return np.asarray((a * b).sum(axis=1))


def _unit(a: F64) -> F64:
    return np.asarray(a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-9))


def _flat(a: F64) -> F64:
    result: F64 = a * np.array([1.0, 0.0, 1.0])
    return result


def _angle(a: F64, b: F64) -> F64:
    """Return angles (T,) in degrees between vectors (T, 3), 0 to 180."""
    cosine = _dot(_unit(a), _unit(b))
    return np.asarray(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


SCORE_ERROR = 1  # with lifted poses, 85 % (RULA) and 81 % (REBA) of the frames have at most this error


def ergonomic_metrics(
    person: int, parts: Sequence[Motion], inputs: Inputs
) -> tuple[list[Metric], list[Event], list[Series]]:
    """Compute RULA and REBA metrics, the worst second as events, and the scores over time."""
    scores = [ergonomic_scores(segment, inputs) for segment in parts]
    start, end = float(parts[0].times[0]), float(parts[-1].times[-1])
    ratings = [quality(segment, float(segment.times[0]), float(segment.times[-1])) for segment in parts]
    flag, doubt = worst([item for item, _ in ratings]), "; ".join(dict.fromkeys(text for _, text in ratings if text))
    times = np.concatenate([segment.times for segment in parts])
    metrics: list[Metric] = []
    events: list[Event] = []
    series: list[Series] = []
    for name, values, levels in (
        ("RULA", [item.rula for item in scores], RULA_LEVELS),
        ("REBA", [item.reba for item in scores], REBA_LEVELS),
    ):
        joined = np.concatenate(values)
        metrics += [
            Metric(
                person, "ergonomics", f"{name}: {what}", *numbers, unit, flag, start, end, len(joined),
                inputs.note, doubt,
            )
            for what, unit, numbers in [
                ("mean score", "score", _mean(joined, levels[-1][0])),
                *((f"time {level}", "share", numbers) for level, numbers in _shares(joined, levels)),
            ]
        ]  # fmt: skip
        seconds = [_second_mean(item, segment.rate) for item, segment in zip(values, parts, strict=True)]
        moment = float(times[int(np.argmax(np.concatenate(seconds)))])
        events.append(Event(person, "ergonomics", f"{name} worst moment", "", moment))
        series.append(Series(person, "ergonomics", name, "score", tuple(times.tolist()), tuple(map(float, joined))))
    return metrics, events, series


def _mean(scores: NDArray[np.int64], max_score: int) -> tuple[float, float, float]:
    """Return the mean score, and its bounds for an error of `SCORE_ERROR` in every score."""
    bounds = [float(np.clip(scores + off, 1, max_score).mean()) for off in (-SCORE_ERROR, SCORE_ERROR)]
    return float(scores.mean()), bounds[0], bounds[1]


def _shares(
    scores: NDArray[np.int64], levels: Sequence[tuple[int, str]]
) -> Iterable[tuple[str, tuple[float, float, float]]]:
    """Return the share of frames in each level, and its bounds for an error of `SCORE_ERROR` in every score."""
    lower, last = 0, levels[-1][0]
    for upper, level in levels:
        # Scores below the lowest level and above the highest one do not exist.
        below, above = (-np.inf if lower == 0 else lower), (np.inf if upper == last else upper)
        share = float(((scores > below) & (scores <= above)).mean())
        near = float(((scores > below + SCORE_ERROR) & (scores <= above - SCORE_ERROR)).mean())
        far = float(((scores > below - SCORE_ERROR) & (scores <= above + SCORE_ERROR)).mean())
        yield level, (share, near, far)
        lower = upper


def _second_mean(values: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    width = max(min(round(rate), len(values)), 1)
    return np.convolve(values, np.ones(width) / width, mode="same")
