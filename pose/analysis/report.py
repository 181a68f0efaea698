"""The report of an analysis: one HTML file without scripts or links, for phones and A4 paper."""

import base64
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import numpy as np

from pose.analysis import Analysis, Curve, Figure
from pose.analysis.charts import cycle_chart, series_chart
from pose.analysis.moments import Moment, key_events, moments
from pose.analysis.norms import SOURCE
from pose.files import PoseTable
from pose.system.shown import shown_in_html
from pose.system.whole_file import whole_file
from pose.view.camera_plan import cameras_section

NAME = "analysis.html"
MOST_IMAGES = 60  # maximum images of a page; further people have none
TITLES = {
    "gait": "Walking and running",
    "repetitions": "Repetitions",
    "jumps": "Jumps",
    "sit-to-stand": "Standing up and sitting down",
    "angles": "Joint angles",
    "ergonomics": "Posture at work (RULA and REBA)",
}
LIGHTS = {"green": "good", "amber": "care", "red": "weak"}
_KEY = """<div class="key"><p><b>How to read this page</b></p><ul>
<li>The range under a value contains the true value in 19 of 20 cases.
A difference smaller than its range may be chance.</li>
<li><span class="q green">good</span>: reliable. <span class="q amber">care</span>: usable, the reason is given.
<span class="q red">weak</span>: do not base decisions on it.</li>
<li>Body lengths come from {lengths} unless the body height was given. This page is no medical diagnosis.</li>
</ul></div>"""


def write_report(analysis: Analysis, table: PoseTable, target: Path, name: str, video: Path | None = None) -> None:
    """Write the report.

    Args:
        analysis: Analysis of the table.
        table: The result.
        target: The HTML file.
        name: Name of the source, for the title.
        video: Video of the result, for images. Without it, skeletons are drawn.

    Raises:
        PoseError: If the file cannot be written.
    """
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_page(analysis, table, name, video))


