"""Write an analysis as CSV, Parquet and JSON."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pose.analysis import Analysis, Curve, Event, Metric, Omission, RepetitionRow, Series
from pose.errors import PoseError
from pose.utils.whole_file import whole_file

FORMATS = ("csv", "json", "parquet")
CURVES = (
    "person", "movement", "angle", "side", "percent", "mean_degrees", "sd_degrees", "norm_mean_degrees",
    "norm_sd_degrees", "quality", "start", "end", "count",
)  # fmt: skip
SERIES = ("person", "group", "name", "unit", "time", "value")
# Columns by table. The table of metrics is called "figures" in all files.
TABLES = {
    **{name: [entry.name for entry in fields(kind)] for name, kind in
       (("figures", Metric), ("events", Event), ("omissions", Omission), ("repetitions", RepetitionRow))},
    "curves": CURVES,
    "series": SERIES,
}  # fmt: skip


def targets(folder: Path, formats: Sequence[str]) -> list[Path]:
    """Return the paths of the files that `write` creates."""
    names = [f"analysis-{table}" for table in TABLES]
    return [
        folder / f"{name}.{suffix}"
        for suffix in formats
        for name in (["analysis"] if suffix == "json" else names)
    ]  # fmt: skip


def write(analysis: Analysis, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables of an analysis and return their paths; PoseError if parquet lacks pyarrow."""
    content: dict[str, Sequence[Metric | Event | Omission | RepetitionRow]] = {
        "figures": analysis.metrics, "events": analysis.events, "omissions": analysis.omissions,
        "repetitions": analysis.repetitions,
    }  # fmt: skip
    rows = {name: [asdict(row) for row in entries] for name, entries in content.items()}
    document = rows | {name: [asdict(row) for row in getattr(analysis, name)] for name in ("curves", "series")}
    rows["curves"] = [row for curve in analysis.curves for row in _curve_rows(curve)]
    rows["series"] = [row for one in analysis.series for row in _series_rows(one)]
    for target in (written := targets(folder, formats)):
        if target.suffix == ".json":
            with whole_file(target) as hidden:
                hidden.write_text(json.dumps(document, indent=None, allow_nan=False) + "\n", encoding="utf-8")
            continue
        name = target.stem.removeprefix("analysis-")
        (_write_parquet if target.suffix == ".parquet" else _write_csv)(target, TABLES[name], rows[name])
    return written


def _curve_rows(curve: Curve) -> list[dict[str, Any]]:
    """Return one row per percent of the cycle."""
    none = [None] * len(curve.mean)
    columns = zip(curve.mean, curve.sd, curve.norm_mean or none, curve.norm_sd or none, strict=True)
    head = (curve.person, curve.movement, curve.angle, curve.side)
    tail = (curve.quality, curve.start, curve.end, curve.count)
    return [dict(zip(CURVES, (*head, percent, *row, *tail), strict=True)) for percent, row in enumerate(columns)]


def _series_rows(series: Series) -> list[dict[str, Any]]:
    head = (series.person, series.group, series.name, series.unit)
    rows = zip(series.times, series.values, strict=True)
    return [dict(zip(SERIES, (*head, *row), strict=True)) for row in rows]


def _write_csv(target: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def _write_parquet(target: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PoseError("format parquet needs pyarrow: pip install 'pose-run[formats]'") from error
    table = pyarrow.table({column: [row[column] for row in rows] for column in columns})
    with whole_file(target) as hidden:
        pyarrow.parquet.write_table(table, hidden)
