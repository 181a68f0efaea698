"""Processing of several cameras that film the same people: `pose-run` with several videos, and `pose-calibrate`."""
