"""`pose-webcam`: live poses of a camera."""
