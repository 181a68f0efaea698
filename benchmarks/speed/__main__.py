"""Start, memory, cost of a change, and other programs: docs/studies/performance.md and rtmpose.md."""

from benchmarks.common.command import run

run("speed", __doc__, "start", "memory", "against", "agreement", "rtmlib")
