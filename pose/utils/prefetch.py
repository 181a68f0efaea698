"""Reading of an iterable, such as the frames of a video, a few items ahead in a background thread."""

import queue
import sys
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

from pose.utils.times import StageTimes

Item = TypeVar("Item")
PREFETCHED_FRAMES = 4
POLL_SECONDS = 0.1


def prefetch(
    frames: Iterable[Item], times: StageTimes, stop: threading.Event, prefix: str = ""
) -> Generator[Item, None, None]:
    """Yield the items of `frames`, which a background thread reads up to `PREFETCHED_FRAMES` items ahead."""
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(PREFETCHED_FRAMES)
    consumer_stopped = threading.Event()

    def put(item: Item | BaseException | None) -> None:
        while not consumer_stopped.is_set():
            try:
                return ready.put(item, timeout=POLL_SECONDS)
            except queue.Full:
                continue

    def decode() -> None:
        try:
            iterator = iter(frames)
            while not (consumer_stopped.is_set() or stop.is_set()):
                with times.measure(f"{prefix}decode (in parallel)"):
                    frame = next(iterator, None)
                put(frame)
                if frame is None:
                    return
            put(None)
        except BaseException as error:  # raised in the thread of the consumer
            put(error)

    thread = threading.Thread(target=decode, name="decode", daemon=True)
    thread.start()
    try:
        while True:
            with times.measure(f"{prefix}wait for frames"):
                item = ready.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return
            yield item
    finally:
        consumer_stopped.set()
        if not sys.is_finalizing():  # then the thread does not run any more
            thread.join()
