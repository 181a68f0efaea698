"""Forms of the lifter network of the laboratory."""
