"""`pose-eval video`: run the whole pipeline on a video and compare the results with 3D ground truth."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pose_datasets.sequences import Truth, load_truth

from pose.config import PipelineConfig
from pose.errors import PoseError
from pose.utils.options import REQUIRED, Options, option, same_option
from pose.utils.progress import hidden_progress, progress_bar
from pose_apps.clip import RunConfig
from pose_apps.evaluate.candidates import OutputOptions, finish, plan_output, write_predictions
from pose_apps.support.status import StatusLine

if TYPE_CHECKING:
    from pose.structures.types import FrameResult
    from pose.video import Source


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
