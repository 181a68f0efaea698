"""A queue of bounded length that forgets its oldest item when it is full: its taker may be slow, but never behind."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """Between one thread that puts and one that takes. Iterate to take until it is closed and empty.

    dropped: items that were forgotten because nobody took them in time.
    """

    def __init__(self, maxlen: int, notify: Callable[[], object] | None = None) -> None:
        """maxlen: how many items may wait. notify: called in the putting thread after every `put` and after `close`; it
        must not block. An event loop passes one that wakes a task by `call_soon_threadsafe`, and then uses `take`.
        """
        if maxlen < 1:
            raise ValueError(f"maxlen: must be at least 1, got {maxlen}")
        self.dropped = 0
        self._items: deque[Item] = deque()
        self._maxlen = maxlen
        self._notify = notify
        self._closed = False
        self._changed = threading.Condition()

    @property
    def closed(self) -> bool:
        """Nothing more will be put; what waits can still be taken."""
        return self._closed

    def put(self, item: Item) -> bool:
        """Never blocks. Whether it was taken in: once the mailbox is closed, nothing is."""
        with self._changed:
            if self._closed:
                return False
            if len(self._items) == self._maxlen:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify()
        if self._notify is not None:
            self._notify()
        return True

    def take(self) -> Item | None:
        """The oldest item, None when there is none now. Never blocks."""
        with self._changed:
            return self._items.popleft() if self._items else None

    def get(self, timeout: float | None = None) -> Item | None:
        """The oldest item, waiting for it at most `timeout` s; None when there is none by then, or never will be."""
        end = None if timeout is None else monotonic() + timeout
        with self._changed:
            while not self._items and not self._closed:
                left = None if end is None else end - monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)
            return self._items.popleft() if self._items else None

    def __iter__(self) -> Iterator[Item]:
        while (item := self.get()) is not None:
            yield item

    def close(self) -> None:
        """No further item is accepted; who waits is woken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._notify is not None:
            self._notify()
