"""Motion analysis against motion capture: docs/studies/analysis.md and docs/reference/method-errors.md.

events           gait events and repetitions
forces           ground forces against force plates
method-errors    errors of angles, joints and metrics, from which intervals come
throws           throws and strokes
"""

from benchmarks.common.command import run

run("analysis", __doc__, {
    "events": "analysis.events", "forces": "analysis.forces", "method-errors": "analysis.method_errors",
    "throws": "analysis.throws",
})  # fmt: skip
