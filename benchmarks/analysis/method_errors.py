"""Errors of lifted angles, joints and metrics: docs/reference/method-errors.md and the intervals of the analysis.

    python -m benchmarks.analysis method-errors --gait mocap/gait --save gait.json
    python -m benchmarks.analysis method-errors --ui-prmd mocap/ui-prmd --every 4 --views 3 --save exercises.json
    python -m benchmarks.analysis method-errors --jumps cmu.npz,snu.npz --views 4 --save jumps.json
    python -m benchmarks.analysis method-errors --read gait.json,exercises.json,jumps.json

Walks of six people, exercises of UI-PRMD and jumps of CMU 16 and SNU's woody, filmed by virtual cameras on tripods
(`--views`, from random directions) through a detector's skeleton with its errors, lifted by `offline` and transformed
to the world, against the recorded joints. Angles and joints: unknown body height. Metrics: known body height. Errors
of the calibration people become `pose/analysis/method_errors.csv` (angles by view) and `metric_errors.csv`, from which
the analysis takes its intervals; the page also has the share of intervals that contain the truth for people held out.
`--every N`: each Nth recording.
"""

import csv
import json
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from pathlib import Path

import numpy as np
from pose_datasets.mocap import Clip, load_clips

from benchmarks.common.recordings import (
    HELD_OUT,
    Seen,
    exact,
    filmed,
    gait_trials,
    part_of,
    seen_again,
    ui_prmd_recordings,
)
from pose.analysis.curves import ANY, COLUMNS, METHOD_ERRORS, VIEWS, body_angles, is_defined, view_of
from pose.analysis.exercise import JUMP_FIELDS, repetition_metrics
from pose.analysis.jumps import find_jumps
from pose.analysis.metrics import METRIC_ERRORS, NORMAL_95, RELATIVE, _metric_errors, method_sd
from pose.analysis.repetitions import find_repetitions
from pose.analysis.walking import gait_metrics
from pose.body.gait import analyse_gait
from pose.body.segments import SIDES, Motion
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

JUMPERS = ("16", "snu-woody")  # the lifter was not trained on them
AROUND_JUMP_S, SAME_JUMP_S = 2.0, 0.3
MIN_METRIC_VALUES = 5  # of a person
Values = dict[tuple[str, str, str], list[float]]  # by quantity, angle and view: errors in degrees


def spans_of(motion: Motion, side: str) -> list[tuple[float, float]]:
    """The cycles of a walk or of an exercise, s."""
    strides = [one for one in analyse_gait(motion).strides if one.straight and side in (one.side, "")]
    if strides:
        return [(one.start, one.end) for one in strides]
    return [(one.start, one.end) for one in find_repetitions(motion).items if one.complete]


def add_angles(one: Seen, values: Values) -> None:
    """Add the errors of angles, of mean ranges of motion over at least two cycles, and of left-right differences."""
    view = view_of(one.true)
    true, lifted = body_angles(one.true), body_angles(one.lifted)
    ranges: dict[tuple[str, str], tuple[float, float]] = {}
    for angle, side in true:
        known = (is_defined(true, angle, side) > 0) & (is_defined(lifted, angle, side) > 0)
        errors = (lifted[angle, side] - true[angle, side])[known]
        errors = (errors + 180) % 360 - 180
        for label in (view, ANY):
            values["error", angle, label] += errors[np.isfinite(errors)].tolist()
        pairs = []
        for start, end in spans_of(one.true, side):
            rows = (one.true.times >= start) & (one.true.times <= end)
            if rows.any() and known[rows].all():
                pairs.append([float(np.ptp(of[angle, side][rows])) for of in (lifted, true)])
        if len(pairs) > 1:
            ranges[angle, side] = a, b = tuple(np.mean(pairs, axis=0))
            for label in (view, ANY):
                values["range", angle, label].append(a - b)
    for angle in {angle for angle, side in ranges if side and (angle, "left") in ranges and (angle, "right") in ranges}:
        (la, lb), (ra, rb) = (ranges[angle, side] for side in SIDES)
        for label in (view, ANY):
            values["difference", angle, label].append((la - ra) - (lb - rb))


