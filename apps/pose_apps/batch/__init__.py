"""`pose-batch`: many clips in one call, see docs/guides/batch.md."""
