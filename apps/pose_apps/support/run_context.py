"""Interface between the commands and the processing of clips: progress, warnings and cache."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pose.utils.progress import progress_bar
from pose.utils.shown import shown
from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.results.cache import Cache
    from pose.results.cache.run import Found
    from pose.structures.types import FrameResult
    from pose.utils.progress import StageTimes
    from pose.video import Source


def with_progress_bar(
    results: Iterable["FrameResult"], source: "Source", what: str, *, quiet: bool
) -> Iterator["FrameResult"]:
    """Yield the results unchanged, and show a progress bar if stderr is a terminal."""
    with progress_bar(what, source.info.frame_count, " frames", hidden=quiet) as bar:
        for result in results:
            bar.set_postfix_str(f"people {len(result.people)}", refresh=False)
            bar.update()
            yield result


def warn(problems: Iterable[str]) -> None:
    """Print warnings, one per line."""
    for problem in problems:
        print(f"warning: {shown(problem, 1000)}", file=sys.stderr)


def open_cache_of(folder: str, gigabytes: float) -> "AbstractContextManager[Cache | None]":
    """Open the cache in a folder as a context, which yields None if `folder` is "off"."""
    if folder == "off":
        return nullcontext()
    from pose.results.cache import open_cache

    return open_cache(folder, gigabytes)


def print_times(times: "StageTimes", frames: int) -> None:
    """Print the table of `--profile`, with wall-clock and processor time of each stage."""
    print(f"{'stage':<34}{'s':>9}{'ms/frame':>10}{'processor s':>13}{'ms/frame':>10}")
    rows = [(stage, spent, times.processor[stage]) for stage, spent in times.seconds.items()]
    for stage, spent, worked in [*rows, ("processor time in total", 0.0, sum(times.processor.values()))]:
        wall = f"{spent:>9.2f}{1000 * spent / frames:>10.2f}" if spent else " " * 19
        print(f"{stage:<34}{wall}{worked:>13.2f}{1000 * worked / frames:>10.2f}")


@dataclass(frozen=True, slots=True)
class RunContext:
    """Callbacks and settings of a command, which the processing of a clip uses."""

    # `with_progress` yields results unchanged and in order. Workers of `pose-batch` ignore Ctrl-C.

    with_progress: "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]"
    warn: Callable[[Iterable[str]], None]  # function that prints warnings, given one text per warning
    cache: "Cache | None" = None  # cache of earlier results; None to compute everything
    handles_interrupts: bool = True  # whether Ctrl-C ends the processing of the clip


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of processing one clip."""

    tally: Tally  # statistics of the run
    source: "Source"  # the input
    pipeline: "Pipeline"  # pipeline that processed the clip
    files: list[Path]  # written files
    lines: list[str]  # lines of text for the summary about what was made of the result
    cached: "Found"  # results found in the cache: "nothing", "people" (2D only) or "everything"
    interruption: KeyboardInterrupt | None  # exception to raise if Ctrl-C ended the processing early; otherwise None
    problems: list[str] = field(default_factory=list)  # reasons why results are incomplete
    notes: list[str] = field(default_factory=list)  # details about exported files, for --verbose
    stills: bool = False  # whether the clip is a set of single images
