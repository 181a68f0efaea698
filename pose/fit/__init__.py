"""Least-squares fits of bodies in motion: solvers that the fit to the 2D and several cameras share."""
