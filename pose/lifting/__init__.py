"""The temporal transformer that lifts 2D keypoint sequences to 3D."""
