"""`pose-eval`: how good is a lifter, a whole pipeline, or anybody's predictions, by the book."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from pose.config import DEVICES, PipelineConfig
from pose.errors import UsageError
from pose_apps.evaluate.benchmarks import BENCHMARKS, Labelled, Task
from pose_apps.evaluate.candidates import Candidate, evaluate_all, finish, plan_output, short_names
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_options, config_of
from pose_apps.support.status import Status


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `pose-eval`."""
    parsed = parse_arguments(_parser(), argv)
    options: Namespace = parsed[parsed.command]
    if parsed.command == "compare":
        compare(options)
    elif parsed.command == "video":
        from pose_apps.evaluate.video import evaluate_video

        evaluate_video(options, config_of(PipelineConfig, options))
    else:
        evaluate(BENCHMARKS[parsed.command], options)


def evaluate(labelled: Labelled, options: Namespace) -> None:
    """Everything that can be wrong is found before the first network runs."""
    lookaheads = _lookaheads(options.lookahead)
    with Status("loading", hidden=options.quiet):
        task = labelled.load(options)
        output = plan_output(options, task.slug)
        candidates = _candidates(options, task)
    results = evaluate_all(candidates, task, output, flip=options.flip, lookaheads=lookaheads)
    finish(results, output)


def compare(options: Namespace) -> None:
    """Results of earlier evaluations, side by side; a name that several have gets the file's beside it."""
    from pose.evaluation.results import load_results

    output = plan_output(options, "compare")
    pairs = [(path, result) for path in options.results for result in load_results(Path(path))]
    names = Counter(result["name"] for _, result in pairs)
    for path, result in pairs:
        if names[result["name"]] > 1:
            result["name"] += f" ({path})"
    finish([result for _, result in pairs], output)


def _candidates(options: Namespace, task: Task) -> list[Candidate]:
    names = [name for name in (options.lifter, options.predictions) if name is not None] + list(options.compare or [])
    if not names:
        names = ["offline"]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise UsageError(f"{', '.join(sorted(repeated))} would be evaluated twice; name each once")
    if options.predictions is not None and not options.predictions.endswith(".npz"):
        raise UsageError(f"--predictions: expected an .npz file, got {options.predictions}")
    return [Candidate.open(*pair, task, options.device) for pair in zip(names, short_names(names), strict=True)]


def _lookaheads(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--lookahead: expected numbers of frames, 0,4,13, got {text!r}") from error
    if min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise UsageError(f"--lookahead: expected different numbers of frames from 0 on, got {text!r}")
    return sorted(numbers)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="pose-eval",
        description="Evaluate lifters, pipelines and predictions. docs/evaluation.md has protocols and file formats.",
        exit_on_error=False,
    )
    commands = parser.add_subcommands(required=True, dest="command")

    def add(name: str, purpose: str) -> ArgumentParser:
        command = ArgumentParser(description=purpose, exit_on_error=False)
        commands.add_subcommand(name, command, help=purpose)
        return command

    for name, entry in BENCHMARKS.items():
        command = add(name, entry.purpose)
        entry.add(command)
        _add_candidates(command)
        _add_output(command)
    command = add("video", "The whole pipeline from pixels, against given 3D.")
    command.add_argument("--video", type=str, required=True, help="the video file")
    command.add_argument("--gt", type=str, required=True, help="its ground truth: an .npz, see docs/evaluation.md")
    command.add_argument("--name", type=str, help="what the table calls this pipeline")
    command.add_argument("--start", type=float, default=0.0, help="evaluate from this second of the video on")
    command.add_argument("--end", type=float, default=math.inf, help="evaluate up to this second of the video")
    add_options(command, PipelineConfig)
    _add_output(command)
    command = add("compare", "Put earlier results side by side.")
    command.add_argument("results", nargs="+", type=str, help="results.json files, or the folders that hold them")
    _add_output(command)
    return parser


def _add_candidates(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--lifter", type=str, help="offline, stream, or a checkpoint file; offline where nothing else is named")
    add("--predictions", type=str, metavar="FILE", help="an .npz of predictions from anywhere instead of a lifter")
    add("--compare", type=str, nargs="+", metavar="WHAT", help="more lifters or predictions, in the same table")
    add(
        "--lookahead",
        type=str,
        metavar="0,4,13",
        help="measure accuracy against latency, for these frames of look-ahead",
    )
    add("--no-flip", dest="flip", action="store_false", help="without flip test-time augmentation (the convention)")
    add("--device", type=str, default="auto", choices=DEVICES, help="where networks run")


def _add_output(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--out", type=str, help="folder for results.json, predictions.npz and report.html")
    add("--no-report", dest="report", action="store_false", help="no report.html (which needs matplotlib)")
    add("--overwrite", action="store_true", help="replace results that are there already")
    add("--quiet", action="store_true", help="print nothing but errors")
