"""Readers of motion capture and benchmarks, virtual cameras, and augmentation."""
