"""`pose-batch`: many clips, one call. docs/guides/batch.md shows how it is used."""
