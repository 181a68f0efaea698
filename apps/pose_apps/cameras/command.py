"""`pose-run` with several videos."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.system.progress import hidden_progress
from pose_apps.cameras.options import CamerasConfig, camera_videos, joint_folder
from pose_apps.support.analysis import analysed, check_analysis
from pose_apps.support.host import Host
from pose_apps.support.outputs import plan_outputs
from pose_apps.support.shown import open_cache_of, shown_results, warn
from pose_apps.support.summary import say

if TYPE_CHECKING:
    from pose.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The options of `pose-run` that several cameras have too, as its `RunConfig` has them."""

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
    config: Common,
    pipeline_config: PipelineConfig,
    loaded: Callable[[], None] = lambda: None,
) -> int:
    """Process videos of several cameras that film the same moment; the exit status.

    videos: two or more, or a folder of them. loaded: called before anything is shown. Raises PoseError.
    """
    from pose_apps.cameras.run import Request, run_cameras

    for name in ("hands", "face"):
        if getattr(pipeline_config, name):
            raise UsageError(f"{name}: is not supported with several cameras")
    chosen = camera_videos(videos, cameras.cameras)
    outputs = plan_outputs(
        chosen[0], config.out or str(joint_folder(videos)), config.formats, config.overlay, npz=config.analyse
    )
    if config.analyse:
        check_analysis(outputs.folder, overwrite=config.overwrite)
    if outputs.exports:
        from pose_apps.support.exports import check_exports

        check_exports(list(outputs.exports), outputs.folder, overwrite=config.overwrite)

    def networks() -> "Pipeline":
        from pose.pipeline import Pipeline

        with hidden_progress(config.quiet):
            pipeline = Pipeline(pipeline_config, lazy=config.cache != "off")
        loaded()
        return pipeline

    with open_cache_of(config.cache, config.cache_size) as cache:
        host = Host(partial(shown_results, quiet=config.quiet), warn, cache)
        request = Request(chosen, cameras, config.height, config.pitch, config.roll)
        done = run_cameras(request, networks, outputs, host, config.overwrite)
    lines, files, problems = done.lines, done.files, list[str]()
    if outputs.exports:
        from pose_apps.support.exports import write_exports

        exported, notes, problems = write_exports(outputs, outputs.folder, chosen[0], config.space, config.trim)
        lines, files = [*lines, *notes], [*files, *exported]
    if config.analyse:
        tables, said, failed = analysed(outputs.files["npz"], outputs.folder, chosen[0], outputs.warn)
        lines, files, problems = [*lines, *said], [*files, *tables], [*problems, *failed]
    if not config.quiet:
        for line in [*lines, f"results: {', '.join(map(str, files))}"]:
            say(line)
    if problems:
        raise PoseError("; ".join(problems))
    return 0
