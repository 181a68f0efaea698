"""Processing of queued items in a background thread."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def in_background(work: Callable[[Item], None], max_queued: int = 4) -> Iterator[Callable[[Item], None]]:
    """Return a context manager that runs `work` on items in a background thread, in the order of their arrival.

    The context manager yields a function that queues one item, and that blocks while `max_queued` items wait. All items
    are processed before the `with` block ends. The first exception of `work` is raised by the next call of the
    function, or at the end of the block. Items queued after the one that failed are dropped.

    Args:
        work: Function that processes one item.
        max_queued: Maximum number of waiting items.
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
