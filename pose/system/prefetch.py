"""Frames decoded by a thread of their own, a few ahead of who works on them."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pose.system.times import StageTimes

Item = TypeVar("Item")
PREFETCHED_FRAMES = 4
POLL_SECONDS = 0.1


def prefetch(frames: Iterable[Item], times: StageTimes, stop: threading.Event) -> Iterator[Item]:
    """The same frames, made by a thread that is at most PREFETCHED_FRAMES ahead; ends early once `stop` is set."""
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(PREFETCHED_FRAMES)
    left = threading.Event()  # nobody takes frames any more

    def put(item: Item | BaseException | None) -> None:
        while not left.is_set():
            try:
                return ready.put(item, timeout=POLL_SECONDS)
            except queue.Full:
                continue

    def decode() -> None:
        try:
            start = time.perf_counter()
            for frame in frames:
                times.add("decode (in parallel)", time.perf_counter() - start)
                put(frame)
                if left.is_set() or stop.is_set():
                    break
                start = time.perf_counter()
            put(None)
        except BaseException as error:  # raised again where the frames are used
            put(error)

    thread = threading.Thread(target=decode, name="decode", daemon=True)
    thread.start()
    try:
        while True:
            with times.measure("wait for frames"):
                item = ready.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return
            yield item
    finally:
        left.set()
        thread.join()
