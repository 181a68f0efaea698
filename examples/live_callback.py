"""Call a function with every live result.

python examples/live_callback.py 0            # camera 0, an RTSP address or a file
"""

import sys

from pose import LiveLoop, LiveResult, Pipeline, open_live


def on_result(live: LiveResult) -> None:
    """Called in the order of the frames."""
    for row, person in enumerate(live.result.people.ids):
        x, y, z = live.result.poses.root[row]  # m, camera frame
        print(f"{live.result.time:6.2f} s  person {person}  pelvis at {x:+.2f} {y:+.2f} {z:.2f} m")


pipeline = Pipeline.from_preset("fast", live=True)
with LiveLoop(pipeline, open_live(sys.argv[1])) as loop:
    for live in loop.subscribe():
        on_result(live)
