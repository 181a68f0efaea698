"""How the camera moves: measured on the background, solved over the run, classified with numbers."""
