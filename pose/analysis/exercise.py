"""Metrics of repetitions, jumps and sit-to-stand transfers for one segment of motion."""

from itertools import pairwise

import numpy as np

from pose.analysis.jumps import Jump, find_jumps
from pose.analysis.metrics import NORMAL_95, Event, Metric, mean_interval, method_sd
from pose.analysis.movement_names import movement_name
from pose.analysis.quality import FRONTAL, LEGS, SAGITTAL, quality
from pose.analysis.repetitions import MIN_SINK_M, find_repetitions
from pose.analysis.sit_to_stand import MIN_RATE, find_transfers
from pose.body.segments import Motion

Part = tuple[list[Metric], list[Event], str]  # metrics, events, and the reason if there are no metrics (else empty)

TRANSFER_ERROR_S = 0.2  # standard deviation of an error that all observations of a person share
COUNT_ERROR = 1  # of 79 lifted recordings, 74 are counted exactly
JUMP_FIELDS = {
    "height from flight time": "flight_height", "height from pelvis": "pelvis_height",
    "countermovement depth": "countermovement", "knee flexion after landing": "landing_flexion",
    "knee valgus after landing": "landing_valgus",
}  # fmt: skip


def repetition_metrics(person: int, motion: Motion) -> Part:
    """Compute count, tempo, size, left-right difference and largest deviation of a repeated movement."""
    repetitions = find_repetitions(motion)
    items = repetitions.items
    if not items:
        return [], [], repetitions.reason
    name = movement_name(repetitions.courses, motion.movement)
    start, end, count = items[0].start, items[-1].end, len(items)
    flag, doubt = quality(motion, start, end)

    def metric(what: str, unit: str, values: list[float]) -> Metric:
        error = method_sd("repetitions", what, float(np.mean(values)))
        mean, low, high = mean_interval(values, error, *(() if what == "smoothness" else (0.0,)))
        return Metric(
            person, "repetitions", f"{name}: {what}", mean, low, high, unit, flag, start, end, count, doubt=doubt
        )

    middle = np.median(repetitions.courses, axis=0)
    deviations = np.sqrt(((repetitions.courses - middle) ** 2).sum(axis=-1).mean(axis=(1, 2)))
    worst = int(np.argmax(deviations))
    complete = [repetition for repetition in items if repetition.complete]
    odd = complete[worst]
    tempos = [60 / (after.start - before.start) for before, after in pairwise(complete)]
    sinks = np.ptp(repetitions.courses[:, :, 0, 1], axis=1).tolist()  # of the pelvis
    sizes = [repetition.amplitude for repetition in complete]
    deviation = NORMAL_95 * method_sd("repetitions", "largest deviation", 0.0)
    metrics = [
        Metric(
            person, "repetitions", f"{name}: count", count, max(count - COUNT_ERROR, 0),
            count + COUNT_ERROR, "repetitions", flag, start, end, count,
            doubt=doubt,
        ),
        metric("duration", "s", [repetition.end - repetition.start for repetition in complete]),
        *([metric("tempo", "repetitions/min", tempos)] if tempos else []),
        *([metric("depth", "m", sinks)] if min(sinks) > MIN_SINK_M else []),
        metric("amplitude", "m", sizes),
        metric("smoothness", "log jerk", [repetition.smoothness for repetition in complete]),
        metric("left-right difference", "m", [_asymmetry(course) for course in repetitions.courses]),
        Metric(
            person, "repetitions", f"{name}: largest deviation", float(deviations[worst]),
            max(float(deviations[worst]) - deviation, 0.0), float(deviations[worst]) + deviation, "m", flag,
            odd.start, odd.end, 1,
            f"repetition {items.index(odd) + 1} against the median of all", doubt,
        ),
    ]  # fmt: skip
    events = [
        Event(person, "repetitions", label, "", time)
        for repetition in items
        for label, time in (
            (f"{name} start", repetition.start),
            (f"{name} turning point", repetition.peak),
            (f"{name} end", repetition.end),
        )
    ]
    return metrics, events, ""


