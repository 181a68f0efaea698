"""`pose-lab`: the laboratory's experiments, their tables, and attention maps of lifters."""
