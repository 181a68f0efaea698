"""Playback of a result in real time, as a source of frames for links."""

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pose.live.base import Wanted
from pose.live.mailbox import Mailbox
from pose.live.result import LiveResult, Stream
from pose.results import Recording, WorldInfo
from pose.structures.types import FrameResult

_SIZE = (1280, 720)  # size of the images if the result does not name its camera, px


class Playback:
    """Publisher of the frames of a result at their own times, or faster or slower by `speed`."""

    def __init__(self, table: Recording, speed: float = 1.0) -> None:
        self._table, self._speed = table, speed
        self._mailboxes: list[Mailbox[LiveResult]] = []
        camera = table.camera
        self._size = _SIZE if camera is None else camera.size
        session = SimpleNamespace(camera=camera)
        stream = Stream(cast(Any, None), cast(Any, session), self._size)
        self._stream = None if camera is None else stream

    def subscribe(self, maxlen: int = 2, *, wanted: Wanted = "newest") -> Mailbox[LiveResult]:
        """Return a mailbox that receives every frame from now on."""
        mailbox: Mailbox[LiveResult] = Mailbox(maxlen)
        self._mailboxes.append(mailbox)
        return mailbox

    def unsubscribe(self, mailbox: Mailbox[LiveResult]) -> None:
        """Remove a subscriber and close its mailbox."""
        self._mailboxes = [one for one in self._mailboxes if one is not mailbox]
        mailbox.close()

    def run(self, shown: Callable[[int], None] = lambda _: None, again: bool = False) -> None:
        """Publish all frames, then close the mailboxes. `shown` is called with the position of each frame.

        Args:
            again: Whether to start over at the end, without end.
        """
        try:
            while True:
                self._run_once(shown)
                if not again:
                    return
        finally:
            for mailbox in list(self._mailboxes):
                mailbox.close()

    def _run_once(self, shown: Callable[[int], None]) -> None:
        times = self._table.timestamps
        begin = time.monotonic()
        image = np.zeros((self._size[1], self._size[0], 3), np.uint8)
        for position in range(len(self._table)):
            due = begin + float(times[position] - times[0]) / self._speed
            time.sleep(max(0.0, due - time.monotonic()))
            result = self._table[position]
            info = _world_at(self._table.world_info, result)
            live = LiveResult(image, result, self._table.skeleton, due, due, self._stream, info)
            for mailbox in list(self._mailboxes):
                mailbox.put(live)
            shown(position)


def _world_at(info: WorldInfo | None, result: FrameResult) -> WorldInfo | None:
    """Return the world of a frame: its rotation is from the camera axes of this frame, not of the first."""
    if info is None or result.view is None:
        return info
    return replace(info, world=replace(info.world, rotation=info.world.rotation @ result.view.rotation))
