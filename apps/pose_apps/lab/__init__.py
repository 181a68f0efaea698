"""`pose-lab`: experiments of the laboratory, tables of their results, and attention maps of lifters."""
