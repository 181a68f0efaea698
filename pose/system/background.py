"""Work done by a thread behind the one that asks for it, so that both go on at the same time."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def in_background(work: Callable[[Item], None], most: int = 4) -> Iterator[Callable[[Item], None]]:
    """Gives a function that has `work` done to an item by a thread, in order; it waits where `most` items wait already.

    When the block ends all work is done. The first error of `work` is raised by the next call, or at the end of the
    block; items after it are dropped.
    """
    waiting: queue.Queue[Item | _End] = queue.Queue(most)
    failed: list[BaseException] = []

    def do() -> None:
        while not isinstance(item := waiting.get(), _End):
            if not failed:
                try:
                    work(item)
                except BaseException as error:  # raised again where the items come from
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
    """After the last item."""
