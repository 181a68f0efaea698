"""Error and processor time of presets and other 2D networks: docs/studies/presets.md.

errors    distance from a reference, and the error against two calibrated views
times     processor time, beside MediaPipe
page      write the table and the plot again
people    processor time of each further person, beside MediaPipe Tasks and rtmlib
"""

from benchmarks.common.command import run

run("presets", __doc__, {
    "errors": "presets.measure", "times": "presets.measure", "page": "presets.measure", "people": "presets.people",
})  # fmt: skip
