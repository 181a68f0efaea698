"""Start, memory, cost of a change, and other programs: docs/studies/performance.md, presets.md and rtmpose.md.

start        until a help text, the first output and the first frame
memory       peak memory of a short and of a long video
against      two checkouts in turns: start, speed, memory and live latency
agreement    distance of our landmarks from MediaPipe's
rtmlib       detector and keypoints of eight people, beside rtmlib
"""

from benchmarks.common.command import run

NAMES = ("start", "memory", "against", "agreement", "rtmlib")
run("speed", __doc__, {name: f"speed.{name}" for name in NAMES})
