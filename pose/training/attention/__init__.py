"""Attention mechanisms of the laboratory."""
