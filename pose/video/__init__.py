"""Reading and writing video."""
