"""Distance of a person from the whole detected body, filtered over time.

The lifter estimates the distance per frame, from the size of the body in metres over its size in the image. With one or
two detected joints this estimate can be wrong by hundreds of metres. Here the body with constant bone lengths is fitted
to all detections, which also gives the uncertainty. A motion model bridges frames without information.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64
from pose.world.rules import DEPTH
from pose.world.work import Person

_State = tuple[float, float, float, float, float]  # depth, speed and their covariance a, b, c
_Step = tuple[tuple[float, float], _State, _State]  # transition (travel_time, decay), predicted state, updated state
_MIN_COSINE = 0.5  # minimum cosine between a line of sight and the axis along which distances are compared


@dataclass(frozen=True, slots=True)
class PelvisEstimate:
    """Estimates of the pelvis from each of T frames alone, in camera axes: x, y at depth z are `ray` * z + `offset`."""

    depth: F64  # (T,) m, estimated depth
    variance: F64  # (T,) m^2, variance of the depth; infinite without information
    ray: F64  # (T, 2) x / z and y / z of the line of sight
    offset: F64  # (T, 2) m

    def positions(self, depth: F64) -> F64:
        """Return pelvis positions (T, 3) m in camera axes for given depths (T,) m."""
        return np.concatenate([self.ray * depth[:, None] + self.offset, depth[:, None]], axis=1)

    def distance_map(self, rotations: F64, positions: F64 | None = None) -> tuple[F64, F64]:
        """Return slope (T,) and intercept (T,) m from depth to a distance that is comparable over time."""
        # The distance is measured along one fixed axis. For a camera that does not move it is the depth. The axis is
        # the viewing direction of the first frame. If the person is ever more than 60 degrees from this axis, the
        # person's mean direction replaces it. If this fails too, each frame uses its own line of sight, whose noise
        # adds to the distance.
        rays = np.einsum("tij,tj->ti", rotations, np.concatenate([self.ray, np.ones((len(self.ray), 1))], axis=1))
        lines = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        mean = lines.mean(axis=0)
        fixed = (np.array([0.0, 0.0, 1.0]), mean / max(float(np.linalg.norm(mean)), 1e-9))
        axis = next((one for one in fixed if (lines @ one).min(initial=1.0) > _MIN_COSINE), lines)
        offsets = np.einsum("tij,tj->ti", rotations[:, :, :2], self.offset)
        if positions is not None and axis is not lines:
            offsets = offsets + positions
        return (rays * axis).sum(axis=1), (offsets * axis).sum(axis=1)


def estimate_pelvis(person: Person) -> PelvisEstimate:
    """Estimate the position of the pelvis in each frame from all detected joints."""
    # Each detected joint j gives two equations (across and down), x + x_j = ray_j (z + z_j). They are solved for the
    # pelvis (x, y, z) by least squares, weighted by the uncertainties of the joint and of its detection. The normal
    # equations give the variance. The depth is a weighted mean of this fit and of the lifter's depth
    # (`DEPTH.fit_weight`). Without detections, the pelvis stays on the lifter's line of sight.
    weight, offset = _weights(person)
    total = weight.sum(axis=1)
    share = weight / np.maximum(total, 1e-12)[:, None]
    middle_ray, middle = ((share[..., None] * values).sum(axis=1) for values in (person.rays, offset))
    ray, rest = person.rays - middle_ray[:, None], offset - middle[:, None]
    lever = weight[..., None] * ray
    information = (lever * ray).sum(axis=(1, 2))
    spread = np.maximum(information, 1e-9)
    lifted_depth = person.root[:, 2]
    fitted = -(lever * rest).sum(axis=(1, 2)) / spread
    depth = DEPTH.fit_weight * fitted + (1 - DEPTH.fit_weight) * lifted_depth
    variance = DEPTH.variance_factor / spread + ((fitted - lifted_depth) / 2) ** 2
    if information.min(initial=1.0) > 1e-9 and depth.min(initial=1.0) > 0:
        return PelvisEstimate(depth, variance, middle_ray, middle)
    is_determined = (information > 1e-9) & (depth > 0)
    seen = (total > 0)[:, None]
    return PelvisEstimate(
        np.where(is_determined, depth, lifted_depth),
        np.where(is_determined, variance, np.inf),
        np.where(seen, middle_ray, person.root[:, :2] / np.maximum(lifted_depth, 1e-3)[:, None]),
        middle,
    )


def _weights(person: Person) -> tuple[F64, F64]:
    """Return the weights (T, 17) 1/m^2 of the joints' equations, and their constant terms (T, 17, 2) m."""
    # The weights are inverse variances. A joint whose detection is far from its lifted position has a lower weight: it
    # is an outlier, or left and right of its limb were swapped.
    joints, root = person.joints, person.root
    offset = person.rays * joints[..., 2:] - joints[..., :2]
    square = (joints * joints).sum(axis=(1, 2))[:, None] / joints.shape[1]
    off = person.rays * root[:, None, 2:] + offset - root[:, None, :2]
    doubt = 1 + (off * off).sum(axis=-1) / (DEPTH.outlier_share**2 * np.maximum(square, 1e-9))
    variance = (person.sigma / 1000) ** 2 + DEPTH.pixel_sigma_share**2 * square + 1e-9
    return person.scores / (variance * doubt), offset


