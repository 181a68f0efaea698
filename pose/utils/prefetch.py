"""Reading of an iterable, such as the frames of a video, a few items ahead in a background thread."""

import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from pose.utils.times import StageTimes

Item = TypeVar("Item")
PREFETCHED_FRAMES = 4
POLL_SECONDS = 0.1


def prefetch(
    frames: Iterable[Item], times: StageTimes, stop: threading.Event, prefix: str = ""
) -> Generator[Item, None, None]:
    """Yield the items of `frames`, which a background thread reads up to `PREFETCHED_FRAMES` items ahead."""
    reading, waiting = (
        partial(times.measure, f"{prefix}{what}") for what in ("decode (in parallel)", "wait for frames")
    )
    return ahead(frames, "decode", stop, reading, waiting)


def ahead(
    items: Iterable[Item],
    name: str,
    stop: threading.Event | None = None,
    reading: Callable[[], AbstractContextManager[None]] = nullcontext,
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    count: int = PREFETCHED_FRAMES,
) -> Generator[Item, None, None]:
    """Yield items that a background thread takes up to `count` items ahead.

    Args:
        items: The items; what the thread has not taken at the end is left there.
        name: Name of the thread.
        stop: Event after which no further item is taken.
        reading: Returns the context in which the thread takes an item.
        waiting: Returns the context in which an item is awaited.
        count: Maximum number of items that wait.
    """
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(count)
    consumer_stopped = threading.Event()

    def put(item: Item | BaseException | None) -> None:
        while not consumer_stopped.is_set():
            try:
                return ready.put(item, timeout=POLL_SECONDS)
            except queue.Full:
                continue

    def take() -> None:
        iterator = iter(items)
        try:
            while not (consumer_stopped.is_set() or (stop is not None and stop.is_set())):
                with reading():
                    item = next(iterator, None)
                put(item)
                if item is None:
                    return
            put(None)
        except BaseException as error:  # raised in the thread of the consumer
            put(error)
        finally:
            if isinstance(iterator, Generator):
                iterator.close()

    thread = threading.Thread(target=take, name=name, daemon=True)
    thread.start()
    try:
        while True:
            with waiting():
                found = ready.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                return
            yield found
    finally:
        consumer_stopped.set()
        if not sys.is_finalizing():  # then the thread does not run any more
            thread.join()
