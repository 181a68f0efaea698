"""Tables of a report: metrics of a group, jumps, ranges of motion, and the labels of all metrics."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pose.analysis.ergonomics import REBA_LEVELS, RULA_LEVELS
from pose.analysis.metrics import Metric
from pose.results import Recording
from pose.utils.shown import shown_in_html

LIGHTS = {"green": "good", "amber": "care", "red": "weak"}
JUMP_COLUMNS = {
    "height from flight time": "height: flight",
    "height from pelvis": "height: pelvis",
    "countermovement depth": "dip",
    "knee flexion after landing": "knee bend",
    "knee valgus after landing": "knee valgus",
}


def frames_between(table: Recording, start: float, end: float) -> str:
    """Describe the part of the video from `start` to `end` (s) as text, in seconds and frame numbers."""
    first, last = (int(np.argmin(np.abs(table.timestamps - time))) for time in (start, end))
    return f"{start:.1f} to {end:.1f} s (frames {table.frames[first]} to {table.frames[last]})"


def metric_tables(table: Recording, metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield the HTML of tables of metrics, one table for each movement and part of the video."""
    for part in _split(metrics):
        subject = name_parts(part[0])[0]
        if part[0].group == "repetitions":
            yield f"<p><b>{shown_in_html(first_up(subject))}</b></p>"
        if part[0].group == "ergonomics":
            yield f"<p><b>{subject}</b>: 1 to {SCORES[subject][-1][0]}, higher is worse. "
            yield f"{first_up(levels(subject))}.</p>"
        yield _table(table, part)


def _split(metrics: Sequence[Metric]) -> Iterator[list[Metric]]:
    rows: list[Metric] = []
    for metric in metrics:
        if rows and (metric.name in {row.name for row in rows} or _subject(metric) != _subject(rows[0])):
            yield rows
            rows = []
        rows.append(metric)
    yield rows


def _subject(metric: Metric) -> str:
    return "" if metric.group == "sit-to-stand" else name_parts(metric)[0]


def _table(table: Recording, metrics: Sequence[Metric]) -> str:
    """Return one table. What all rows have in common is stated above the table."""
    source = Counter((metric.start, metric.end) for metric in metrics).most_common(1)[0][0]
    shared = _shared([metric.doubt for metric in metrics])
    note = _shared([metric.note for metric in metrics])
    above = [frames_between(table, *source), *note, *([f"usable with care: {', '.join(shared)}"] if shared else [])]
    rows = "".join(_row(table, metric, source, [*shared, *note]) for metric in metrics)
    head = "<tr><th>measure</th><th>value</th><th>quality</th></tr>"
    return f"{_quiet(above)}<table class='wide'>{head}{rows}</table>\n"


def _shared(texts: Sequence[str]) -> list[str]:
    """Return the parts, separated by semicolons, that occur in all texts."""
    first, *others = [text.split("; ") for text in texts]
    return [part for part in first if part and all(part in other for other in others)]


def _quiet(texts: Iterable[str]) -> str:
    return f'<p class="quiet">{shown_in_html("; ".join(texts))}</p>'


def _row(table: Recording, metric: Metric, source: tuple[float, float], shared: Sequence[str]) -> str:
    remarks = [
        remark for text in (metric.note, metric.doubt) for remark in text.split("; ") if remark and remark not in shared
    ]
    where = [] if (metric.start, metric.end) == source else [frames_between(table, metric.start, metric.end)]
    count = [f"{metric.count} strides"] if metric.group == "gait" else []
    notes = [meaning(metric), "; ".join([*remarks, *count, *where])]
    small = "".join(f"<small>{shown_in_html(note)}</small>" for note in notes if note)
    label = metric.name if metric.group == "sit-to-stand" else name_parts(metric)[1]
    return (
        f"<tr><td>{shown_in_html(label)}{small}</td><td class='v'>{value_cell(metric)}</td>"
        f"<td>{light(metric.quality)}</td></tr>"
    )


def value_cell(metric: Metric, *, unit: bool = True) -> str:
    """Format a value as HTML, with its 95 % interval on the line below. `unit` tells whether to show the unit."""
    value, low, high, name = _numbers(metric)
    return f"{value}{f' <span>{shown_in_html(name)}</span>' if unit and name else ''}<small>{low} to {high}</small>"


