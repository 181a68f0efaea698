"""`pose-studio`: a local page to watch, correct and export results."""
