"""`pose-bench`: how fast the parts are on this machine."""