def _numbers(metric: Metric) -> tuple[str, str, str, str]:
    """Format value, low and high, and return the unit: fractions as percent, small lengths as centimetres."""
    factor, unit = {"share": (100.0, "%"), "log jerk": (1.0, "")}.get(metric.unit, (1.0, metric.unit))
    if unit == "score":
        unit = f"of {SCORES[name_parts(metric)[0]][-1][0]}"
    if unit == "m" and abs(metric.value) < 1:
        factor, unit = 100.0, "cm"
    values = [factor * one for one in (metric.value, metric.low, metric.high)]
    digits = {"repetitions": 0, "%": 0, "degrees": 0, "steps/min": 0, "cm": 0, "m": 2, "m/s": 2, "s": 2}.get(unit, 1)
    value, low, high = (_rounded(one, digits) for one in values)
    return value, low, high, unit


def _rounded(value: float, digits: int = 0) -> str:
    """Format a number with fixed digits and a typographic minus sign; zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "\u2212" if float(text) else "")


def jump_table(table: Recording, metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield the HTML of a table with one row for each jump."""
    jumps: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        jumps.setdefault(f"{name_parts(metric)[0]} {metric.start}", {})[name_parts(metric)[1]] = metric
    units = ["&deg;" if "knee" in name else "cm" for name in JUMP_COLUMNS]
    heads = "".join(f"<th>{name}, {unit}</th>" for name, unit in zip(JUMP_COLUMNS.values(), units, strict=True))
    yield f"<table class='narrow'><tr><th>jump</th>{heads}</tr>"
    for jump in jumps.values():
        first = next(iter(jump.values()))
        frame = table.frames[int(np.argmin(np.abs(table.timestamps - first.start)))]
        where = f"{first.start:.1f} s, frame {frame}"
        cells = "".join(f"<td class='v'>{_cell(jump.get(name))}</td>" for name in JUMP_COLUMNS)
        yield f"<tr><td>{name_parts(first)[0].removeprefix('jump ')}<small>{where}</small></td>{cells}</tr>"
    yield "</table>\n"
    yield from reasons(metrics)
    yield '<ul class="quiet">'
    yield from (f"<li>{JUMP_COLUMNS[name]}: {name}, {text}</li>" for name, text in JUMPS.items())
    yield "</ul>\n"


def _cell(metric: Metric | None) -> str:
    """Format the quality sign, the value and the interval, without a unit."""
    if metric is None:
        return ""
    factor = 100.0 if metric.unit == "m" else 1.0
    value, low, high = (_rounded(factor * one) for one in (metric.value, metric.low, metric.high))
    sign = f'<span class="q {metric.quality}" title="{LIGHTS[metric.quality]}"></span>'
    return f"{sign}{value}<small>{low} to {high}</small>"


def range_table(movement: str, angles: Sequence[str], by_name: dict[str, Metric]) -> Iterator[str]:
    """Yield the HTML of a table of ranges of motion: left, right and difference, or one value for the trunk."""
    yield "<table class='narrow'><tr><th>angle</th><th>left</th><th>right</th><th>left \u2212 right</th></tr>"
    shown = []
    for angle in angles:
        sides = [by_name.get(f"{movement}: {angle}, {side}: range of motion") for side in ("left", "right")]
        cells = [*sides, by_name.get(f"{movement}: {angle}: range of motion, left less right")]
        if any(sides):
            values = "".join(f"<td class='v'>{_cell(cell)}</td>" for cell in cells)
        else:
            cells = [by_name[f"{movement}: {angle}: range of motion"]]
            values = f"<td class='v all' colspan='3'>{_cell(cells[0])}</td>"
        shown += [cell for cell in cells if cell is not None]
        yield f"<tr><td>{shown_in_html(angle)}</td>{values}</tr>"
    yield "</table>\n"
    yield from reasons(shown)


def reasons(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield the HTML of the reasons why quality flags of metrics are not green, each kind of reason once."""
    kinds: dict[str, str] = {}
    for part in (part for metric in metrics for part in metric.doubt.split("; ") if part):
        kinds.setdefault(re.sub(r"\d+", "", part), part)
    if kinds:
        signs = f"{light('green')} {light('amber')} {light('red')}"
        yield f'<p class="quiet">{signs}; care and weak here: {shown_in_html(", ".join(kinds.values()))}.</p>'


def light(quality: str) -> str:
    """Return the HTML of a quality flag ('green', 'amber' or 'red'): a coloured sign with a word."""
    return f'<span class="q {quality}">{LIGHTS[quality]}</span>'


def first_up(text: str) -> str:
    """Return the text with an upper-case first letter."""
    return text[:1].upper() + text[1:]


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
