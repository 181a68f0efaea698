"""Person detectors, one file per model family."""