def add_metrics(one: Seen, values: Values, jumps: bool) -> None:
    """Add the errors of metrics and their spread over observations, by person; relative where the table says so."""
    pairs: list[tuple[str, float, float, float]] = []
    for group, part in () if jumps else (("gait", gait_metrics), ("repetitions", repetition_metrics)):
        true, lifted = ({_bare(metric.name): metric for metric in part(1, of)[0]} for of in (one.true, one.sized))
        for name in true.keys() & lifted.keys():
            mine, key = lifted[name], f"{group}: {_bare_side(name)}"
            if key in _metric_errors():
                own = method_sd(group, _bare_side(name), mine.value)
                spread = max(((mine.high - mine.value) / NORMAL_95) ** 2 - own**2, 0.0) ** 0.5
                pairs.append((key, mine.value, true[name].value, spread))
    for mine in find_jumps(one.sized) if jumps else ():
        near = [jump for jump in find_jumps(one.true) if abs(jump.takeoff - mine.takeoff) < SAME_JUMP_S]
        for name, field in JUMP_FIELDS.items() if near else ():
            pairs.append((f"jumps: {name}", getattr(mine, field), getattr(near[0], field), 0.0))
    for name, value, truth, spread in pairs:
        size = abs(truth) if name in RELATIVE else 1.0
        if size:
            values["metric", name, one.subject].append((value - truth) / size)
            values["observations", name, one.subject].append(spread / size)


def _bare(name: str) -> str:
    return name.rpartition(": ")[2] if "contacts less Zeni" not in name else name


def _bare_side(name: str) -> str:
    return name.removesuffix(", left").removesuffix(", right")


def metric_rows(values: Values) -> list[dict[str, str]]:
    """The rows of `metric_errors.csv`: the widest spread of a person, since few people were measured."""
    people: dict[str, list[list[float]]] = defaultdict(list)
    for (kind, name, _), errors in sorted(values.items()):
        if kind == "metric":
            people[name].append(errors)
    rows = []
    for name, each in people.items():
        enough = [errors for errors in each if len(errors) >= MIN_METRIC_VALUES]
        if enough:
            sd, count = max(map(spread, enough)), sum(map(len, each))
            row = {"metric": name, "relative": str(int(name in RELATIVE)), "sd": f"{sd:.3g}", "values": str(count)}
            rows.append(row | {"people": str(len(each))})
    return rows


