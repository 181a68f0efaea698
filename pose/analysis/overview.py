"""One page and one table over the analyses of many clips."""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from pose.analysis.report_tables import light
from pose.structures.defaults import ANALYSIS_PAGE
from pose.utils.shown import shown_in_html
from pose.utils.whole_file import whole_file

TABLE = "analysis.csv"
_MEASURES = "analysis-figures.csv"  # in the folder of a clip
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class AnalysedClip:
    """A clip, and its rows of `analysis-figures.csv`."""

    name: str  # folder of its results, relative to that of the page
    problem: str  # why there is no analysis; empty if there is one
    rows: list[Row]


def read_clip(folder: Path, name: str, problem: str) -> AnalysedClip:
    """Read the measures of one clip whose results are in `folder / name`."""
    path = folder / name / _MEASURES
    if problem or not path.is_file():
        return AnalysedClip(name, problem or "no analysis", [])
    with path.open(encoding="utf-8", newline="") as file:
        return AnalysedClip(name, "", list(csv.DictReader(file)))


def write_overview(clips: Sequence[AnalysedClip], folder: Path) -> list[Path]:
    """Write `analysis.csv` with the measures of all clips, and the page that lists them; return both paths."""
    table, page = folder / TABLE, folder / ANALYSIS_PAGE
    columns = list(dict.fromkeys(key for clip in clips for row in clip.rows for key in row))
    with whole_file(table) as hidden, hidden.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["clip", *columns])
        writer.writeheader()
        writer.writerows({"clip": clip.name, **row} for clip in clips for row in clip.rows)
    with whole_file(page) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_page(clips))
    return [table, page]


def _page(clips: Sequence[AnalysedClip]) -> Iterator[str]:
    style = files("pose.analysis").joinpath("report.css").read_text(encoding="utf-8")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>Movement analysis of {len(clips)} clips</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    yield f"<h1>Movement analysis of {len(clips)} clips</h1>\n"
    yield "<table><tr><th>clip</th><th>person</th><th>measured</th></tr>\n"
    for clip in clips:
        link = f'<a href="{quote(clip.name)}/{ANALYSIS_PAGE}">{shown_in_html(clip.name)}</a>'
        if clip.problem:
            yield f"<tr><td>{shown_in_html(clip.name)}</td><td></td><td>{shown_in_html(clip.problem)}</td></tr>\n"
        for person, rows in _people(clip).items():
            groups = ", ".join(dict.fromkeys(row["group"] for row in rows))
            yield f"<tr><td>{link}</td><td>{shown_in_html(person)}</td><td>{shown_in_html(groups)}</td></tr>\n"
        if not clip.problem and not clip.rows:
            yield f"<tr><td>{link}</td><td></td><td>no measures</td></tr>\n"
    yield "</table>\n<h2>Measures</h2>\n"
    by_name: dict[tuple[str, str, str], list[tuple[str, Row]]] = defaultdict(list)
    for clip in clips:
        for row in clip.rows:
            by_name[row["group"], row["name"], row["unit"]].append((clip.name, row))
    for (_, name, unit), found in by_name.items():
        yield f"<details><summary>{shown_in_html(name)}, {shown_in_html(unit)} ({len(found)})</summary>\n<table>"
        yield "<tr><th>clip, person</th><th>value</th><th>quality</th></tr>\n"
        for clip_name, row in found:
            value = f"{float(row['value']):.3g}<small>{float(row['low']):.3g} to {float(row['high']):.3g}</small>"
            who = f"{shown_in_html(clip_name)}, {shown_in_html(row['person'])}"
            yield f"<tr><td>{who}</td><td class='v'>{value}</td><td>{light(row['quality'])}</td></tr>\n"
        yield "</table></details>\n"
    yield "</body>\n</html>\n"


def _people(clip: AnalysedClip) -> Mapping[str, list[Row]]:
    people: dict[str, list[Row]] = {}
    for row in clip.rows:
        people.setdefault(row["person"], []).append(row)
    return people
