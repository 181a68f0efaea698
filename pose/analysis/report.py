"""The report of an analysis: one HTML file without scripts or links, for phones and A4 paper."""

import base64
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from pose.analysis import Analysis, Curve, Metric
from pose.analysis.charts import cycle_chart, series_chart
from pose.analysis.moments import Moment, key_events, moments
from pose.analysis.report_tables import (
    ANGLES,
    LIGHTS,
    first_up,
    frames_between,
    jump_table,
    levels,
    metric_tables,
    name_parts,
    range_table,
)
from pose.results import Recording
from pose.structures.defaults import POSES_PAGE
from pose.utils.shown import shown_in_html
from pose.utils.whole_file import whole_file
from pose.view.camera_plan import cameras_section

MAX_IMAGES = 60  # maximum images of a page; further people have none
TITLES = {
    "gait": "Walking and running",
    "repetitions": "Repetitions",
    "throws": "Throws and strokes",
    "jumps": "Jumps",
    "sit-to-stand": "Standing up and sitting down",
    "angles": "Joint angles",
    "ergonomics": "Posture at work (RULA and REBA)",
}
_LEGEND = f"""<div class="key"><p><b>How to read this page</b></p><ul>
<li>The numbers below a value are its range: the true value lies in it in 19 of 20 cases. Two values whose
ranges overlap may be equal.</li>
<li><span class="q green">{LIGHTS["green"]}</span>: seen well. <span class="q amber">{LIGHTS["amber"]}</span>: usable
with care, the reason is given. <span class="q red">{LIGHTS["red"]}</span>: do not base decisions on it.</li>
<li>Left and right are those of the person.</li>
<li>Body lengths come from {{lengths}} unless the body height was given. This page is no medical diagnosis.</li>
</ul></div>"""


def write_report(
    analysis: Analysis, table: Recording, target: Path, name: str, video: Path | None = None, *, beside: bool = False
) -> None:
    """Write the report of an analysis as one HTML file, with a link to the page of the poses `beside` it."""
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_page(analysis, table, name, video, beside))


