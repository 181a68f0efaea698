"""Interface between the commands and the processing of clips."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.results.cache import Cache
    from pose.results.cache.run import Found
    from pose.structures.types import FrameResult
    from pose.video import Source


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