def merged(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of the table with those measured now in place of earlier ones."""
    with METRIC_ERRORS.open(encoding="utf-8", newline="") as file:
        earlier = {row["metric"]: row for row in csv.DictReader(file)}
    return [row for _, row in sorted((earlier | {row["metric"]: row for row in rows}).items())]


def metric_lines(rows: list[dict[str, str]], held_out: Values) -> list[str]:
    """The table of the page."""
    lines = ["| metric | sd | values, people | held out: inside |", "|---|---|---|---|"]
    for row in rows:
        name, sd = row["metric"], float(row["sd"])
        inside = [
            abs(error) <= NORMAL_95 * np.hypot(sd, spread)
            for (kind, other, person), errors in held_out.items()
            if kind == "metric" and other == name
            for error, spread in zip(errors, held_out["observations", name, person], strict=True)
        ]
        shown = f"{100 * sd:.3g} %" if row["relative"] == "1" else row["sd"]
        covered = f"{sum(inside)} of {len(inside)}" if inside else "earlier measurement"
        lines.append(f"| {name} | {shown} | {row['values']}, {row['people']} | {covered} |")
    return lines


def metric_section(rows: list[dict[str, str]], held_out: Values) -> list[str]:
    """The section of the page."""
    return [
        "## Metrics",
        "",
        "Standard deviation of the error of a metric of one walk, exercise or jump (the bound of 95 % of the errors, "
        "divided by 1.96; of the person with the widest) with known body height, in the metric's unit or in percent of "
        "its value; and how many recorded values of the people held out the 95 % intervals contain.",
        "",
        *metric_lines(rows, held_out),
    ]


def add_joints(one: Seen, values: Values) -> None:
    """Add the distances of the joints from the recorded ones, both relative to the pelvis and with one heading, mm."""
    turn = _turn(one.lifted.facing, one.true.facing)
    own = np.einsum("tij,tkj->tki", turn, one.lifted.joints - one.lifted.joints[:, :1])
    off = 1000 * np.linalg.norm(own - (one.true.joints - one.true.joints[:, :1]), axis=-1)
    for name, column in zip(H36M17.names, off.T, strict=True):
        for label in (view_of(one.true), ANY):
            values["joint", name.removeprefix("left_").removeprefix("right_"), label] += column.tolist()


def _turn(a: F64, b: F64) -> F64:
    """Rotations (T, 3, 3) about the vertical from headings `a` to `b` (T, 3)."""
    angle = np.arctan2(b[:, 0], b[:, 2]) - np.arctan2(a[:, 0], a[:, 2])
    zero, one, cosine, sine = np.zeros_like(angle), np.ones_like(angle), np.cos(angle), np.sin(angle)
    rows = [[cosine, zero, sine], [zero, one, zero], [-sine, zero, cosine]]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)


def spread(errors: list[float]) -> float:
    """Standard deviation whose 95 % interval contains 95 % of the errors."""
    return float(np.percentile(np.abs(errors), 95)) / NORMAL_95


def error_rows(values: Values) -> list[dict[str, str]]:
    """The rows of `method_errors.csv`; a view with fewer than 20 values has those of all views."""
    rows = []
    for angle in dict.fromkeys(angle for kind, angle, _ in values if kind == "error"):
        for view in (ANY, *VIEWS):
            cells = {"angle": angle, "view": view}
            for kind in COLUMNS:
                own, every = values.get((kind, angle, view), []), values.get((kind, angle, ANY), [])
                least = 20 if kind != "error" else 600
                found = own if len(own) >= least else every
                cells[kind] = f"{spread(found):.1f}" if found else ""
            rows.append(cells)
    return rows


def coverage(values: Values, rows: list[dict[str, str]]) -> dict[str, float]:
    """The share of errors of people held out within 1.96 times the standard deviation, by quantity."""
    table = {(row["angle"], row["view"]): row for row in rows}
    inside: dict[str, list[bool]] = defaultdict(list)
    for (kind, angle, view), errors in values.items():
        cell = table.get((angle, view), {}).get(kind, "")
        if view != ANY and cell:
            inside[kind] += (np.abs(errors) <= NORMAL_95 * float(cell)).tolist()
    return {kind: float(np.mean(flags)) for kind, flags in inside.items()}


def page(
    rows: list[dict[str, str]], metrics: list[dict[str, str]], kept: Values, held_out: Values, counts: dict[str, int]
) -> str:
    """The text of the page."""
    covered = coverage(held_out, rows)
    of = {(row["angle"], row["view"]): row for row in rows}
    lines = [
        "# Errors of the method by view",
        "",
        "How far are lifted joint angles and joints from motion capture, by the direction of the camera?",
        "",
        "Walks of six people, exercises of UI-PRMD, jumps of CMU, virtual cameras on tripods, a detector's errors, "
        "`offline`, unknown body height. Views by the angle between line of sight and sagittal plane: *side* above "
        "60 degrees, *front* (or back) below 30. Recordings: "
        + ", ".join(f"{view} {counts.get(view, 0)}" for view in VIEWS)
        + ". `python -m benchmarks.analysis method-errors` writes this page, `pose/analysis/method_errors.csv`, from "
        "which intervals of joint angles are computed, and `metric_errors.csv` for other metrics.",
        "",
        "## Joint angles",
        "",
        "Standard deviation in degrees (the bound of 95 % of the errors, divided by 1.96) of the error of the angle in "
        "a frame, of the mean range of motion over cycles, and of its left-right difference.",
        "",
        "| angle | " + " | ".join(VIEWS) + " |",
        "|---" * (len(VIEWS) + 1) + "|",
    ]
    for angle in dict.fromkeys(angle for angle, _ in of):
        cells = ("/".join(of[angle, view][kind] or "-" for kind in COLUMNS) for view in VIEWS)
        lines.append(f"| {angle} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"People held out ({', '.join(HELD_OUT)}): 95 % intervals contain "
        + ", ".join(f"{100 * share:.0f} % ({kind})" for kind, share in covered.items())
        + " of the recorded values.",
        "",
        *metric_section(metrics, held_out),
        "",
        "## Joints",
        "",
        "Median and 95 % bound of the distance from the recorded joint, relative to the pelvis, equal headings, mm:",
        "",
        "| joint | " + " | ".join(VIEWS) + " |",
        "|---" * (len(VIEWS) + 1) + "|",
    ]
    for joint in dict.fromkeys(name for kind, name, _ in kept if kind == "joint" and name != "pelvis"):
        found = [kept.get(("joint", joint, view), []) + held_out.get(("joint", joint, view), []) for view in VIEWS]
        cells = (f"{np.median(one):.0f}/{np.percentile(one, 95):.0f}" if one else "-" for one in found)
        lines.append(f"| {joint} | " + " | ".join(cells) + " |")
    lines.append("")
    return "\n".join(lines)


def jump_clips(files: list[Path]) -> list[Clip]:
    """Each jump of the jumpers in files of pose-prepare, with the time around it."""
    people = [(clip, exact(clip)) for file in files for clip in load_clips(file) if clip.subject in JUMPERS]
    return [
        part_of(clip, number, (jump.takeoff + jump.landing) / 2, AROUND_JUMP_S)
        for clip, motion in people
        if len(motion.times) > 30
        for number, jump in enumerate(find_jumps(motion))
    ]


def read(files: list[Path]) -> tuple[Values, Values, dict[str, int]]:
    """Read saved errors: of the calibration people, of those held out, and the number of recordings by view."""
    parts: tuple[Values, Values] = (defaultdict(list), defaultdict(list))
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        saved = json.loads(file.read_text(encoding="utf-8"))
        for values, rows in zip(parts, saved["errors"], strict=True):
            for kind, name, view, errors in rows:
                values[kind, name, view] += errors
        for view, count in saved["counts"].items():
            counts[view] += count
    return *parts, counts


def write_table(file: Path, rows: list[dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def add_options(parser: ArgumentParser) -> None:
    def paths(text: str) -> list[Path]:
        return [Path(one) for one in text.split(",")]

    parser.add_argument("--gait", type=Path)
    parser.add_argument("--ui-prmd", type=Path)
    parser.add_argument("--jumps", type=paths, help="files of pose-prepare")
    parser.add_argument("--save", type=Path, help="file of the errors")
    parser.add_argument("--read", type=paths, help="saved errors, from which the page and the tables are written")
    parser.add_argument("--page", type=Path, default=Path("docs/reference/method-errors.md"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--views", type=int, default=4)


def main(given: Namespace) -> None:
    if given.read:
        kept, held_out, counts = read(given.read)
        rows, metrics = error_rows(kept), merged(metric_rows(kept))
        write_table(METRIC_ERRORS, metrics)
        write_table(METHOD_ERRORS, rows)
        given.page.write_text(page(rows, metrics, kept, held_out, counts), encoding="utf-8")
        return
    clips = [trial.clip for trial in gait_trials(given.gait)] if given.gait else []
    clips += [clip for clip, _ in ui_prmd_recordings(given.ui_prmd).values()] if given.ui_prmd else []
    clips += jump_clips(given.jumps) if given.jumps else []
    clips = clips[:: given.every]
    parts: tuple[Values, Values] = (defaultdict(list), defaultdict(list))
    counts = defaultdict(int)
    for one in (one for n in range(given.views) for clip in clips for one in filmed(seen_again(clip, 100 + n))):
        values = parts[one.subject in HELD_OUT]
        add_metrics(one, values, bool(given.jumps))
        if not given.jumps:
            add_angles(one, values)
            add_joints(one, values)
            counts[view_of(one.true)] += 1
    rows = [[[*key, [round(error, 4) for error in errors]] for key, errors in values.items()] for values in parts]
    given.save.write_text(json.dumps({"errors": rows, "counts": counts}), encoding="utf-8")
