"""A bounded queue that drops its oldest item when it is full."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """A bounded queue between one producer and one consumer thread, which drops its oldest item when full."""

    def __init__(
        self, maxlen: int, notify: Callable[[], object] | None = None, room: Callable[[Item], int] | None = None
    ) -> None:
        """Create an empty mailbox of `maxlen` items; `notify` must not block.

        room: Maximum number of items, at least 1 and at most `maxlen`, when an item is added, such as for its size.
        """
        # `notify` is called in the producer's thread after every `put` and after `close`. A consumer in an asyncio
        # event loop passes a function that calls `call_soon_threadsafe`, to wake the task that calls `take`.
        if maxlen < 1:
            raise ValueError(f"maxlen: must be at least 1, got {maxlen}")
        self.dropped = 0  # number of dropped items
        self._items: deque[Item] = deque()
        self._maxlen, self._notify = maxlen, notify
        self.room = room
        self._closed = False
        self._changed = threading.Condition()

    @property
    def closed(self) -> bool:
        """Whether the mailbox is closed. Remaining items can still be taken."""
        return self._closed

    def put(self, item: Item) -> bool:
        """Add an item without blocking, and return whether it was accepted. A closed mailbox accepts none."""
        with self._changed:
            if self._closed:
                return False
            limit = self._maxlen if self.room is None else max(1, min(self._maxlen, self.room(item)))
            while len(self._items) >= limit:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify()
        if self._notify is not None:
            self._notify()
        return True

    def take(self) -> Item | None:
        """Return the oldest item without blocking; None if the mailbox is empty."""
        with self._changed:
            return self._items.popleft() if self._items else None

    def get(self, timeout: float | None = None) -> Item | None:
        """Return the oldest item, waiting at most `timeout` s (None: no limit); None if there is none."""
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
        """Accept no further item, and wake the consumer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._notify is not None:
            self._notify()
