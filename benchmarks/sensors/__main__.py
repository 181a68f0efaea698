"""Other sensors: docs/studies/sensors.md and docs/guides/sensors.md."""

from benchmarks.common.command import run

run("sensors", __doc__, "kinect", "imu", "depth")
