"""The laboratory: claims of the literature as small experiments with error bars, each repeated by one command."""
