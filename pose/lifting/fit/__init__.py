"""Least-squares fits of human motion: solvers for the fit to 2D keypoints and for several cameras."""
