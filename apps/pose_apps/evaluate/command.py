"""`pose-eval`: evaluate lifters, pipelines or predictions with the official protocols."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from pose_datasets.catalogue import evaluations
from pose_datasets.uses import EvaluationTask, LabelledEvaluation

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.lifting.names import DEFAULT_LIFTER
from pose.utils.options import REQUIRED, Options, argument, option, same_option
from pose_apps.evaluate.candidates import (
    Candidate,
    OutputOptions,
    evaluate_all,
    finish,
    plan_output,
    short_names,
    with_pelvis_as_given,
)
from pose_apps.evaluate.forecasts import ForecastOptions, evaluate_forecasts
from pose_apps.evaluate.video import VideoOptions, evaluate_video
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of, named_subcommands
from pose_apps.support.status import StatusLine


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOptions(Options):
    """Options that select the lifters or predictions to evaluate on a benchmark."""

    lifter: str | None = option(None, "offline, sliding, stream or a checkpoint file; default: offline")
    predictions: str | None = option(None, "evaluate predictions from this .npz instead of a lifter", metavar="FILE")
    compare: list[str] = option([], "additional lifters or predictions for the same table", metavar="FILE|NAME")
    lookahead: str | None = option(None, "measure accuracy at these look-ahead values, frames", metavar="0,4,13")
    flip: bool = option(True, "use flip test-time augmentation, as is conventional")
    root: str = option(
        "centred",
        "pelvis of predictions: centred moves it to the origin; as-given counts its offset, as VideoPose3D does",
        choices=("centred", "as-given"),
    )
    device: str = same_option(PipelineConfig, "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(Options):
    """Options of `pose-eval compare`."""

    results: list[str] = argument(REQUIRED, "results.json files, or their folders", metavar="RESULTS")


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-eval`."""
    parsed = parse_arguments(_parser(named_subcommands(evaluations(), argv)), argv)
    options: Namespace = parsed[parsed.command]
    if parsed.command == "forecast":
        evaluate_forecasts(config_of(ForecastOptions, options))
        return
    output = config_of(OutputOptions, options)
    if parsed.command == "compare":
        compare(config_of(CompareOptions, options), output)
    elif parsed.command == "video":
        evaluate_video(config_of(VideoOptions, options), config_of(PipelineConfig, options), output)
    else:
        labelled = config_of(evaluations()[parsed.command].options(), options)
        evaluate(labelled, config_of(CandidateOptions, options), output)


def evaluate(labelled: LabelledEvaluation, options: CandidateOptions, output_options: OutputOptions) -> None:
    """Evaluate lifters or stored predictions on a benchmark, and write and print the results."""
    lookaheads = _lookaheads(options.lookahead)
    with StatusLine("loading", hidden=output_options.quiet):
        task = labelled.task()
        if options.root == "as-given":
            task = with_pelvis_as_given(task)
        output = plan_output(output_options, task.slug)
        candidates = _candidates(options, task)
    results = evaluate_all(candidates, task, output, flip=options.flip, lookaheads=lookaheads)
    finish(results, output)


def compare(options: CompareOptions, output_options: OutputOptions) -> None:
    """Print the results of earlier evaluations in one table, and write them to the output folder."""
    from pose.training.evaluation.results import load_results

    output = plan_output(output_options, "compare")
    pairs = [(path, result) for path in options.results for result in load_results(Path(path))]
    names = Counter(result["name"] for _, result in pairs)
    for path, result in pairs:
        if names[result["name"]] > 1:
            result["name"] += f" ({path})"
    finish([result for _, result in pairs], output)


def _candidates(options: CandidateOptions, task: EvaluationTask) -> list[Candidate]:
    names = [name for name in (options.lifter, options.predictions) if name is not None] + options.compare
    if not names:
        names = [DEFAULT_LIFTER]
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


def _parser(chosen: Container[str]) -> ArgumentParser:
    parser = command_parser(
        "pose-eval",
        "Evaluate lifters, pipelines and predictions with standard protocols: docs/guides/evaluation.md.",
    )
    commands = parser.add_subcommands(required=True, dest="command")
    for name, data in evaluations().items():
        options = (data.options(), CandidateOptions, OutputOptions) if name in chosen else ()
        add_subcommand(commands, name, data.purpose, *options)
    pixels = "Run the whole pipeline on a video with 3D ground truth."
    add_subcommand(commands, "video", pixels, VideoOptions, PipelineConfig, OutputOptions)
    add_subcommand(commands, "forecast", "Forecasters of short-term motion.", ForecastOptions)
    add_subcommand(commands, "compare", "Compare earlier results in one table.", CompareOptions, OutputOptions)
    return parser
