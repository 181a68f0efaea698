"""Identities over time: docs/studies/tracking.md."""

from benchmarks.common.command import run

run("tracking", __doc__, "scenes", "crowds")
