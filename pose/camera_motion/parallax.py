"""Parallax: what a moving camera shows and a turning one does not."""

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_EXPLAINED = 0.6  # share of the residuals, along the lines of one epipole, from which on a translation explains them


def parallax(rays: F64, off: F64) -> float:
    """px by which points are off a rotation in the median, where one translation explains it; else 0.

    rays: (N, 3) where the points are seen, z = 1. off: (N, 2) px by which each is off. A translation t moves a point at
    depth Z by (t_xy - t_z x) / Z, along the line through the epipole: the best t is the one whose lines the residuals
    cross least.
    """
    size = np.linalg.norm(off, axis=1)
    if len(rays) < 8 or not size.any():
        return 0.0
    near = size < 5 * np.median(size) + 1e-6  # what was mistracked says nothing
    rays, off = rays[near], off[near]
    # off x (t_xy - t_z ray) = 0, linear in t
    rows = np.stack([-off[:, 1], off[:, 0], off[:, 1] * rays[:, 0] - off[:, 0] * rays[:, 1]], axis=1)
    t = np.linalg.svd(rows, full_matrices=False)[2][-1]
    line = t[:2] - t[2] * rays[:, :2]
    line /= np.maximum(np.linalg.norm(line, axis=1, keepdims=True), 1e-9)
    along = (off * line).sum(axis=1)
    explained = float((along**2).sum() / (off**2).sum())
    return float(np.median(size)) if explained > _EXPLAINED else 0.0
