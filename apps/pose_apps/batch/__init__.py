"""`pose-batch`: many clips, one call. docs/batch.md shows how it is used."""
