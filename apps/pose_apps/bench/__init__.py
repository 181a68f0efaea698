"""`pose-bench`: speed of the components on this machine."""
