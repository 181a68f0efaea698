"""Long live runs: docs/studies/live.md and docs/guides/links.md."""

from benchmarks.common.command import run

run("live", __doc__, "hours", "links")
