"""Camera motion: measured on the background, solved over the whole run, and classified."""
