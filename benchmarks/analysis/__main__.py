"""Motion analysis against motion capture: docs/studies/analysis.md and docs/reference/method-errors.md."""

from benchmarks.common.command import run

run("analysis", __doc__, "events", "forces", "method-errors", "throws")