def _asymmetry(course: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    """Return the mean distance in m between left limbs and mirrored right ones of a course (S, 17, 3)."""
    pairs = ((5, 2), (6, 3), (12, 15), (13, 16))  # knees, ankles, elbows, wrists: left, right
    mirror = np.array([-1.0, 1.0, 1.0])
    return float(np.mean([np.linalg.norm(course[:, a] - course[:, b] * mirror, axis=1).mean() for a, b in pairs]))


def jump_metrics(person: int, motion: Motion) -> Part:
    """Compute height, countermovement and landing of every jump, and the reason if there are none."""
    metrics: list[Metric] = []
    events: list[Event] = []
    for number, jump in enumerate(find_jumps(motion), start=1):
        metrics += _jump(person, number, jump, motion)
        events += [
            Event(person, "jumps", "takeoff", "", jump.takeoff),
            Event(person, "jumps", "highest point", "", (jump.takeoff + jump.landing) / 2),
            Event(person, "jumps", "landing", "", jump.landing),
        ]
    return metrics, events, "" if metrics else _too_slow(motion) or "no jump with both feet in the air"


def _too_slow(motion: Motion) -> str:
    """Return a message if the frame rate is too low to detect jumps and transfers, else an empty text."""
    if motion.rate >= MIN_RATE:
        return ""
    return f"only {motion.rate:.0f} frames/s, at least {MIN_RATE:.0f} are needed"


def _jump(person: int, number: int, jump: Jump, motion: Motion) -> list[Metric]:
    flight = jump.landing - jump.takeoff
    timing = 9.81 * flight / 4 / motion.rate / np.sqrt(6)  # uncertainty of two times with a resolution of one frame
    metrics = []
    for name, field in JUMP_FIELDS.items():
        value, unit = float(getattr(jump, field)), "degrees" if name.startswith("knee") else "m"
        error = float(np.hypot(method_sd("jumps", name, value), timing if "flight" in name else 0.0))
        plane = FRONTAL if "valgus" in name else SAGITTAL if "flexion" in name else ""
        flag, doubt = quality(motion, jump.takeoff - 0.5, jump.landing + 0.5, LEGS, plane=plane, rates=(24.0, 10.0))
        _, low, high = mean_interval([value], error, -np.inf if "valgus" in name else min(value, 0.0))
        metrics.append(
            Metric(
                person, "jumps", f"jump {number}: {name}", value, low, high, unit,
                flag, jump.takeoff, jump.landing, 1, doubt=doubt,
            )
        )  # fmt: skip
    return metrics


def transfer_metrics(person: int, motion: Motion) -> Part:
    """Compute the durations of standing up and sitting down."""
    transfers = find_transfers(motion)
    metrics = []
    for rising, name in ((True, "sit to stand"), (False, "stand to sit")):
        matching = [transfer for transfer in transfers if transfer.rising == rising]
        if matching:
            mean, low, high = mean_interval([transfer.duration for transfer in matching], TRANSFER_ERROR_S, 0.0)
            flag, doubt = quality(motion, matching[0].start, matching[-1].end, rates=(15.0, 10.0))
            metrics.append(
                Metric(
                    person, "sit-to-stand", f"{name}: duration", mean, low, high, "s", flag,
                    matching[0].start, matching[-1].end, len(matching), doubt=doubt,
                )
            )  # fmt: skip
    events = [
        Event(person, "sit-to-stand", f"{'sit to stand' if transfer.rising else 'stand to sit'} {label}", "", time)
        for transfer in transfers
        for label, time in (("start", transfer.start), ("end", transfer.end))
    ]
    reason = _too_slow(motion) or "the person does not sit and stand up, or sit down"
    return metrics, events, "" if metrics else reason
