"""Compare two people, or two recordings of one: measures, curves over the cycle, and key moments side by side."""

import base64
import csv
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from pathlib import Path

from pose.analysis import Analysis
from pose.analysis.charts import cycle_chart
from pose.analysis.metrics import NORMAL_95, Curve, worst
from pose.analysis.moments import key_events, moments
from pose.errors import UsageError
from pose.results import Recording
from pose.utils.shown import shown_in_html
from pose.utils.whole_file import whole_file

TABLE, PAGE = "comparison.csv", "comparison.html"


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the two people compared."""

    title: str  # name of the recording and id
    table: Recording
    analysis: Analysis
    person: int
    video: Path | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of both people."""

    name: str
    unit: str
    first: float
    second: float
    difference: float  # second less first
    low: float  # lower end of the 95 % interval of the difference
    high: float
    quality: str  # the worse of both


def subject(title: str, table: Recording, analysis: Analysis, person: int | None, video: Path | None = None) -> Subject:
    """Return the side of a person, by default with the most measures; UsageError without measures."""
    measured = [metric.person for metric in analysis.metrics]
    if not measured or (person is not None and person not in measured):
        who = "anybody" if person is None else f"person {person}"
        known = ", ".join(map(str, sorted(set(measured)))) or "nobody"
        raise UsageError(f"compare: {title} has no measures of {who}; measured: {known}")
    chosen = max(sorted(set(measured)), key=measured.count) if person is None else person
    return Subject(f"{title}, person {chosen}", table, analysis, chosen, video)


def differences(first: Subject, second: Subject) -> list[Difference]:
    """Return the measures that both people have; of several of one name, the first."""
    others = {metric.name: metric for metric in reversed(second.analysis.metrics) if metric.person == second.person}
    found = {}
    for one in first.analysis.metrics:
        other = others.get(one.name)
        if one.person != first.person or other is None or one.name in found:
            continue
        low = math.hypot(one.high - one.value, other.value - other.low)
        high = math.hypot(one.value - one.low, other.high - other.value)
        change = other.value - one.value
        quality = worst([one.quality, other.quality])
        found[one.name] = Difference(
            one.name, one.unit, one.value, other.value, change, change - low, change + high, quality
        )  # fmt: skip
    return [*found.values(), *(_of_curves(*pair) for pair in curve_pairs(first, second))]


def _of_curves(one: Curve, other: Curve) -> Difference:
    """Return the largest difference of two mean curves over the cycle."""
    changes = [after - before for before, after in zip(one.mean, other.mean, strict=True)]
    at = max(range(len(changes)), key=lambda percent: abs(changes[percent]))
    spreads = [curve.sd[at] / math.sqrt(curve.count) for curve in (one, other)]
    half = NORMAL_95 * math.hypot(one.error, other.error, *spreads)
    name = f"{_title(one)}: largest difference of the curves, at {at} %"
    quality, change = worst([one.quality, other.quality]), changes[at]
    return Difference(name, "degrees", one.mean[at], other.mean[at], change, change - half, change + half, quality)


def curve_pairs(first: Subject, second: Subject) -> list[tuple[Curve, Curve]]:
    """Return the curves that both people have; of several of one name, the first."""

    def of(side: Subject) -> dict[tuple[str, str, str], Curve]:
        curves = [curve for curve in side.analysis.curves if curve.person == side.person]
        return {(curve.movement, curve.angle, curve.side): curve for curve in reversed(curves)}

    others = of(second)
    return [(curve, others[key]) for key, curve in reversed(of(first).items()) if key in others]


def _title(curve: Curve) -> str:
    return f"{curve.movement}: {curve.angle}{f', {curve.side}' if curve.side else ''}"


def write_comparison(first: Subject, second: Subject, folder: Path) -> list[Path]:
    """Write the comparison as table and page; UsageError if the two have no measure in common."""
    rows = differences(first, second)
    if not rows:
        raise UsageError(f"compare: {first.title} and {second.title} have no measure in common")
    table, page = folder / TABLE, folder / PAGE
    with whole_file(table) as hidden, hidden.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Difference)])
        writer.writeheader()
        for row in rows:
            cells = asdict(row).items()
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in cells})
    with whole_file(page) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_page(first, second, rows))
    return [table, page]


def _page(first: Subject, second: Subject, rows: list[Difference]) -> Iterator[str]:
    style = files("pose.analysis").joinpath("report.css").read_text(encoding="utf-8")
    a, b = shown_in_html(first.title), shown_in_html(second.title)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{a} and {b}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{a} and {b}</h1>\n"
    yield "<p>Difference: second less first, with its 95 % interval. Bold: the interval does not contain 0.</p>\n"
    yield f"<table><tr><th>measure</th><th>{a}</th><th>{b}</th><th>difference</th></tr>\n"
    for row in rows:
        change = f"{row.difference:+.3g} ({row.low:+.3g} to {row.high:+.3g})"
        change = f"<b>{change}</b>" if row.low > 0 or row.high < 0 else change
        head = f'<td>{shown_in_html(row.name)}, {row.unit} <span class="q {row.quality}"></span></td>'
        yield f"<tr>{head}<td>{row.first:.3g}</td><td>{row.second:.3g}</td><td>{change}</td></tr>\n"
    yield "</table>\n"
    yield from _moments(first, second)
    yield from _curves(first, second)
    yield "</body>\n</html>\n"


def _curves(first: Subject, second: Subject) -> Iterator[str]:
    pairs = curve_pairs(first, second)
    if not pairs:
        return
    yield f'<h2>Joint angles</h2>\n<p class="legend"><span class="l">{shown_in_html(first.title)}</span>'
    yield f'<span class="r">{shown_in_html(second.title)} (dashed)</span></p>\n<div class="grid">'
    for one, other in pairs:
        unit = "gait cycle" if one.movement in ("walking", "running") else "repetition"
        chart = cycle_chart([replace(one, side="left"), replace(other, side="right")], unit)
        yield f"<figure><b>{shown_in_html(_title(one))}</b>{chart}</figure>"
    yield "</div>\n"


def _moments(first: Subject, second: Subject) -> Iterator[str]:
    """Yield the images of the first event of each name that both have, side by side."""
    events = [{(one.name, one.side): one for one in reversed(key_events(of.analysis, of.person))}
              for of in (first, second)]  # fmt: skip
    both = [key for key in events[0] if key in events[1]]
    if not both:
        return
    yield '<h2>Key moments</h2>\n<div class="images">'
    for name, side in reversed(both):
        for of, own in zip((first, second), events, strict=True):
            (moment,) = moments(of.table, [own[name, side]], of.video)
            data, label = base64.b64encode(moment.jpeg).decode(), shown_in_html(f"{side} {name}".strip())
            image = f'<img src="data:image/jpeg;base64,{data}" alt="{label}">'
            text = f"{shown_in_html(of.title)}; {moment.event.time:.2f} s"
            yield f"<figure>{image}<b>{label}</b><figcaption>{text}</figcaption></figure>"
    yield "</div>\n"
