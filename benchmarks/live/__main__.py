"""Long live runs: docs/studies/live.md and docs/guides/links.md.

soak     an unreliable camera over HTTP, and two clients
hours    `pose-webcam --web` for hours, with browsers that come and go
links    all links to other programs, with receivers that come and go
"""

from benchmarks.common.command import run

NAMES = ("soak", "hours", "links")
run("live", __doc__, {name: f"live.{name}" for name in NAMES})