def smooth_depths(measured: F64, variance: F64, times: F64, initial_range_m: float | None = None) -> tuple[F64, F64]:
    """Smooth depths (T,) m with a Kalman filter and a Rauch-Tung-Striebel smoother; return them and variances."""
    # The state is depth and speed; the speed decays within `speed_memory_s` and is driven by `agility_mps15`. The
    # initial depth is the median of the more certain half of the measurements. If no variance is finite, the inputs are
    # returned.
    agility, settle = DEPTH.agility_mps15, DEPTH.speed_memory_s
    usable = np.isfinite(variance)
    if not usable.any():
        return measured.copy(), variance.copy()
    best = np.argsort(variance[usable])[: max(1, usable.sum() // 2)]
    middle = float(np.median(measured[usable][best]))
    z, v = middle, 0.0
    initial_range_m = middle if initial_range_m is None else initial_range_m
    a, b, c = (0.5 * initial_range_m) ** 2, 0.0, 1.0  # covariance of depth and speed: [[a, b], [b, c]]
    steps = np.diff(times, prepend=times[0]).tolist()
    noise = np.where(usable, variance, 1e12).tolist()
    seen = measured.tolist()
    filter_steps: list[_Step] = []
    for t, step in enumerate(steps):
        if step > 0:
            decay = np.exp(-step / settle) if step < 5 * settle else 0.0
            travel_time = settle * (1 - decay)
            z, v = z + travel_time * v, decay * v
            a, b, c = (
                a + 2 * travel_time * b + travel_time * travel_time * c,
                decay * (b + travel_time * c),
                decay * decay * c,
            )
            q = agility * agility
            a, b, c = a + q * step**3 / 3, b + q * step**2 / 2, c + q * step
            before = (travel_time, decay)
        else:
            before = (0.0, 1.0)
        predicted = (z, v, a, b, c)
        total = a + noise[t]
        gain_z, gain_v = a / total, b / total
        error = seen[t] - z if noise[t] < 1e11 else 0.0
        z, v = z + gain_z * error, v + gain_v * error
        a, b, c = (1 - gain_z) * a, (1 - gain_z) * b, c - gain_v * b
        filter_steps.append((before, predicted, (z, v, a, b, c)))
    return _smoothed(filter_steps)


def _smoothed(filter_steps: list[_Step]) -> tuple[F64, F64]:
    """Return depths and their variances from the steps of the filter: the backward pass of the smoother."""
    count = len(filter_steps)
    depth, spread = np.empty(count), np.empty(count)
    z, v, a, b, c = filter_steps[-1][2]
    depth[-1], spread[-1] = z, a
    for t in range(count - 2, -1, -1):
        (travel_time, decay), (pz, pv, pa, pb, pc), _ = filter_steps[t + 1]
        fz, fv, fa, fb, fc = filter_steps[t][2]
        # Gain = covariance F^T predicted^-1, F = [[1, travel_time], [0, decay]].
        m00, m01 = fa + travel_time * fb, decay * fb
        m10, m11 = fb + travel_time * fc, decay * fc
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
