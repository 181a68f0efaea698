"""`pose-webcam`: live poses from a camera."""
