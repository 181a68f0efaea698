"""`pose-batch`: process folders of clips like `pose-run`."""

import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from pose.config import PipelineConfig, choose_available, choose_networks, model_files
from pose.errors import PoseError, UsageError, without_credentials
from pose.utils.options import Options, argument, option, quiet_option
from pose.utils.shown import shown
from pose_apps.cameras.options import NO_CAMERAS, CamerasConfig
from pose_apps.clip import RunConfig
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_config_option, add_options, config_first, config_of
from pose_apps.support.status import StatusLine
from pose_apps.support.summary import counted

if TYPE_CHECKING:
    from pose_apps.batch.clips import BatchClip
    from pose_apps.batch.manifest import Line, Manifest
    from pose_apps.batch.schedule import Engine
    from pose_apps.batch.work import BatchTask, Job

# options of pose-run that apply
WITHOUT = frozenset({"video", "demo", "out", "overwrite", "quiet", "verbose", "profile", "cache"})
CACHE = ".cache"  # folder name in the results


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig(Options):
    """Options of `pose-batch`."""

    inputs: list[str] = argument([], "files, folders, globs, URLs, or .txt files that list them", metavar="INPUT")
    out: str | None = option(None, "folder for the results, with one folder per clip")
    workers: int | None = option(
        None, "clips processed at a time; default: as cores and memory allow", minimum=1, maximum=1024
    )
    time_limit: float = option(
        math.inf, "maximum processing time of a clip in seconds, after which it counts as failed", minimum=0.1
    )
    retries: int = option(1, "number of retries for a clip whose worker died", minimum=0, maximum=100)
    resume: bool = option(True, "process only clips whose results are missing or outdated")
    shard: str | None = option(None, "process only shard I of N, counted from 0")
    cache: str | None = option(None, "folder for cached 2D and 3D results; off: no cache; default: .cache in --out")
    engine: str = option(
        "local",
        "where workers run: local, as processes of this computer, or ray, on a Ray cluster",
        choices=("local", "ray"),
    )
    address: str | None = option(None, "address of a Ray cluster; default: this machine")
    quiet: bool = quiet_option("warnings and errors")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-batch`."""
    parser = ArgumentParser(prog="pose-batch", description="Track people in 3D in many clips.", exit_on_error=False)
    add_config_option(parser)
    add_options(parser, BatchConfig)
    add_options(parser, RunConfig, without=WITHOUT)
    add_options(parser, CamerasConfig)
    add_options(parser, PipelineConfig)
    parser.set_defaults({"threads": 1})
    parsed = parse_arguments(parser, config_first(argv))
    config = config_of(BatchConfig, parsed)
    own = {entry.name: parsed[entry.name] for entry in fields(RunConfig) if entry.name not in WITHOUT}
    return run(config, RunConfig(**own), config_of(PipelineConfig, parsed), config_of(CamerasConfig, parsed))


def run(
    config: BatchConfig,
    clip_config: RunConfig,
    pipeline_config: PipelineConfig,
    cameras: CamerasConfig = NO_CAMERAS,
) -> int:
    """Process all clips and return the exit status; PoseError if options are invalid."""
    from pose_apps.batch.clips import find_clips, read_shard, shard_of
    from pose_apps.batch.manifest import Manifest
    from pose_apps.support.outputs import create_folder, plan_outputs

    if not config.inputs:
        raise UsageError("no clips: give files, folders, globs, or a .txt file that lists them")
    if config.out is None:
        raise UsageError("--out is required: the folder for the results")
    if config.address is not None and config.engine != "ray":
        raise UsageError("--address: applies only to Ray; add --engine ray")
    shard = None if config.shard is None else read_shard(config.shard)
    plan_outputs("clip", config.out, clip_config.formats, clip_config.overlay)  # raises an error if it is not available
    if not clip_config.end > clip_config.start:
        raise UsageError(f"--end {clip_config.end:g}: is not after the start, {clip_config.start:g} s")
    if config.cache not in (None, "off") and os.path.lexists(config.cache) and not Path(config.cache).is_dir():
        raise UsageError(f"--cache {config.cache}: is a file; give a folder, or off")
    out = Path(config.out)
    with StatusLine("checking clips and weights", hidden=config.quiet):
        clips = find_clips(config.inputs, out, grouped=cameras != NO_CAMERAS)
        clips = clips if shard is None else shard_of(clips, shard)
        job = make_job(out, config, clip_config, pipeline_config, cameras)
        create_folder(out)
        manifest = Manifest(out, shard)
        finished_before, tasks = plan(clips, manifest, job) if config.resume else ([], _tasks(clips))
    with manifest.writing():
        known = finished_before + [_missing_line(task, job) for task in tasks if _is_missing(task.clip)]
        for line in known[len(finished_before) :]:  # without a worker, because a list may name many
            manifest.add(line)
        tasks = [task for task in tasks if not _is_missing(task.clip)]
        lines = known + _process_tasks(config, job, tasks, manifest, known)
    page = _write_overview(manifest) if clip_config.analyse and lines else None
    if not config.quiet:
        from pose_apps.batch.manifest import table

        if clips:
            print(table(lines, finished_before=len(finished_before), manifest=manifest.path))
            print(f"analysis of all clips: {page}" if page else "", end="\n" if page else "")
        else:
            print(f"note: --shard {config.shard}: none of the clips belongs to this shard")
    failed = [line for line in lines if line.status != "ok"]
    if config.quiet:  # otherwise the table shows it
        for line in failed:
            print(shown(f"error: {line.name}: {line.error}"), file=sys.stderr)
    return 1 if failed else 0


def _write_overview(manifest: "Manifest") -> Path:
    """Write the page and the table over the analyses of all clips of the folder; return the page."""
    from pose.analysis.overview import TABLE, read_clip, write_overview
    from pose.structures.defaults import ANALYSIS_PAGE
    from pose.utils.written_files import writing

    folder = manifest.folder
    states = [(line.name, line.error or "") for _, line in sorted(manifest.lines.items())]
    clips = [read_clip(folder, name, problem) for name, problem in states]
    with writing([folder / TABLE, folder / ANALYSIS_PAGE]):
        write_overview(clips, folder)
    return folder / ANALYSIS_PAGE


def make_job(
    out: Path,
    config: BatchConfig,
    clip_config: RunConfig,
    pipeline_config: PipelineConfig,
    cameras: CamerasConfig = NO_CAMERAS,
) -> "Job":
    """Fetch and hash the weights, and return the common settings of all clips."""
    from importlib.metadata import version

    from pose.lifting.predict import checkpoint_path
    from pose.networks.weights import sha256_of
    from pose.results.cache.keys import FILE_SETTINGS, hash_of
    from pose_apps.batch.work import Job
    from pose_apps.support.intrinsics import camera_values, read_intrinsics

    pipeline_config, fallback_reason = choose_available(choose_networks(pipeline_config))
    if fallback_reason is not None and not config.quiet:
        print(f"warning: {fallback_reason}", file=sys.stderr)
    cache = str(out / CACHE) if config.cache is None else config.cache
    run_config = replace(clip_config, overwrite=True, quiet=True, cache=cache)
    if cameras.file is not None and not cameras.file.is_file():
        raise UsageError(f"--cameras {cameras.file}: no such file")
    camera = None if clip_config.intrinsics is None else camera_values(read_intrinsics(clip_config.intrinsics))
    clip_settings = {name: value for name, value in asdict(clip_config).items() if name not in WITHOUT | {"cache_size"}}
    clip_settings = clip_settings | {"intrinsics": camera, "end": str(clip_config.end)}
    settings = {name: value for name, value in asdict(pipeline_config).items() if name not in FILE_SETTINGS}
    weights = [[role, name, sha256_of(file)] for role, name, file in model_files(pipeline_config)]
    weights.append(["lifter", pipeline_config.lifter, sha256_of(checkpoint_path(pipeline_config.lifter))])
    rig = [asdict(cameras), None if cameras.file is None else sha256_of(cameras.file)]
    key = hash_of([version("pose-run"), clip_settings, settings, weights, *([rig] if cameras != NO_CAMERAS else [])])
    return Job(run_config, pipeline_config, out, key, cameras)


def plan(clips: "list[BatchClip]", manifest: "Manifest", job: "Job") -> "tuple[list[Line], list[BatchTask]]":
    """Return manifest entries of clips that are finished and unchanged, and tasks for all other clips."""
    from pose_apps.batch.work import BatchTask

    done, tasks = [], []
    for clip in clips:
        line = manifest.lines.get(clip.name)
        good = line is not None and line.status == "ok" and line.job == job.key
        if line is None or not good or not all((manifest.folder / path).exists() for path in line.outputs):
            tasks.append(BatchTask(clip))
        elif line.path == without_credentials(clip.path) and line.signature == clip.signature():
            done.append(line)
        else:
            tasks.append(BatchTask(clip, existing=line))  # compare the content
    return done, _largest_first(tasks)


def _tasks(clips: "list[BatchClip]") -> "list[BatchTask]":
    from pose_apps.batch.work import BatchTask

    return _largest_first([BatchTask(clip) for clip in clips])


def _largest_first(tasks: "list[BatchTask]") -> "list[BatchTask]":
    """Sort tasks by decreasing file size, so that no worker starts a long clip at the end."""
    return sorted(tasks, key=lambda task: -(task.clip.signature() or [0, 0])[1])


def _process_tasks(
    config: BatchConfig, job: "Job", tasks: "list[BatchTask]", manifest: "Manifest", finished_before: "list[Line]"
) -> "list[Line]":
    """Process the tasks, and return the manifest line of each."""
    from pose_apps.batch.manifest import BatchProgress
    from pose_apps.batch.schedule import Schedule, StartError

    if not tasks:
        return []
    lines: list[Line] = []
    folders = [manifest.folder / task.clip.name for task in tasks]
    new = [folder for folder in folders if not folder.exists()]
    engine = _engine(config, job, len(tasks))
    try:
        with BatchProgress(len(tasks), engine.workers, hidden=config.quiet) as progress:
            schedule = Schedule(
                engine, tasks, time_limit=config.time_limit, retries=config.retries, on_frames=progress.frames
            )
            for line in schedule.lines():
                lines.append(line)  # first, so that the count is right if the user interrupts on seeing the line
                manifest.add(line)
                progress.finished(line)
    except KeyboardInterrupt:
        done = len(lines) + len(finished_before)
        clips = counted(len(tasks) + len(finished_before), "clip")
        raise KeyboardInterrupt(f"{done} of {clips} finished and kept; run the command again for the rest") from None
    except StartError as error:
        raise PoseError(f"no worker could start: {error}") from error
    finally:
        engine.close()
        _remove_leftovers([*folders, manifest.folder / (config.cache or CACHE)], new)
    return lines


def _is_missing(clip: "BatchClip") -> bool:
    return not clip.videos and "://" not in clip.path and not os.path.lexists(clip.path)


def _missing_line(task: "BatchTask", job: "Job") -> "Line":
    from pose_apps.batch.manifest import Line

    clip = task.clip
    path = without_credentials(clip.path)
    return Line(
        path=path, name=clip.name, key=None, status="failed", error=f"cannot read {path}: no such file", job=job.key
    )


def _remove_leftovers(folders: list[Path], new: list[Path]) -> None:
    """Remove what killed workers left in folders, and those of the new folders that are empty."""
    from pose.utils.whole_file import WholeFile
    from pose.utils.work_folder import remove_leftovers
    from pose_apps.support.outputs import is_result

    for folder in folders:
        with suppress(OSError):
            remove_leftovers(folder)
            WholeFile.remove_leftovers(folder, is_result)
    for folder in new:
        with suppress(OSError):  # not empty
            folder.rmdir()


def default_workers(job: "Job") -> int:
    """Return the number of workers that the processor cores and the memory of this machine allow; 1 for a GPU."""
    from pose.utils.device import resolve_device
    from pose.utils.resources import WORKER_MEGABYTES, available_cores, available_megabytes

    if resolve_device(job.pipeline.device) != "cpu":
        return 1
    memory = available_megabytes()
    room = math.inf if memory is None else memory // WORKER_MEGABYTES
    return int(max(1, min(available_cores() // job.pipeline.threads, room)))


def _engine(config: BatchConfig, job: "Job", max_workers: int) -> "Engine":
    """Start the workers, on this machine or with Ray."""
    if config.engine == "ray":
        from pose.utils.resources import WORKER_MEGABYTES
        from pose_apps.batch.ray_engine import RayWorkers

        return RayWorkers(config.workers, job, config.address, WORKER_MEGABYTES, max_workers)
    from pose_apps.batch.schedule import Processes

    return Processes(min(config.workers or default_workers(job), max_workers), job)
