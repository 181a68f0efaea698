"""A lock that threads get in the order in which they asked for it."""

import threading
from collections import deque


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
