"""`pose-eval`: evaluate lifters, pipelines or predictions with the official protocols."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jsonargparse import ArgumentParser, Namespace
from numpy.typing import NDArray
from pose_datasets.catalogue import EvaluationTask, LabelledEvaluation, evaluations
from pose_datasets.sequences import Truth, load_truth

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.lifting.names import DEFAULT_LIFTER
from pose.utils.options import REQUIRED, Options, argument, option, same_option
from pose.utils.progress import hidden_progress, progress_bar
from pose_apps.clip import RunConfig
from pose_apps.evaluate.candidates import (
    Candidate,
    OutputOptions,
    evaluate_all,
    finish,
    plan_output,
    short_names,
    with_pelvis_as_given,
    write_predictions,
)
from pose_apps.evaluate.forecasts import ForecastOptions, evaluate_forecasts
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of, named_subcommands
from pose_apps.support.status import StatusLine

if TYPE_CHECKING:
    from pose.structures.types import FrameResult
    from pose.video import Source


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


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoOptions(Options):
    """Options of `pose-eval video`."""

    video: str = option(REQUIRED, "the video file")
    gt: str = option(REQUIRED, "ground truth of the video: an .npz, see docs/guides/evaluation.md")
    name: str | None = option(None, "name of this pipeline in the table")
    start: float = same_option(RunConfig, "start")
    end: float = same_option(RunConfig, "end", "evaluate up to this second of the video")


def evaluate_video(options: VideoOptions, config: PipelineConfig, output_options: OutputOptions) -> None:
    """Run the pipeline on a video, evaluate people with ground truth, and write and print the results."""
    truth = load_truth(Path(options.gt))
    output = plan_output(output_options, f"video-{Path(options.video).stem}")
    from pose.pipeline import Pipeline
    from pose.training.evaluation.lifting import GIVEN, Evaluation
    from pose.training.evaluation.results import Benchmark, describe
    from pose.training.evaluation.table import COLUMNS
    from pose.training.evaluation.video import match
    from pose.video import open_source
    from pose_apps.support.lifters import allow_research_lifters

    allow_research_lifters(config.lifter)
    with StatusLine("loading the networks", hidden=output.quiet), hidden_progress(output.quiet):
        pipeline = Pipeline(config, intrinsics=truth.intrinsics)
    with open_source(options.video, start=options.start, end=options.end) as source:
        fps, size = source.info.fps, source.info.size
        camera = pipeline.camera(size)
        results = _shown(pipeline.run(source), source, output.quiet)
        matched = match(results, pipeline.skeleton, truth.joints, _times(truth, fps), camera)
    if not matched.found:
        raise PoseError(f"{options.video}: the pipeline found none of the people in {options.gt}")
    evaluation = Evaluation()
    evaluation.measure(GIVEN, matched.sequences, matched.poses, matched.sigmas)
    share = f"{matched.found:,} of {matched.known:,} found"
    benchmark = Benchmark(
        Path(options.gt).name, "", "from pixels", "frames", ("video",), tuple(COLUMNS), f"{matched.known:,} known poses"
    )
    used = pipeline.config
    method = options.name or f"{used.detector} + {used.estimator} + {Path(used.lifter).stem}"
    result = describe(f"{method} ({share})", evaluation, benchmark, fps)
    result["found"], result["known"] = matched.found, matched.known
    write_predictions(output, "", evaluation)
    finish([result], output)


def _shown(results: Iterator["FrameResult"], source: "Source", quiet: bool) -> Iterator["FrameResult"]:
    with progress_bar("video", source.info.frame_count, " frames", hidden=quiet) as bar:
        for result in results:
            bar.update()
            yield result


def _times(truth: Truth, fps: float) -> NDArray[np.float64]:
    """Return the time stamps (T,) s of the ground truth. If it contains none, derive them from the frame rate `fps`."""
    if truth.times is not None:
        return truth.times
    return np.arange(len(truth.joints)) / fps
