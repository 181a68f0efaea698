"""Several cameras that film the same people: `pose-run` with more than one video, and `pose-calibrate`."""
