"""Person detectors: a frame in, people out. One file a model family."""
