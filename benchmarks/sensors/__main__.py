"""Other sensors: docs/studies/sensors.md and docs/guides/sensors.md.

kinect    skeletons of a Kinect before and after correction
imu       leg angles of a video without and with two inertial sensors
depth     distances and heights without and with depth images
"""

from benchmarks.common.command import run

NAMES = ("kinect", "imu", "depth")
run("sensors", __doc__, {name: f"sensors.{name}" for name in NAMES})
