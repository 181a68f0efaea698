"""Lift labelled sequences, measure, average as the protocol demands, and show the result."""
