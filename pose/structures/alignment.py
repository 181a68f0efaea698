"""Procrustes alignment: the rotation, scale and translation that bring one pose closest to another.

Poses are (..., J, 3) in any unit. Joints are rows, so a rotation R is applied as `pose @ R`. Reflections are not
allowed. All arithmetic is float64.

Evaluation aligns millions of poses, so rotations are computed with a vectorised closed form (F. L. Markley, "Attitude
determination using vector observations: a fast optimal matrix algorithm", Journal of the Astronautical Sciences 41,
1993). Poses whose rotation is poorly determined use the singular value decomposition.
"""

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64

Poses = NDArray[np.floating]

# The error of the closed form is about machine epsilon / conditioning. Below this conditioning the SVD is used.
_WELL_CONDITIONED = 1e-2
_NEWTON_STEPS = 30
# A pose whose joints coincide is not exactly 0 after its centroid is subtracted. Bound of this error, squared.
_ROUNDING = 1e-28


def similarity_residuals(source: Poses, target: Poses) -> F64:
    """Return the residual (..., J, 3) of each joint after Procrustes alignment with rotation, scale and translation.

    The alignment minimises the sum of squared joint distances (S. Umeyama, "Least-squares estimation of transformation
    parameters between two point patterns", PAMI 1991). If all joints of the source coincide, the scale is 0, and all
    joints are mapped to the target's centroid. For collinear joints, the rotation about their line is arbitrary, but
    this does not change the distances.
    """
    rounding = _ROUNDING * _dot(source, source)
    source, target = _centred(source), _centred(target)
    covariance = np.swapaxes(source, -1, -2) @ target
    rotation = best_rotation(covariance)
    scale = _ratio(_dot(covariance, rotation), _dot(source, source), above=rounding)
    return source @ (scale[..., None, None] * rotation) - target


def fit_scale(source: Poses, target: Poses) -> F64:
    """Return the least-squares scale (...) of poses (..., J, 3) about the origin; 0 if all joints are there."""
    return _ratio(_dot(source, target), _dot(source, source))


def best_rotation(covariance: F64) -> F64:
    """Return the rotation (..., 3, 3) that maximises trace(R^T covariance) for source^T target, centred."""
    flat = covariance.reshape(-1, 3, 3)
    norm = np.sqrt(_dot(flat, flat))
    unit = flat * _ratio(np.ones_like(norm), norm)[:, None, None]
    rotation, conditioning = _closed_form(unit)
    weak = np.flatnonzero((conditioning < _WELL_CONDITIONED) | (norm == 0))
    if len(weak):
        rotation[weak] = _by_svd(unit[weak])
    return rotation.reshape(covariance.shape)


def _centred(poses: Poses) -> F64:
    """Subtract the centroid of each pose (..., J, 3). The centroid is a matrix product, which is faster than `mean`."""
    joints = poses.shape[-2]
    flat = poses.reshape(-1, 3 * joints).astype(np.float64, copy=False)
    select = np.tile(np.eye(3), (joints, 1))
    result: F64 = (flat - (flat @ select) @ (select.T / joints)).reshape(poses.shape)
    return result


def _closed_form(covariance: F64) -> tuple[F64, F64]:
    """Return the optimal rotations for covariances B (N, 3, 3) of norm 1, and the conditioning (N,) of each."""
    # Let s1, s2, s3 be the singular values of B, where s3 has the sign of the determinant. The conditioning is the
    # product of s1 + s2, s2 + s3 and s3 + s1. The gain x = s1 + s2 + s3 is the largest root of x^4 - 2 x^2 - 8 det(B) x
    # + 2 |B^T B|^2 - 1 (Markley). All roots are real, so Newton's method converges monotonically from a start above x.
    # The start follows from x^2 = 1 + 2 y, y^2 = s1^2 s2^2 + s2^2 s3^2 + s3^2 s1^2 + 2 det(B) x and x <= sqrt(3).
    product = np.swapaxes(covariance, 1, 2) @ covariance
    cofactor = _cofactors(covariance)
    determinant = np.vecdot(covariance[:, 0], cofactor[:, 0])
    fourth = _dot(product, product)
    constant, linear = 2 * fourth - 1, 8 * determinant
    gain = np.sqrt(1 + 2 * np.sqrt(np.maximum((1 - fourth) / 2 + np.maximum(2 * 3**0.5 * determinant, 0), 0)))
    for _ in range(_NEWTON_STEPS):
        squared = gain * gain
        value = gain * (gain * (squared - 2) - linear) + constant
        slope = 4 * gain * (squared - 1) - linear
        # a flatter root means a poorly determined rotation, for which the SVD is used
        gain -= value / np.maximum(slope, 1e-6)
        if value.max(initial=0.0) < 1e-14:
            break
    pairs = (gain * gain - 1) / 2
    conditioning = pairs * gain - determinant
    scaled = (pairs + 1)[:, None, None] * covariance + gain[:, None, None] * cofactor - covariance @ product
    return scaled * _ratio(np.ones_like(conditioning), conditioning)[:, None, None], conditioning


def _by_svd(covariance: F64) -> F64:
    u, _, vt = np.linalg.svd(covariance)
    u[..., -1] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))[..., None]
    result: F64 = u @ vt
    return result


def _cofactors(matrices: F64) -> F64:
    """Return the cofactor matrices (N, 3, 3). Each row is the cross product of the other two rows of the input."""
    (a, b, c), (d, e, f), (g, h, i) = matrices.transpose(1, 2, 0)
    rows = (e * i - f * h, f * g - d * i, d * h - e * g, c * h - b * i, a * i - c * g, b * g - a * h)
    return np.stack((*rows, b * f - c * e, c * d - a * f, a * e - b * d), axis=-1).reshape(-1, 3, 3)


def _dot(a: Poses, b: Poses) -> F64:
    """Return the sum of a * b over the last two axes."""
    result: F64 = np.einsum("...jc,...jc->...", a, b, dtype=np.float64)
    return result


def _ratio(numerator: F64, denominator: F64, above: F64 | float = 0.0) -> F64:
    """Return numerator / denominator, or 0 where the denominator is at most `above`."""
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > above)
