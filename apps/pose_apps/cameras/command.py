"""`pose-run` with several videos."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import PoseError
from pose.utils.progress import hidden_progress
from pose_apps.cameras.options import CamerasConfig, camera_videos, joint_folder
from pose_apps.support.analysis import analysed, check_analysis
from pose_apps.support.outputs import plan_outputs
from pose_apps.support.progress import open_cache_of, warn, with_progress_bar
from pose_apps.support.run_context import RunContext
from pose_apps.support.summary import print_wrapped

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose_apps.cameras.run import CamerasOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptions:
    """Options of `pose-run` that also apply to several cameras. The fields have the same names as in `RunConfig`."""

    out: str | None
    formats: str
    overlay: bool
    analyse: bool
    space: str | None
    trim: bool
    cache: str
    cache_size: float
    height: str | None
    pitch: float | None
    roll: float | None
    overwrite: bool
    quiet: bool


def run_several(
    videos: Sequence[str],
    cameras: CamerasConfig,
    config: SharedOptions,
    pipeline_config: PipelineConfig,
    loaded: Callable[[], None] = lambda: None,
) -> int:
    """Process videos, or a folder, of cameras that film one scene, and return the exit status."""
    from pose.cameras import camera_workers, with_threads  # loads NumPy

    chosen = camera_videos(videos, cameras.cameras)
    config = replace(config, out=config.out or str(joint_folder(videos)))

    workers = camera_workers(len(chosen), pipeline_config.device)

    def networks() -> "Pipeline":
        from pose.pipeline import Pipeline
        from pose_apps.support.lifters import allow_research_lifters

        allow_research_lifters(pipeline_config.lifter)
        with hidden_progress(config.quiet):
            pipeline = Pipeline(with_threads(pipeline_config, workers), lazy=config.cache != "off")
        loaded()
        return pipeline

    with open_cache_of(config.cache, config.cache_size) as cache:
        context = RunContext(partial(with_progress_bar, quiet=config.quiet), warn, cache)
        done = process_cameras(chosen, cameras, config, networks, context, workers)
    if not config.quiet:
        for line in [*done.lines, f"results: {', '.join(map(str, done.files))}"]:
            print_wrapped(line)
    if done.problems:
        raise PoseError("; ".join(done.problems))
    return 0


def process_cameras(
    videos: Sequence[str],
    cameras: CamerasConfig,
    config: SharedOptions,
    networks: "Callable[[], Pipeline]",
    context: RunContext,
    workers: int = 1,
) -> "CamerasOutcome":
    """Process videos of several cameras and write all requested files into the folder `config.out`."""
    from pose_apps.cameras.run import CamerasRequest, run_cameras

    outputs = plan_outputs(videos[0], config.out, config.formats, config.overlay, npz=config.analyse)
    outputs = replace(outputs, warn=lambda message: context.warn([message]))
    if config.analyse:
        check_analysis(outputs.folder, overwrite=config.overwrite)
    if outputs.exports:
        from pose_apps.support.exports import check_exports

        check_exports(list(outputs.exports), outputs.folder, overwrite=config.overwrite)
    request = CamerasRequest(list(videos), cameras, config.height, config.pitch, config.roll)
    done = run_cameras(request, networks, outputs, context, config.overwrite, workers)
    lines, files, problems = done.lines, done.files, list[str]()
    if outputs.exports:
        from pose_apps.support.exports import write_exports

        exported, notes, problems = write_exports(outputs, outputs.folder, videos[0], config.space, config.trim)
        lines, files = [*lines, *notes], [*files, *exported]
    if config.analyse:
        tables, analysis_notes, failed = analysed(outputs.files["npz"], outputs.folder, videos[0], outputs.warn)
        lines, files, problems = [*lines, *analysis_notes], [*files, *tables], [*problems, *failed]
    return replace(done, lines=lines, files=files, problems=problems)
