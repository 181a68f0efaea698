"""`pose-eval forecast`: accuracy and calibration of forecasters."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pose.errors import UsageError
from pose.utils.options import REQUIRED, Options, option, overwrite_option
from pose.utils.progress import progress_bar
from pose.utils.whole_file import whole_file
from pose.utils.written_files import writing
from pose_apps.evaluate.candidates import short_names
from pose_apps.support.status import StatusLine

if TYPE_CHECKING:
    from pose_datasets.forecasting import MotionSamples

    from pose.lifting.forecast import Forecaster

PARTS = ("test", "validation")
RESULTS = "forecast.json"
_CHUNK = 128  # samples per batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOptions(Options):
    """Options of `pose-eval forecast`."""

    motions: str = option(REQUIRED, "the file that `pose-prepare forecast` wrote", metavar="FILE")
    forecasters: list[str] = option(
        ["forecaster", "zero-velocity", "damped-velocity"],
        "shipped forecasters and checkpoints, in the order of the table",
    )
    part: str = option("test", "part of the data to evaluate", choices=PARTS)
    out: str = option("pose-eval-forecast", "folder for the results", metavar="DIR")
    overwrite: bool = overwrite_option()
    quiet: bool = option(False, "show no progress bar")


def evaluate_forecasts(options: ForecastOptions) -> None:
    """Evaluate forecasters after checking options and files, write `forecast.json`, and print the tables."""
    target = Path(options.out) / RESULTS
    if target.exists() and not options.overwrite:
        raise UsageError(f"{target} exists; give --overwrite to replace it, or another folder with --out")
    if not Path(options.motions).is_file():
        raise UsageError(f"--motions {options.motions}: no such file; make it with `pose-prepare forecast`")
    with StatusLine("loading", hidden=options.quiet):
        from pose_datasets.forecasting import MotionSamples, load_motions

        from pose.lifting.forecast import PAST_SECONDS, load_forecaster
        from pose_apps.support.lifters import allow_research_lifters

        for path in filter(os.path.isfile, options.forecasters):
            allow_research_lifters(path)
        samples = MotionSamples(load_motions(Path(options.motions), options.part), PAST_SECONDS)
        names = _names(options.forecasters)
        forecasters = [load_forecaster(name) for name in options.forecasters]
    results = [
        _measured(name, forecaster, samples, options) for name, forecaster in zip(names, forecasters, strict=True)
    ]
    with writing([target]), whole_file(target) as hidden:
        hidden.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(tables(results)))


def _names(forecasters: Sequence[str]) -> list[str]:
    """Return unique names of forecasters: for final, best or last that of the run's folder, if unique."""
    if len(set(map(Path, forecasters))) < len(forecasters):
        raise UsageError("--forecasters: name each once")
    checkpoints = [name for name in forecasters if name.endswith(".safetensors")]
    if all(Path(checkpoint).stem in ("final", "best", "last") for checkpoint in checkpoints):
        names = [Path(name).parent.name if name in checkpoints else name for name in forecasters]
        if "" not in names and len(set(names)) == len(names):
            return names
    return short_names(forecasters)


def _measured(
    name: str, forecaster: "Forecaster", samples: "MotionSamples", options: ForecastOptions
) -> dict[str, Any]:
    """Evaluate a forecaster on true and on lifted past poses, and return the entry for `forecast.json`."""
    from pose_datasets.forecasting import SOURCES

    with progress_bar(name, 2 * len(samples.evaluation_samples()[0]), " moments", hidden=options.quiet) as bar:
        figures = {source: measure(forecaster, samples, source == "pipeline", bar.update) for source in SOURCES}
    return {"name": name, "sha256": getattr(forecaster, "sha256", ""), "part": options.part, "figures": figures}


def measure(
    forecaster: "Forecaster", samples: "MotionSamples", lifted: bool, advance: Any = lambda count: None
) -> dict[str, list[float]]:
    """Return mean errors `mpjpe`, `root` (mm) and fractions `inside`, `root_inside` at each of `HORIZONS`."""
    from pose.lifting.forecast.config import HORIZONS

    rows, frames = samples.evaluation_samples()
    errors, roots, inside, root_inside = [], [], [], []
    for first in range(0, len(rows), _CHUNK):
        some = rows[first : first + _CHUNK], frames[first : first + _CHUNK]
        past, true = samples.past(some, np.full(len(some[0]), lifted))
        times = past.times[np.arange(len(past)), past.last()][:, None] + np.array(HORIZONS)
        joints, root = samples.future(some[0], times)
        found = forecaster.predict(past, times)
        error = 1000 * np.linalg.norm(found.joints - joints, axis=-1)
        root_error = 1000 * np.linalg.norm(found.root - root - samples.offset(past, true)[:, None], axis=-1)
        errors.append(error)
        roots.append(root_error)
        inside.append((error < found.sigma)[..., 1:])
        root_inside.append(root_error < found.root_sigma)
        advance(len(past))
    parts = {
        "mpjpe": np.concatenate(errors).mean(axis=(0, 2)),
        "root": np.concatenate(roots).mean(axis=0),
        "inside": np.concatenate(inside).mean(axis=(0, 2)),
        "root_inside": np.concatenate(root_inside).mean(axis=0),
    }
    return {name: [round(float(value), 4) for value in values] for name, values in parts.items()}


def tables(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return Markdown tables of errors and calibration by time ahead, for true and for lifted past poses."""
    from pose_datasets.forecasting import SOURCES

    shown = [
        ("mpjpe", "MPJPE, mm", "{:.1f}", 1.0),
        ("root", "pelvis, mm", "{:.0f}", 1.0),
        ("inside", "joints within one sigma, %", "{:.0f}", 100.0),
    ]
    return [
        _table(results, source, figure, f"{title}, from the {source}", form, scale)
        for figure, title, form, scale in shown
        for source in SOURCES
    ]


def _table(results: Sequence[dict[str, Any]], source: str, figure: str, title: str, form: str, scale: float) -> str:
    from pose.lifting.forecast.config import HORIZONS

    lines = [
        "| " + " | ".join([title, *(f"{1000 * horizon:.0f} ms" for horizon in HORIZONS)]) + " |",
        "|---" * (1 + len(HORIZONS)) + "|",
    ]
    for result in results:
        values = [form.format(scale * value) for value in result["figures"][source][figure]]
        lines.append("| " + " | ".join([result["name"], *values]) + " |")
    return "\n".join(lines)
