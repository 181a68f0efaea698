"""Error and processor time of presets, and cost of further people: docs/studies/presets.md."""

from benchmarks.common.command import run

run("presets", __doc__, "people", errors="measure", times="measure", page="measure")
