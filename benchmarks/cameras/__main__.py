"""Several cameras, and real views with a calibration: docs/studies/cameras.md, keypoints.md and hands.md."""

from benchmarks.common.command import run

run("cameras", __doc__, "simulated", "networks", "sigma", "live", "hands")
