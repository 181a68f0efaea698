"""Identities over time: docs/studies/tracking.md.

scenes    trackers on scenes of known truth, with the measures of `trackers`
crowds    ids per person, switches and doubled ids before a moving camera
"""

from benchmarks.common.command import run

run("tracking", __doc__, {"scenes": "tracking.scenes", "crowds": "tracking.crowds"})
