"""Several cameras that film the same people: what `pose-run` does with more than one video, and `pose-calibrate`."""
