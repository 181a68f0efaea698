"""Write an analysis as CSV, Parquet and JSON."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pose.analysis import Analysis, Event, Figure, Omission
from pose.errors import PoseError
from pose.system.whole_file import whole_file

FORMATS = ("csv", "json", "parquet")
TABLES = {"figures": Figure, "events": Event, "omissions": Omission}


def targets(folder: Path, formats: Sequence[str]) -> list[Path]:
    """The files that `write` makes."""
    names = [f"analysis-{table}" for table in TABLES]
    return [
        folder / f"{name}.{suffix}"
        for suffix in formats
        for name in (["analysis"] if suffix == "json" else names)
    ]  # fmt: skip


def write(analysis: Analysis, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables; returns their paths. Raises PoseError where a library is missing."""
    rows = {name: [asdict(row) for row in getattr(analysis, name)] for name in TABLES}
    for target in (written := targets(folder, formats)):
        if target.suffix == ".json":
            with whole_file(target) as hidden:
                hidden.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8")
            continue
        name = target.stem.removeprefix("analysis-")
        columns = [entry.name for entry in fields(TABLES[name])]
        (_write_parquet if target.suffix == ".parquet" else _write_csv)(target, columns, rows[name])
    return written


def _write_csv(target: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def _write_parquet(target: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PoseError("format parquet needs pyarrow: pip install 'pose-run[formats]'") from error
    table = pyarrow.table({column: [row[column] for row in rows] for column in columns})
    with whole_file(target) as hidden:
        pyarrow.parquet.write_table(table, hidden)
