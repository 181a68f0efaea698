"""Interface between the commands and the processing of clips."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.results.cache import Cache, Found
    from pose.structures.types import FrameResult
    from pose.video import Source


@dataclass(frozen=True, slots=True)
class RunContext:
    """Callbacks and settings of a command, which the processing of a clip uses.

    Attributes:
        with_progress: Function that shows the progress of a step, given the results, their source and the name of the
            step. It yields the results unchanged and in order.
        warn: Function that prints warnings, given one text per warning.
        cache: Cache of earlier results; None to compute everything.
        handles_interrupts: Whether Ctrl-C ends the processing of the clip. Workers of `pose-batch` ignore Ctrl-C.
    """

    with_progress: "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]"
    warn: Callable[[Iterable[str]], None]
    cache: "Cache | None" = None
    handles_interrupts: bool = True


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of processing one clip.

    Attributes:
        tally: Statistics of the run.
        source: The input.
        pipeline: Pipeline that processed the clip.
        files: Written files.
        notes: Lines of text for the summary about exported files.
        cached: Results found in the cache: "nothing", "people" (2D only) or "everything".
        interruption: Exception to raise if Ctrl-C ended the processing early; otherwise None.
        problems: Reasons why results are incomplete.
        stills: Whether the clip is a set of single images.
    """

    tally: Tally
    source: "Source"
    pipeline: "Pipeline"
    files: list[Path]
    notes: list[str]
    cached: "Found"
    interruption: KeyboardInterrupt | None
    problems: list[str] = field(default_factory=list)
    stills: bool = False
