"""Labels and one-line explanations of the metrics in the report."""

from pose.analysis.ergonomics import REBA_LEVELS, RULA_LEVELS
from pose.analysis.metrics import Metric

GAIT = {
    "cadence": "steps per minute",
    "speed": "",
    "stride length": "from one strike of a foot to the next of the same foot",
    "stride time": "from one strike of a foot to the next of the same foot",
    "step width": "sideways distance of the feet",
    "step length": "from the other foot to this one",
    "stance": "share of the stride in which the foot is on the floor",
    "swing": "share of the stride in which the foot is in the air",
    "double support": "share of the stride in which both feet are on the floor",
    "flight time": "both feet in the air, per step",
    "contact time": "one foot on the floor, per step",
    "foot strike: contacts less Zeni": "check of the method, not of the person: two ways to find this moment differ",
    "foot off: contacts less Zeni": "check of the method, not of the person: two ways to find this moment differ",
    "asymmetry of step length": "left less right, relative to their mean; 0 is symmetric",
    "asymmetry of stance time": "left less right, relative to their mean; 0 is symmetric",
    "variability of stride time": "standard deviation of the stride times, relative to their mean",
}
REPETITIONS = {
    "count": "repetitions that are cut by the start or the end of the video included",
    "duration": "one repetition, without the pause after it",
    "tempo": "pauses included",
    "depth": "vertical travel of the pelvis",
    "amplitude": "how far the joints move from the resting pose (RMS)",
    "smoothness": "larger is smoother; no unit; compare it within this video only",
    "left-right difference": "mean distance of the left limbs from the mirrored right ones",
    "largest deviation": "distance of the most unusual repetition from the median one (RMS)",
}
JUMPS = {
    "height from flight time": "from the time in the air; bent legs at landing raise it",
    "height from pelvis": "highest pelvis above its height at takeoff",
    "countermovement depth": "how far the pelvis sinks before takeoff",
    "knee flexion after landing": "largest bend, mean of both knees; 0: straight",
    "knee valgus after landing": "knees inwards of the line from hip to ankle, mean of both; negative: outwards",
}
THROWS = {
    "hand speed": "largest speed of the hand relative to the pelvis, at release or at the hit",
    "wind-up": "from the hand farthest in front to the hand farthest back",
    "forward phase": "from the hand farthest back to its largest speed",
    "follow-through": "from the largest speed until the hand is slow",
    "elbow flexion at release": "0: straight",
    "hand above shoulder": "at release; negative: below",
}
TRANSFERS = {"duration": "while the pelvis moves up or down"}
SCORES = {"RULA": RULA_LEVELS, "REBA": REBA_LEVELS}
_MEANINGS = {"gait": GAIT, "repetitions": REPETITIONS, "throws": THROWS, "jumps": JUMPS, "sit-to-stand": TRANSFERS}

# Zero and positive direction of each angle, as in docs/guides/analysis.md.
ANGLES = {
    "hip flexion": "0: thigh in line with the trunk; positive: forwards",
    "hip adduction": "0: thigh in line with the trunk; positive: inwards",
    "knee flexion": "0: straight; positive: bent",
    "ankle flexion": "0: sole at a right angle to the shank; positive: toes raised",
    "elbow flexion": "0: straight; positive: bent",
    "shoulder flexion": "0: arm along the trunk; positive: forwards",
    "shoulder abduction": "0: arm along the trunk; positive: outwards",
    "shoulder elevation": "0: arm along the trunk; 90: horizontal",
    "pelvis obliquity": "0: level; positive: this side up",
    "pelvis rotation": "0: square to the direction of facing; positive: this side forwards",
    "trunk flexion": "0: vertical; positive: forwards",
    "trunk bending": "0: vertical; positive: to the right",
    "trunk rotation": "0: shoulders parallel to the hips; positive: to the left",
    "neck flexion": "0: head in line with the trunk; positive: forwards",
}


def name_parts(metric: Metric) -> tuple[str, str]:
    """Split a metric into its subject and its measure: ('squat', 'depth'), ('', 'cadence')."""
    if metric.group == "gait":
        return "", metric.name
    subject, _, measure = metric.name.partition(": ")
    return subject, measure


def meaning(metric: Metric) -> str:
    """Return a one-line explanation of a metric; empty if its name explains it."""
    measure = name_parts(metric)[1]
    if metric.group == "ergonomics":
        return ""
    known = _MEANINGS[metric.group]
    return known[measure] if measure in known else known[measure.partition(", ")[0]]


def levels(name: str) -> str:
    """Return the levels of RULA or REBA in words: '1 to 2 acceptable, 3 to 4 investigate, ...'."""
    least, found = 1, []
    for most, level in SCORES[name]:
        found.append(f"{least} {level}" if least == most else f"{least} to {most} {level}")
        least = most + 1
    return ", ".join(found)
