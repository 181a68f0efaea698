"""Writers of results, one file a format."""
