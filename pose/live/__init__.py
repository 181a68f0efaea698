"""Live pose estimation: a source, a loop with bounded latency, and any number of subscribers.

```python
source = open_live("0")  # camera number, network address or file; or `PushedFrames`
with LiveLoop(Pipeline(config, live=True), source) as loop:
    for live in loop.subscribe():
        print(live.result.people.ids, live.latency, loop.status().line())
```

Names are imported at their first use, so that options of the live page load without the loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.live.base import Loop
    from pose.live.loop import LiveLoop
    from pose.live.mailbox import Mailbox
    from pose.live.result import LiveResult, LiveStatus
    from pose.live.sources import Captured, LiveSource, PushedFrames, open_live

__all__ = [
    "Captured",
    "LiveLoop",
    "LiveResult",
    "LiveSource",
    "LiveStatus",
    "Loop",
    "Mailbox",
    "PushedFrames",
    "open_live",
]

_MODULES = {
    "Captured": "sources",
    "LiveLoop": "loop",
    "LiveResult": "result",
    "LiveSource": "sources",
    "LiveStatus": "result",
    "Loop": "base",
    "Mailbox": "mailbox",
    "PushedFrames": "sources",
    "open_live": "sources",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'pose.live' has no attribute {name!r}")
    return getattr(import_module(f"pose.live.{_MODULES[name]}"), name)
