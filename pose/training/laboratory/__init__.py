"""Experiments that test claims of the literature. Each has error bars and is repeated with one command."""
