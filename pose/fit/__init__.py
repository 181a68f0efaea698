"""Least-squares fits of human motion: solvers for the fit to the 2D and for several cameras."""
