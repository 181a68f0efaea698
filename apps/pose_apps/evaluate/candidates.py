"""Evaluation of candidates (lifters or predictions) on a task, and output of the results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from pose_datasets.catalogue import EvaluationTask

from pose.errors import PoseError, UsageError
from pose.training.evaluation.results import EvaluationResult
from pose.utils.options import Options, option, overwrite_option, quiet_option
from pose.utils.progress import progress_bar
from pose.utils.written_files import writing

if TYPE_CHECKING:
    from tqdm import tqdm

    from pose.lifting.predict import Lifter
    from pose.training.evaluation.lifting import Evaluation
    from pose.training.evaluation.predictions import Predictions

_MAX_PELVIS_OFFSET_M = 0.5  # root-relative predictions have a smaller median offset
FILES = ("results.json", "report.html", "predictions.npz")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions(Options):
    """Output options of all subcommands."""

    out: str | None = option(
        None, "folder for results.json, predictions.npz and report.html; default: pose-eval- and the name of the data"
    )
    report: bool = option(True, "write report.html (which needs matplotlib)")
    overwrite: bool = overwrite_option()
    quiet: bool = quiet_option()


@dataclass(frozen=True, slots=True)
class Output:
    """Settings for the output of results and progress."""

    folder: Path  # folder of the results
    report: bool  # whether to write report.html
    quiet: bool  # whether to hide the progress


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lifter, or stored predictions of a lifter, to evaluate."""

    name: str  # name for the tables of results
    lifter: "Lifter | None" = None  # the lifter; None for predictions
    predictions: "Predictions | None" = None  # the predictions; None for a lifter

    @classmethod
    def open(cls, what: str, name: str, task: EvaluationTask, device: str) -> "Candidate":
        """Open an .npz file of predictions, which must fit the task, a checkpoint or a shipped lifter."""
        if what.endswith(".npz"):
            from pose.training.evaluation.predictions import load_predictions

            return cls(name, predictions=load_predictions(Path(what), task.sequences))
        from pose.lifting.torch_lifter import TorchLifter  # the torch backend processes sequences in batches
        from pose_apps.support.lifters import allow_research_lifters

        allow_research_lifters(what)
        from pose.utils.device import resolve_device

        return cls(name, lifter=TorchLifter.load(what, resolve_device(device)))


def with_pelvis_as_given(task: EvaluationTask) -> EvaluationTask:
    """Return the task with the pelvis of predictions as given, whose results are never in a table with others."""
    selection = f"{task.benchmark.selection}; pelvis of predictions as given"
    return replace(task, centred=False, benchmark=replace(task.benchmark, selection=selection))


def short_names(files: Sequence[str]) -> list[str]:
    """Return a short name for each file, unique if the paths are, such as `final`, or `a-final` for a second one."""
    names: list[str] = []
    max_depth = max(len(Path(file).parts) for file in files)
    for with_suffix in (False, True):
        for depth in range(1, max_depth + 1):
            names = [
                "-".join((*Path(file).parts[-depth:-1], Path(file).name if with_suffix else Path(file).stem))
                for file in files
            ]
            if len(set(names)) == len(names):
                return names
    return names


def plan_output(options: OutputOptions, slug: str) -> Output:
    """Check the output options before the evaluation, and return the output settings."""
    folder = Path(options.out or f"pose-eval-{slug}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: {folder} is not a folder")
    present = [folder / name for name in FILES if (folder / name).exists()]
    if present and not options.overwrite:
        raise UsageError(f"{present[0]} exists; give --overwrite to replace it, or another folder with --out")
    if options.report:
        from pose.training.evaluation.report import require_matplotlib

        require_matplotlib()
    return Output(folder, options.report, options.quiet)


def evaluate_all(
    candidates: Sequence[Candidate], task: EvaluationTask, output: Output, *, flip: bool, lookaheads: Sequence[int]
) -> list[EvaluationResult]:
    """Evaluate all candidates, and write the predictions of each lifter as soon as they are complete."""
    from pose.training.evaluation.results import curve_point, describe

    if lookaheads and not any(other.lifter is not None and other.lifter.streaming for other in candidates):
        raise UsageError("--lookahead needs a streaming lifter: --lifter sliding")
    results = []
    for candidate in candidates:
        evaluation = _evaluate(candidate, task, output, flip)
        sha256 = candidate.lifter.sha256 if candidate.lifter else ""
        result = describe(candidate.name, evaluation, task.benchmark, task.fps, sha256)
        if candidate.lifter is not None:
            write_predictions(output, candidate.name if len(candidates) > 1 else "", evaluation)
            if candidate.lifter.streaming:
                curve = ((frames, _at_lookahead(candidate, task, output, frames)) for frames in lookaheads)
                result["lookahead"] = [
                    curve_point(n, task.fps, evaluation_ahead, task.benchmark) for n, evaluation_ahead in curve
                ]
        results.append(result)
    return results


