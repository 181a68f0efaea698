"""Evaluation of lifters on labelled sequences: errors, averages as the protocols require, and reports."""
