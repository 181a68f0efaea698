"""`pose-lab`: the laboratory's experiments, their tables, and what a lifter's heads look at."""