def _evaluate(candidate: Candidate, task: EvaluationTask, output: Output, flip: bool) -> "Evaluation":
    from pose.training.evaluation.lifting import evaluate_lifter, evaluate_predictions

    with _progress(candidate.name, task, output) as bar:
        if candidate.predictions is not None:
            if not task.centred:
                _check_root_relative(candidate.name, candidate.predictions)
            return evaluate_predictions(task.sequences, candidate.predictions, centred=task.centred, advance=bar.update)
        assert candidate.lifter is not None
        return evaluate_lifter(task.sequences, candidate.lifter, flip=flip, advance=bar.update)


def _check_root_relative(name: str, predictions: "Predictions") -> None:
    distance = float(
        np.median(np.concatenate([np.linalg.norm(poses[:, 0], axis=-1) for poses in predictions.values()]))
    )
    if distance > _MAX_PELVIS_OFFSET_M:
        raise PoseError(
            f"{name}: the predicted pelvis is {distance:.1f} m from the origin, so the predictions are absolute; use "
            "--root centred"
        )


def _at_lookahead(candidate: Candidate, task: EvaluationTask, output: Output, frames: int) -> "Evaluation":
    from pose.training.evaluation.lifting import evaluate_lifter

    assert candidate.lifter is not None
    with _progress(f"{candidate.name}, look-ahead {frames}", task, output) as bar:
        return evaluate_lifter(task.sequences, candidate.lifter, flip=False, lookahead=frames, advance=bar.update)


@contextmanager
def _progress(name: str, task: EvaluationTask, output: Output) -> "Iterator[tqdm[NoReturn]]":
    total = sum(len(sequence) for sequence in task.sequences)
    with progress_bar(name, total, " frames", scaled=True, hidden=output.quiet) as bar:
        yield bar


def write_predictions(output: Output, name: str, evaluation: "Evaluation") -> None:
    """Write the predictions of an evaluation to predictions.npz, or predictions-NAME.npz."""
    from pose.training.evaluation.predictions import save_predictions

    _make(output.folder)
    target = output.folder / f"predictions{'-' if name else ''}{name}.npz"
    with writing([target]):
        save_predictions(target, evaluation.predictions)


def finish(results: Sequence[EvaluationResult], output: Output) -> None:
    """Write results.json and, if requested, report.html, and print the tables unless `output.quiet` is True."""
    from pose.training.evaluation.results import save_results

    _make(output.folder)
    page = output.folder / "report.html"
    with writing([output.folder / "results.json", *([page] if output.report else [])]):
        save_results(output.folder / "results.json", results)
        if output.report:
            from pose.training.evaluation.report import html_report
            from pose.utils.whole_file import write_whole

            write_whole(page, html_report(results))
    if not output.quiet:
        _print(results, output)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PoseError(f"--out: {folder} cannot be created ({error.strerror})") from error


def _print(results: Sequence[EvaluationResult], output: Output) -> None:
    from pose.training.evaluation.results import benchmark_of, tables
    from pose.training.evaluation.table import footnote, lookahead_table, measure_table, speed_table

    for group in tables(results):
        for measure in benchmark_of(group[0]).measures:
            print(measure_table(group, measure).text(), end="\n\n")
        if note := footnote(group):
            print(note, end="\n\n")
        for result in group:
            if result["lookahead"]:
                print(lookahead_table(result).text(), end="\n\n")
            if calibration := result["calibration"]:
                share = 100 * calibration["inside_one_sigma"]
                print(f"{result['name']}: {share:.1f} % of errors within one sigma (expected: 68 %)", end="\n\n")
        print(speed_table(group).text(), end="\n\n")
    written = sorted(path for path in output.folder.iterdir() if not path.name.startswith("."))
    print(f"results: {', '.join(map(str, written))}")
