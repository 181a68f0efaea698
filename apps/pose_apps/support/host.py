"""What a command that has clips processed and the processing know of each other."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.cache import Cache, Found
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose.video import Source


@dataclass(frozen=True, slots=True)
class Host:
    """Who has a clip processed. shown: takes results, their source and what they are for, and gives them on in order.
    warn: takes what went wrong and is no error. cache: None where nothing is remembered. heard: Ctrl-C ends the clip.
    """

    shown: "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]"
    warn: Callable[[Iterable[str]], None]
    cache: "Cache | None" = None
    heard: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """A clip that was processed.

    files: what was written. notes: lines on those of other programs' formats. known: what of it the cache knew.
    interruption: it was ended early by Ctrl-C. problems: why the results are not all that was asked for; they keep what
    there is. stills: it was a set of single pictures.
    """

    tally: Tally
    source: "Source"
    pipeline: "Pipeline"
    files: list[Path]
    notes: list[str]
    known: "Found"
    interruption: KeyboardInterrupt | None
    problems: list[str] = field(default_factory=list)
    stills: bool = False