def _page(analysis: Analysis, table: Recording, name: str, video: Path | None, beside: bool) -> Iterator[str]:
    title = shown_in_html(name)
    style = files("pose.analysis").joinpath("report.css").read_text(encoding="utf-8")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>Movement analysis of {title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    yield f"<h1>Movement analysis: {title}</h1>\n"
    if beside:
        yield f'<p><a href="{POSES_PAGE}">Video, 3D view and joint angles over time</a></p>\n'
    if len(table.frames):
        first, last = table.timestamps[0], table.timestamps[-1]
        yield f'<p class="quiet">{len(table.frames)} frames, {first:.1f} to {last:.1f} s of the video</p>\n'
    several = table.run is not None and bool(table.run.cameras)
    yield _LEGEND.format(lengths="several cameras and the lifter's scale" if several else "one camera")
    yield from cameras_section(table)
    people = sorted({row.person for row in analysis.metrics} | {row.person for row in analysis.omissions})
    if not people:
        yield "<p>The result contains no person.</p>"
    if len(people) > 1:
        yield '<ul class="people">'
        yield from (f'<li><a href="#person-{one}">Person {one}</a>: {_summary(analysis, one)}</li>' for one in people)
        yield "</ul>\n"
    images = 0
    for person in people:
        events = key_events(analysis, person) if images < MAX_IMAGES else []
        shown = moments(table, events, video)
        images += len(shown)
        yield from _person(analysis, table, person, shown)
    yield "</body>\n</html>\n"


def _summary(analysis: Analysis, person: int) -> str:
    """Summarise the findings of a person in a few words."""
    metrics = [metric for metric in analysis.metrics if metric.person == person]
    phrases = [one.note.partition(";")[0] for one in metrics if one.name == "cadence"]
    phrases += [f"{name_parts(one)[0]} ({one.value:.0f})" for one in metrics if one.name.endswith(": count")]
    jumps = sum(one.group == "jumps" and one.name.endswith("flight time") for one in metrics)
    phrases += [f"{jumps} jump{'s' if jumps > 1 else ''}"] if jumps else []
    phrases += [f"{name_parts(one)[0]} ({one.count})" for one in metrics if one.group == "sit-to-stand"]
    phrases += [name_parts(one)[0] for one in metrics if one.group == "throws" and one.name.endswith("hand speed")]
    phrases += ["posture"] if any(one.group == "ergonomics" for one in metrics) else []
    return shown_in_html(", ".join(phrases) or "no metrics")


def _person(analysis: Analysis, table: Recording, person: int, shown: list[Moment]) -> Iterator[str]:
    yield f'<section class="person" id="person-{person}"><h2>Person {person}</h2>\n'
    if shown:
        yield '<h3>Key moments</h3>\n<div class="images">'
        yield from (_image(analysis, moment) for moment in shown)
        yield "</div>\n"
    person_metrics = [metric for metric in analysis.metrics if metric.person == person]
    for group, title in TITLES.items():
        metrics = [metric for metric in person_metrics if metric.group == group]
        if not metrics:
            continue
        yield f"<h3>{title}</h3>\n"
        if group == "angles":
            curves = [curve for curve in analysis.curves if curve.person == person]
            yield from _angles(table, metrics, curves, analysis.norms_source)
        else:
            yield from (jump_table if group == "jumps" else metric_tables)(table, metrics)
        series = [line for line in analysis.series if line.person == person and line.group == group]
        if series:
            yield '<div class="grid">'
            for line in series:
                caption = f"{levels(line.name)}; {frames_between(table, line.times[0], line.times[-1])}"
                yield _figure(f"{line.name} over time", series_chart(line), first_up(caption))
            yield "</div>\n"
    omitted = [row for row in analysis.omissions if row.person == person]
    if omitted:
        yield '<h3>Not measured</h3>\n<ul class="quiet">'
        yield from (f"<li>{TITLES.get(row.group, 'No metrics')}: {shown_in_html(row.reason)}</li>" for row in omitted)
        yield "</ul>\n"
    yield "</section>\n"


def _image(analysis: Analysis, moment: Moment) -> str:
    label, detail = moment_label(analysis, moment)
    data = base64.b64encode(moment.jpeg).decode()
    text = f"{detail}{moment.event.time:.2f} s, frame {moment.frame}{'' if moment.filmed else '; drawn'}"
    image = f'<img src="data:image/jpeg;base64,{data}" alt="{shown_in_html(label)}">'
    return f"<figure>{image}<b>{shown_in_html(label)}</b><figcaption>{text}</figcaption></figure>"


def moment_label(analysis: Analysis, moment: Moment) -> tuple[str, str]:
    """Return the label of an image, such as 'Squat 2 of 3: turning point', and details to show before its time."""
    event = moment.event
    same = sorted(
        one.time
        for one in analysis.events
        if (one.person, one.name, one.side) == (event.person, event.name, event.side)
    )
    number = same.index(event.time) + 1
    if event.group == "ergonomics":
        scores = [
            f"{one.name} {one.values[min(range(len(one.times)), key=lambda row: abs(one.times[row] - event.time))]:.0f}"
            for one in analysis.series
            if one.person == event.person
        ]
        return "Worst posture", f"{', '.join(scores)}; "
    if event.group == "repetitions":
        movement = event.name.removesuffix(" turning point")
        odd = any(
            one.person == event.person and one.name.endswith("largest deviation") and one.start <= event.time <= one.end
            for one in analysis.metrics
        )
        return f"{first_up(movement)} {number} of {len(same)}: turning point", "largest deviation; " if odd else ""
    if event.group == "jumps":
        return f"Jump {number}: {event.name}", ""
    return first_up(f"{event.side} {event.name}".strip().lower()), ""


def _angles(table: Recording, metrics: list[Metric], curves: list[Curve], source: str) -> Iterator[str]:
    """Yield the range of motion in one table, and the curves, for each movement and part of the video."""
    by_part = groupby(curves, key=lambda curve: (curve.movement, _part(curves, curve)))
    for (movement, _), group in by_part:
        part_curves = list(group)
        start, end = min(one.start for one in part_curves), max(one.end for one in part_curves)
        by_name = {metric.name: metric for metric in metrics if start <= metric.start and metric.end <= end}
        angles = list(dict.fromkeys(curve.angle for curve in part_curves))
        unit = "gait cycle" if movement in ("walking", "running") else "repetition"
        counts = {one.side: one.count for one in part_curves}
        cycles = ", ".join(f"{side} {count}" for side, count in counts.items() if side) or str(part_curves[0].count)
        yield f"<p><b>{shown_in_html(first_up(movement))}</b>: range of motion, degrees "
        yield f"(largest less smallest angle of a {unit}).</p>"
        yield f'<p class="quiet">{frames_between(table, start, end)}; {unit}s: {cycles}</p>'
        yield from range_table(movement, angles, by_name)
        norm = any(curve.norm_mean for curve in part_curves)
        yield '<p class="legend"><span class="l">left</span><span class="r">right (dashed)</span>'
        yield f"{f'<span class=n>grey: {shown_in_html(source)}</span>' if norm else ''}</p>"
        yield f'<p class="quiet">Lines: mean of the {unit}s; bands: one standard deviation; 0 %: {_zero(unit)}.</p>'
        yield '<div class="grid">'
        for angle in angles:
            of_angle = [curve for curve in part_curves if curve.angle == angle]
            where = frames_between(table, min(one.start for one in of_angle), max(one.end for one in of_angle))
            error = f"standard error of the method {of_angle[0].error:.0f} degrees"
            yield _figure(angle, cycle_chart(of_angle, unit), f"{ANGLES[angle]}; {error}; {where}")
        yield "</div>\n"


def _part(curves: Sequence[Curve], curve: Curve) -> int:
    """Return the number of the part of the video from which a curve comes."""
    same = [one for one in curves if (one.movement, one.angle, one.side) == (curve.movement, curve.angle, curve.side)]
    return next(at for at, one in enumerate(same) if one is curve)


def _zero(unit: str) -> str:
    return "foot strike of the same leg" if unit == "gait cycle" else "start of the repetition"


def _figure(title: str, chart: str, caption: str) -> str:
    name, text = shown_in_html(first_up(title)), shown_in_html(caption)
    return f"<figure><b>{name}</b>{chart}<figcaption>{text}</figcaption></figure>"
