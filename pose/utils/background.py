"""Background threads: queued items, reading ahead, and a lock that is granted in order."""

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TypeVar

from pose.utils.progress import StageTimes

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
    """Yield items that a thread named `name` takes up to `count` items ahead; it leaves others after `stop` is set.

    `reading` and `waiting` return the contexts in which the thread takes an item, and in which one is awaited.
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


@contextmanager
def in_background(work: Callable[[Item], None], max_queued: int = 4) -> Iterator[Callable[[Item], None]]:
    """Return a context manager that runs `work` on items in a background thread, in the order of their arrival.

    It yields a function that queues one item, and that blocks while `max_queued` items wait. All items are processed
    before the `with` block ends. The first exception of `work` is raised by the next call of the function, or at the
    end of the block. Items queued after the one that failed are dropped.
    """
    waiting: queue.Queue[Item | _End] = queue.Queue(max_queued)
    errors: list[BaseException] = []

    def process() -> None:
        while not isinstance(item := waiting.get(), _End):
            if not errors:
                try:
                    work(item)
                except BaseException as error:  # raised in the thread of the caller
                    errors.append(error)

    def submit(item: Item) -> None:
        if errors:
            raise errors[0]
        waiting.put(item)

    thread = threading.Thread(target=process, name="background", daemon=True)
    thread.start()
    try:
        yield submit
    finally:
        waiting.put(_End())
        thread.join()
    if errors:
        raise errors[0]


class _End:
    """Marker for the end of the queue."""


class FairLock:
    """A lock for `with` statements. A thread that releases it and asks again waits until all others had their turn."""

    # A thread of `threading.Lock` may take it again before the threads that wait, for a second and more.

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()  # one locked lock for each waiting thread

    def __enter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()  # released by the thread before; the lock stays held

    def __exit__(self, *exception: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
