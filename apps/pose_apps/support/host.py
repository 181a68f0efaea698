"""The interface between commands and the processing of clips."""

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
    """Callbacks of a command during the processing of a clip.

    Attributes:
        shown: Wraps results, given their source and purpose, and returns them in order.
        warn: Called with warnings.
        cache: None without a cache.
        heard: Whether Ctrl-C ends the clip.
    """

    shown: "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]"
    warn: Callable[[Iterable[str]], None]
    cache: "Cache | None" = None
    heard: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """A processed clip.

    Attributes:
        files: Written files.
        notes: Notes on exported files.
        known: Results found in the cache.
        interruption: Set if Ctrl-C ended it early.
        problems: Why results are incomplete; existing ones are kept.
        stills: Whether it was a set of single images.
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
