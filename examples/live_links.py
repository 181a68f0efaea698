"""Send a camera's people to other programs from Python, as `pose-webcam --send` does, and act on their events.

python examples/live_links.py 0 osc,vmc       # camera 0, an RTSP address or a file
"""

import sys

from pose import LiveLoop, Pipeline, open_live
from pose.live.links import open_links
from pose.live.links.frames import FrameBuilder

pipeline = Pipeline.from_preset("fast", live=True)
loop = LiveLoop(pipeline, open_live(sys.argv[1]), world=True)
links = open_links(loop, sys.argv[2])
builder = FrameBuilder()
with loop:
    for live in loop.subscribe():
        for event in builder.build(live).events:
            print(f"{live.result.time:6.2f} s  {event.kind} {event.person} {event.detail}")
for link in links:
    link.close()
    print(link.name, link.problem or link.trouble or "ok", f"{link.lost} lost")
