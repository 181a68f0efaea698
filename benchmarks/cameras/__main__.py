"""Several cameras, and real views with a calibration: docs/studies/cameras.md, keypoints.md and hands.md.

simulated    cameras, offsets, identities and joints of simulated cameras, without calibration
networks     errors of 2D networks in two real views, for `simulated --errors`
sigma        how many keypoints of two real views are within their sigma
live         rate and latency of two live cameras
hands        hands in two real views
"""

from benchmarks.common.command import run

NAMES = ("simulated", "networks", "sigma", "live", "hands")
run("cameras", __doc__, {name: f"cameras.{name}" for name in NAMES})
