"""The laboratory: claims of the literature as small experiments, repeatable by one command, with error bars."""