def _page(analysis: Analysis, table: PoseTable, name: str, video: Path | None) -> Iterator[str]:
    title = shown_in_html(name)
    style = files("pose.analysis").joinpath("report.css").read_text(encoding="utf-8")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>Movement analysis of {title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    yield f"<h1>Movement analysis: {title}</h1>\n"
    if len(table.frames):
        first, last = table.timestamps[0], table.timestamps[-1]
        yield f'<p class="quiet">{len(table.frames)} frames, {first:.1f} to {last:.1f} s of the video</p>\n'
    several = table.run is not None and bool(table.run.cameras)
    yield _KEY.format(lengths="several cameras and the lifter's scale" if several else "one camera")
    yield from cameras_section(table)
    people = sorted({row.person for row in analysis.figures} | {row.person for row in analysis.omissions})
    if not people:
        yield "<p>The result contains no person.</p>"
    images = 0
    for person in people:
        events = key_events(analysis, person) if images < MOST_IMAGES else []
        shown = moments(table, events, video)
        images += len(shown)
        yield from _person(analysis, table, person, shown)
    yield "</body>\n</html>\n"


def _person(analysis: Analysis, table: PoseTable, person: int, shown: list[Moment]) -> Iterator[str]:
    yield f'<section class="person"><h2>Person {person}</h2>\n'
    if shown:
        yield '<h3>Key moments</h3>\n<div class="images">'
        yield from (_image(moment) for moment in shown)
        yield "</div>\n"
    own = [figure for figure in analysis.figures if figure.person == person]
    for group, title in TITLES.items():
        figures = [figure for figure in own if figure.group == group]
        if not figures:
            continue
        yield f"<h3>{title}</h3>\n"
        if group == "angles":
            curves = [curve for curve in analysis.curves if curve.person == person]
            yield from _angles(table, figures, curves)
        else:
            yield _table(table, figures)
        series = [one for one in analysis.series if one.person == person and one.group == group]
        if series:
            yield '<div class="grid">'
            for one in series:
                caption = _frames(table, one.times[0], one.times[-1])
                yield _figure(one.name, series_chart(one), caption)
            yield "</div>\n"
    omitted = [row for row in analysis.omissions if row.person == person]
    if omitted:
        yield '<h3>Not measured</h3>\n<ul class="quiet">'
        yield from (f"<li>{TITLES.get(row.group, 'No figures')}: {shown_in_html(row.reason)}</li>" for row in omitted)
        yield "</ul>\n"
    yield "</section>\n"


def _image(moment: Moment) -> str:
    event = moment.event
    label = _first_up(f"{event.side} {event.name}".strip())
    data = base64.b64encode(moment.jpeg).decode()
    text = f"{event.time:.2f} s, frame {moment.frame}{'' if moment.filmed else '; drawn'}"
    image = f'<img src="data:image/jpeg;base64,{data}" alt="{shown_in_html(label)}">'
    return f"<figure>{image}<b>{shown_in_html(label)}</b><figcaption>{text}</figcaption></figure>"


def _table(table: PoseTable, figures: list[Figure]) -> str:
    rows = "".join(_row(table, figure) for figure in figures)
    return f"<table><tr><th>measure</th><th>value and range</th><th>quality</th></tr>{rows}</table>\n"


def _row(table: PoseTable, figure: Figure) -> str:
    notes = [figure.note, figure.doubt, _source(table, figure)]
    small = "".join(f"<small>{shown_in_html(note)}</small>" for note in notes if note)
    value, low, high, unit = _numbers(figure)
    between = "" if figure.low == figure.high else f"<small>{low} to {high}</small>"
    number = f"<td class='v'>{value}&nbsp;{shown_in_html(unit)}{between}</td>"
    return f"<tr><td>{shown_in_html(figure.name)}{small}</td>{number}<td>{_light(figure.quality)}</td></tr>"


def _numbers(figure: Figure) -> tuple[str, str, str, str]:
    """Value, low and high as text, and the unit: fractions as percent, small lengths as centimetres."""
    factor, unit = {"share": (100.0, "%")}.get(figure.unit, (1.0, figure.unit))
    if figure.unit == "m" and abs(figure.value) < 1:
        factor, unit = 100.0, "cm"
    values = [factor * one for one in (figure.value, figure.low, figure.high)]
    size = abs(values[0])
    digits = 0 if unit in ("repetitions", "%", "degrees", "steps/min") or size >= 100 else 1 if size >= 10 else 2
    if unit == "cm":
        digits = 1 if size < 10 else 0
    shown = [f"{value:.{digits}f}".replace("-", "\u2212") for value in values]
    return shown[0], shown[1], shown[2], unit


def _angles(table: PoseTable, figures: list[Figure], curves: list[Curve]) -> Iterator[str]:
    """Range of motion in one table, and the curves, for each movement."""
    by_name = {figure.name: figure for figure in figures}
    for movement, group in groupby(curves, key=lambda curve: curve.movement):
        own = list(group)
        angles = list(dict.fromkeys(curve.angle for curve in own))
        unit = "gait cycle" if movement in ("walking", "running") else "repetition"
        start, end = min(one.start for one in own), max(one.end for one in own)
        counts = {one.side: one.count for one in own}
        cycles = ", ".join(f"{side or 'trunk'} {count}" for side, count in counts.items() if side) or str(own[0].count)
        yield f"<p><b>{shown_in_html(_first_up(movement))}</b>: range of motion and its range, degrees.</p>"
        yield f'<p class="quiet">{_frames(table, start, end)}; cycles: {cycles}</p>'
        yield "<table><tr><th>angle</th><th>left</th><th>right</th><th>quality</th></tr>"
        for angle in angles:
            cells = [by_name.get(f"{movement}: {angle}, {side}: range of motion") for side in ("left", "right")]
            if not any(cells):
                cells = [by_name.get(f"{movement}: {angle}: range of motion"), None]
            quality = next(cell.quality for cell in cells if cell)
            values = "".join(f"<td class='v'>{_degrees(cell)}</td>" for cell in cells)
            yield f"<tr><td>{shown_in_html(angle)}</td>{values}<td>{_light(quality)}</td></tr>"
        yield "</table>\n"
        norm = any(curve.norm_mean for curve in own)
        yield '<p class="legend"><span class="l">left</span><span class="r">right (dashed)</span>'
        yield f"{'<span class=n>grey: ' + SOURCE + '</span>' if norm else ''}</p>"
        yield f'<p class="quiet">Lines: mean of the cycles; bands: one standard deviation; 0 %: {_zero(unit)}.</p>'
        yield '<div class="grid">'
        for angle in angles:
            parts = [curve for curve in own if curve.angle == angle]
            error = f"error of the method: {parts[0].error:.0f} degrees"
            yield _figure(angle, cycle_chart(parts, unit), f"{_frames(table, start, end)}; {error}")
        yield "</div>\n"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def _zero(unit: str) -> str:
    return "foot strike of the same leg" if unit == "gait cycle" else "start of the repetition"


def _degrees(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return f"{figure.value:.0f}<small>{figure.low:.0f} to {figure.high:.0f}</small>"


def _figure(title: str, chart: str, caption: str) -> str:
    return f"<figure><b>{shown_in_html(_first_up(title))}</b>{chart}<figcaption>{caption}</figcaption></figure>"


def _light(quality: str) -> str:
    return f'<span class="q {quality}">{LIGHTS[quality]}</span>'


def _source(table: PoseTable, figure: Figure) -> str:
    """The source of a figure."""
    what = {"gait": "strides", "repetitions": "repetitions", "sit-to-stand": "times"}.get(figure.group, "")
    count = f"; {figure.count} {what}" if what and figure.count > 1 else ""
    return f"{_frames(table, figure.start, figure.end)}{count}"


def _frames(table: PoseTable, start: float, end: float) -> str:
    first, last = (int(np.argmin(np.abs(table.timestamps - time))) for time in (start, end))
    return f"{start:.1f} to {end:.1f} s (frames {table.frames[first]} to {table.frames[last]})"
