"""Live pose estimation: a source, a loop with bounded latency, and any number of subscribers.

```python
source = open_live("0")  # camera number, network address or file; or `PushedFrames`
with LiveLoop(Pipeline(config, live=True), source) as loop:
    for live in loop.subscribe():
        print(live.result.people.ids, live.latency, loop.status().line())
```
"""

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
