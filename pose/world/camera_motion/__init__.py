"""Camera motion: measured on the background of each frame, solved over the whole run, and classified."""
