"""Metrics of a walk or run: means over strides with 95 % intervals."""

from collections.abc import Callable

import numpy as np

from pose.analysis.metrics import FEET, FRONTAL, NORMAL_95, Event, Metric, mean_interval, method_sd, quality
from pose.body.gait import Gait, Stride, analyse_gait
from pose.body.segments import SIDES, Motion

RUN_TIME_ERROR_S = 0.021  # standard deviation of flight and contact times (docs/studies/analysis.md)
FEW_STRIDES = 6
MIN_CONTACT = 0.5  # minimum probability of a contact
SAME_EVENT_S = 0.2  # maximum difference between the two methods


def gait_metrics(person: int, motion: Motion) -> tuple[list[Metric], list[Event], str]:
    """Compute the metrics of the gait of one person."""
    gait = analyse_gait(motion)
    straight = [stride for stride in gait.strides if stride.straight]
    events = _events(person, gait)
    if not gait.strides:
        return [], [], "no walk of two strides or more"
    if not straight:
        return [], events, "all strides belong to turns"
    running = gait.running
    note = "running" if running else "walking"
    turns = len(gait.strides) - len(straight)
    note += f"; {turns} strides in turns left out" if turns else ""
    few = f"{len(straight)} strides" if len(straight) < FEW_STRIDES else ""
    first, last = straight[0].start, max(stride.end for stride in straight)
    flag, doubt = quality(motion, first, last, FEET, rates=(24.0, 15.0), few=few)
    step_width_flag, step_width_doubt = quality(motion, first, last, FEET, plane=FRONTAL, rates=(24.0, 15.0), few=few)

    def metric(
        name: str, unit: str, value_of: Callable[[Stride], float], strides: list[Stride] = straight,
        error: float | None = None,
    ) -> Metric:  # fmt: skip
        values = [value_of(stride) for stride in strides]
        error = method_sd("gait", name.partition(",")[0], float(np.mean(values))) if error is None else error
        mean, low, high = mean_interval(values, error, 0.0)
        start, end = min(one.start for one in strides), max(one.end for one in strides)
        rating = (step_width_flag, step_width_doubt) if name == "step width" else (flag, doubt)
        return Metric(person, "gait", name, mean, low, high, unit, rating[0], start, end, len(values), note, rating[1])

    metrics = [
        metric("cadence", "steps/min", lambda one: 120 / one.duration),
        metric("speed", "m/s", lambda one: one.length / one.duration),
        metric("stride length", "m", lambda one: one.length),
        metric("stride time", "s", lambda one: one.duration),
        metric("step width", "m", lambda one: one.width),
    ]
    for side in SIDES:
        own = [stride for stride in straight if stride.side == side]
        if own:
            metrics.append(metric(f"step length, {side}", "m", lambda one: one.step_length, own))
            metrics.append(metric(f"stance, {side}", "share", lambda one: one.stance, own))
            metrics.append(metric(f"swing, {side}", "share", lambda one: 1 - one.stance, own))
    if running:
        metrics.append(metric("flight time", "s", lambda one: one.flight / 2, error=RUN_TIME_ERROR_S))
        metrics.append(metric("contact time", "s", lambda one: one.stance * one.duration, error=RUN_TIME_ERROR_S))
    else:
        metrics.append(metric("double support", "share", lambda one: one.double_support))
    return (
        [
            *metrics,
            *_contacts(person, motion, gait, (flag, doubt), note),
            *_asymmetry(person, straight, (flag, doubt), note),
            *_variability(person, straight, (flag, doubt), note),
        ],
        events,
        "",
    )


def _contacts(person: int, motion: Motion, gait: Gait, rating: tuple[str, str], note: str) -> list[Metric]:
    """Return the mean time differences between the contact probabilities and Zeni et al., which should agree."""
    if motion.contacts is None:
        return []
    metrics = []
    for name, by_side, rising in (("foot strike", gait.strikes, 1), ("foot off", gait.offs, -1)):
        differences = []
        for column, side in enumerate(SIDES):
            stands = (motion.contacts[:, column] >= MIN_CONTACT).astype(int)
            changes = motion.times[1:][np.diff(stands) == rising]
            near = [changes[np.argmin(np.abs(changes - time))] - time for time in by_side[side] if len(changes)]
            differences += [float(one) for one in near if abs(one) < SAME_EVENT_S]
        if len(differences) > 1:
            mean, low, high = mean_interval(differences)
            times = sorted(time for side in SIDES for time in by_side[side])
            label = f"{name}: contacts less Zeni"
            metrics.append(
                Metric(
                    person, "gait", label, mean, low, high, "s", rating[0], times[0], times[-1], len(differences),
                    note, rating[1],
                )
            )  # fmt: skip
    return metrics


def _asymmetry(person: int, strides: list[Stride], rating: tuple[str, str], note: str) -> list[Metric]:
    """Return the asymmetry of step length and stance time: left minus right, divided by their mean, in per cent."""
    left, right = ([stride for stride in strides if stride.side == side] for side in SIDES)
    if len(left) < 2 or len(right) < 2:
        return []
    start, end = min(one.start for one in strides), max(one.end for one in strides)
    metrics = []
    for name, values in (
        ("step length", [[one.step_length for one in side] for side in (left, right)]),
        ("stance time", [[one.stance * one.duration for one in side] for side in (left, right)]),
    ):
        a, b = values
        middle = (np.mean(a) + np.mean(b)) / 2
        difference = 100 * (np.mean(a) - np.mean(b)) / middle
        error = 100 * np.hypot(np.std(a, ddof=1) / np.sqrt(len(a)), np.std(b, ddof=1) / np.sqrt(len(b))) / middle
        half = NORMAL_95 * float(np.hypot(error, 100 * method_sd("gait", "stance", 0.0)))
        metrics.append(
            Metric(
                person, "gait", f"asymmetry of {name}", float(difference), float(difference) - half,
                float(difference) + half, "%", rating[0], start, end, len(strides), note, rating[1],
            )
        )  # fmt: skip
    return metrics


def _variability(person: int, strides: list[Stride], rating: tuple[str, str], note: str) -> list[Metric]:
    """Return the coefficient of variation of the stride time, with a chi-square interval of its variance."""
    if len(strides) < FEW_STRIDES:
        return []
    times = np.array([stride.duration for stride in strides])
    value = 100 * times.std(ddof=1) / times.mean()
    half = 1.96 * value / np.sqrt(2 * (len(times) - 1))
    start, end = min(one.start for one in strides), max(one.end for one in strides)
    return [
        Metric(
            person, "gait", "variability of stride time", float(value), float(max(value - half, 0)),
            float(value + half), "%", rating[0], start, end, len(times), note, rating[1],
        )
    ]  # fmt: skip


def _events(person: int, gait: Gait) -> list[Event]:
    return [
        Event(person, "gait", name, side, time)
        for name, by_side in (("Foot Strike", gait.strikes), ("Foot Off", gait.offs))
        for side in SIDES
        for time in by_side[side]
    ]
