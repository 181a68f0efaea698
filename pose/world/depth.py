"""How far away a person is: from their own body and all that is seen of it, held together by where they were before.

The lifter says it for every frame alone, as the size of the body in metres over its size in the picture; with one or
two joints in view that is a guess which may lie hundreds of metres away. Here the whole body of one size is laid over
what is seen, which also says how well that determines the distance, and a motion model carries the distance through
frames that do not say it.
"""

import numpy as np
from numpy.typing import NDArray

from pose.world.person import Person
from pose.world.rules import RULES, DepthRules

F64 = NDArray[np.float64]


def measured_depths(person: Person, rules: DepthRules = RULES.depth) -> tuple[F64, F64]:
    """Depth of the pelvis (T,) m that one frame by itself says, and its variance (T,) m^2; infinite where it says none.

    Half of it is the lifter's. The other half is where the body of one size fits what is seen best: each seen joint j
    says twice (across and down) that x + x_j = ray_j (z + z_j), which is least squares in x, y, z, weighted by the
    uncertainty of the joint and of the picture. Its normal equations give the variance.
    """
    weight, offset = _weights(person, rules)
    total = np.maximum(weight.sum(axis=1), 1e-12)
    weighted = weight[..., None] * person.rays
    ray = person.rays - (weighted.sum(axis=1) / total[:, None])[:, None]
    rest = offset - ((weight[..., None] * offset).sum(axis=1) / total[:, None])[:, None]
    lever = weight[..., None] * ray
    information = np.einsum("tjc,tjc->t", lever, ray)
    known = information > 1e-9
    fitted = -np.einsum("tjc,tjc->t", lever, rest) / np.maximum(information, 1e-9)
    depth = rules.fitted * fitted + (1 - rules.fitted) * person.root[:, 2]
    variance = rules.doubt / np.maximum(information, 1e-9) + ((fitted - person.root[:, 2]) / 2) ** 2
    known &= depth > 0
    return np.where(known, depth, person.root[:, 2]), np.where(known, variance, np.inf)


def place(person: Person, depth: F64, rules: DepthRules = RULES.depth) -> F64:
    """Roots (T, 3) m of this depth (T,) that lie where the picture shows the body; the lifter's ray where it shows
    none.
    """
    weight, offset = _weights(person, rules)
    total = weight.sum(axis=1)[:, None]
    across = np.einsum("tj,tjc->tc", weight, person.rays) * depth[:, None] + np.einsum("tj,tjc->tc", weight, offset)
    ray = person.root[:, :2] / np.maximum(person.root[:, 2:], 1e-3)
    placed = np.where(total > 0, across / np.maximum(total, 1e-12), ray * depth[:, None])
    return np.concatenate([placed, depth[:, None]], axis=1)


def _weights(person: Person, rules: DepthRules) -> tuple[F64, F64]:
    """(T, 17) inverse variances of what the joints say, 1 / m^2, and (T, 17, 2) their rays' depth minus their place.

    A joint that is not seen where the lifter puts it was an outlier, or its limb was exchanged.
    """
    joints, root = person.joints, person.root
    offset = person.rays * joints[..., 2:] - joints[..., :2]
    square = np.einsum("tjc,tjc->t", joints, joints)[:, None] / joints.shape[1]
    off = person.rays * root[:, None, 2:] + offset - root[:, None, :2]
    doubt = 1 + np.einsum("tjc,tjc->tj", off, off) / (rules.outlier**2 * np.maximum(square, 1e-9))
    variance = (person.sigma / 1000) ** 2 + rules.picture**2 * square + 1e-9
    return person.scores / (variance * doubt), offset


def smooth_depths(measured: F64, variance: F64, times: F64, rules: DepthRules = RULES.depth) -> tuple[F64, F64]:
    """Depth (T,) m over time and its variance (T,) m^2: a Kalman filter forwards, the smoother of Rauch, Tung and
    Striebel backwards.

    The state is depth and speed; the speed forgets itself within `settle` s and is driven by `agility` m/s^1.5. Before
    anything is seen the depth is the median of what was measured, within a few metres.
    """
    agility, settle = rules.agility, rules.settle
    usable = np.isfinite(variance)
    if not usable.any():
        return measured.copy(), variance.copy()
    best = np.argsort(variance[usable])[: max(1, usable.sum() // 2)]
    middle = float(np.median(measured[usable][best]))
    z, v = middle, 0.0
    a, b, c = (0.5 * middle) ** 2, 0.0, 1.0  # covariance of depth and speed: [[a, b], [b, c]]
    count = len(times)
    steps = np.diff(times, prepend=times[0]).tolist()
    noise = np.where(usable, variance, 1e12).tolist()
    seen = measured.tolist()
    kept = []
    for t in range(count):
        step = steps[t]
        if step > 0:
            keep = np.exp(-step / settle) if step < 5 * settle else 0.0
            reach = settle * (1 - keep)
            z, v = z + reach * v, keep * v
            a, b, c = a + 2 * reach * b + reach * reach * c, keep * (b + reach * c), keep * keep * c
            q = agility * agility
            a, b, c = a + q * step**3 / 3, b + q * step**2 / 2, c + q * step
            before = (reach, keep)
        else:
            before = (0.0, 1.0)
        predicted = (z, v, a, b, c)
        total = a + noise[t]
        gain_z, gain_v = a / total, b / total
        error = seen[t] - z if noise[t] < 1e11 else 0.0
        z, v = z + gain_z * error, v + gain_v * error
        a, b, c = (1 - gain_z) * a, (1 - gain_z) * b, c - gain_v * b
        kept.append((before, predicted, (z, v, a, b, c)))
    depth, spread = np.empty(count), np.empty(count)
    depth[-1], spread[-1] = z, a
    for t in range(count - 2, -1, -1):
        (reach, keep), (pz, pv, pa, pb, pc), _ = kept[t + 1]
        fz, fv, fa, fb, fc = kept[t][2]
        # Gain = covariance F^T predicted^-1, F = [[1, reach], [0, keep]].
        m00, m01 = fa + reach * fb, keep * fb
        m10, m11 = fb + reach * fc, keep * fc
        det = max(pa * pc - pb * pb, 1e-18)
        g00, g01 = (m00 * pc - m01 * pb) / det, (m01 * pa - m00 * pb) / det
        g10, g11 = (m10 * pc - m11 * pb) / det, (m11 * pa - m10 * pb) / det
        dz, dv = z - pz, v - pv
        da, db, dc = a - pa, b - pb, c - pc
        z, v = fz + g00 * dz + g01 * dv, fv + g10 * dz + g11 * dv
        a = fa + g00 * g00 * da + 2 * g00 * g01 * db + g01 * g01 * dc
        b = fb + g00 * g10 * da + (g00 * g11 + g01 * g10) * db + g01 * g11 * dc
        c = fc + g10 * g10 * da + 2 * g10 * g11 * db + g11 * g11 * dc
        depth[t], spread[t] = z, max(a, 0.0)
    return depth, spread
