"""Work in a background thread that overlaps with its caller."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def in_background(work: Callable[[Item], None], max_queued: int = 4) -> Iterator[Callable[[Item], None]]:
    """Yield a function that queues an item for `work` in a thread, in order; it blocks while `max_queued` items wait.

    All work is done at the end of the block. The first error of `work` is raised by the next call or at the end of the
    block; later items are dropped.
    """
    waiting: queue.Queue[Item | _End] = queue.Queue(max_queued)
    failed: list[BaseException] = []

    def do() -> None:
        while not isinstance(item := waiting.get(), _End):
            if not failed:
                try:
                    work(item)
                except BaseException as error:  # raised in the thread of the caller
                    failed.append(error)

    def give(item: Item) -> None:
        if failed:
            raise failed[0]
        waiting.put(item)

    thread = threading.Thread(target=do, name="background", daemon=True)
    thread.start()
    try:
        yield give
    finally:
        waiting.put(_End())
        thread.join()
    if failed:
        raise failed[0]


class _End:
    """Marks the end of the queue."""
