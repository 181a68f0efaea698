"""`pose-batch`: processing of many clips in one call. See docs/guides/batch.md."""
