"""Joint centres from optical markers on the skin (Plug-in-Gait marker set).

Markers are (T, 39, 3) m in the order of `MARKERS`, world frame with y up, NaN where not detected. All frames of an
array belong to one marker placement: one person whose markers were not moved. Quantities that a single frame does not
determine are fitted to all frames.

| point | computed from |
|---|---|
| hips | regression on the leg length, from ASI and PSI (Hara et al. 2016); refined by the rotation of the thigh |
| knees | KNE, moved inwards by half the knee width along the flexion axis; refined by the rotation of the shank |
| ankles | ANK, moved inwards by half the ankle width parallel to the flexion axis of the knee |
| shoulders | SHO, moved down perpendicular to the collar bone (as in Plug-in-Gait); refined by the upper arm length |
| elbows | ELB, moved inwards by half the elbow width, perpendicular to the arm's plane; refined by the forearm length |
| wrists | midpoint of WRA and WRB |
| thorax, spine | midpoint of C7 and CLAV; midpoint of T10 and STRN |
| neck, head, nose, ears | `mapping.HEAD_POINTS` in the frame of the four head markers |

A refinement finds the point between its anatomically expected position and the centre of rotation of the moving segment
(`_centre_of_rotation`). Finally, each limb bone gets one length for all frames and both sides. Joints move along their
bones, so joint angles do not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64
from pose_datasets.mapping import HEAD_POINTS, POINTS
from pose_datasets.rotations import about_axis
from pose_datasets.vectors import cross, norm, perpendicular, unit

MARKERS = (
    "LFHD", "RFHD", "LBHD", "RBHD", "C7", "T10", "CLAV", "STRN", "RBAK",
    "LSHO", "LUPA", "LELB", "LFRM", "LWRA", "LWRB", "LFIN",
    "RSHO", "RUPA", "RELB", "RFRM", "RWRA", "RWRB", "RFIN",
    "LASI", "RASI", "LPSI", "RPSI",
    "LTHI", "LKNE", "LTIB", "LANK", "LHEE", "LTOE",
    "RTHI", "RKNE", "RTIB", "RANK", "RHEE", "RTOE",
)  # fmt: skip
"""The full-body marker set of Vicon's Plug-in-Gait."""

UNUSED = frozenset({"RBAK", "LUPA", "RUPA", "LFRM", "RFRM", "LFIN", "RFIN", "LHEE", "RHEE", "LTOE", "RTOE"})
"""Markers that no joint centre needs."""

# Half the breadth of a joint plus the radius of a marker (7 mm), relative to the leg length (ASI to malleolus). An
# adult with legs of 0.90 m has femoral epicondyles 98 mm, malleoli 72 mm and humeral epicondyles 66 mm apart.
_KNEE, _ANKLE, _ELBOW = ((0.5 * breadth + 0.007) / 0.90 for breadth in (0.098, 0.072, 0.066))
_SHOULDER = 0.045 / 0.90  # from the marker on the acromion to the joint's centre

# m: standard deviations of joints from their anatomical position, and of marker distances, because skin slides.
_HIP_DEVIATIONS = (0.015, 0.008)
_KNEE_DEVIATIONS = (0.02, 0.005)
_ARM_DEVIATIONS = (0.015, 0.008)  # larger, because the shoulder blade moves as well

LIMB_BONES = {
    "thigh": ("hip", "knee"),
    "shin": ("knee", "ankle"),
    "forearm": ("elbow", "wrist"),
    "upper arm": ("elbow", "shoulder"),
}  # each from the joint that is kept to the one that is moved when bones are made rigid
SIDES = (("left", "L", 1.0), ("right", "R", -1.0))
_MIN_FRAMES = 10  # of a fit
_HEAD_BAND = (0.10, 0.265)  # m: height above the base of the skull; width plus depth, of an adult


def joint_centres(markers: F64, *, rigid: bool = True) -> F64:
    """Compute joint centres (T, 19, 3) m (world, y up) from markers (T, 39, 3) m that were not moved."""
    # A frame in which a required marker is missing has NaN for all points. With fewer than 10 complete frames, all
    # frames have NaN.
    seen = np.isfinite(markers[:, [name not in UNUSED for name in MARKERS]]).all(axis=(1, 2))
    points = np.full((len(markers), len(POINTS), 3), np.nan)
    if seen.sum() >= _MIN_FRAMES:
        centres = _centres({name: markers[seen, i] for i, name in enumerate(MARKERS)})
        points[seen] = rigid_bones(centres) if rigid else centres
    return points


def _centres(m: Mapping[str, F64]) -> F64:
    """Compute points (T, 19, 3) m from complete markers by name, for a minimum of 10 frames."""
    leg = _leg_length(m)
    points = _legs(m, leg) | _arms(m, leg) | _head(m)
    points["pelvis"] = (points["left_hip"] + points["right_hip"]) / 2
    points["thorax"] = (m["C7"] + m["CLAV"]) / 2
    points["spine"] = (m["T10"] + m["STRN"]) / 2
    return np.stack([points[name] for name in POINTS], axis=1)


def rigid_bones(points: F64) -> F64:
    """Return points (T, 19, 3) m in which each limb bone has one length in all frames."""
    # The length of a bone is its median over time, averaged over left and right. Joints move along their bones, so that
    # the directions of the bones do not change. Hips and elbows stay; knees, ankles, wrists and shoulders move.
    rigid = points.copy()
    for near, far in LIMB_BONES.values():
        ends = [(POINTS.index(f"{side}_{near}"), POINTS.index(f"{side}_{far}")) for side, _, _ in SIDES]
        bones = [points[:, end] - points[:, start] for start, end in ends]
        length = np.mean([np.nanmedian(norm(bone)) for bone in bones])
        for (start, end), bone in zip(ends, bones, strict=True):
            rigid[:, end] = rigid[:, start] + length * unit(bone)
    return rigid


def _leg_length(m: Mapping[str, F64]) -> float:
    """Return the leg length in m, ASI over KNE to ANK, of both sides in the straightest tenth of the frames."""
    legs = []
    for s in "LR":
        reach = norm(m[s + "ASI"] - m[s + "ANK"])
        straight = reach >= np.percentile(reach, 90)
        leg = norm(m[s + "ASI"] - m[s + "KNE"]) + norm(m[s + "KNE"] - m[s + "ANK"])
        legs.append(np.median(leg[straight]))
    return float(np.mean(legs))


def _frame(y: F64, x: F64) -> F64:
    """Return frames (T, 3, 3) with columns x, y, z, of which y is exact and x as close as possible."""
    y = unit(y)
    x = unit(perpendicular(x, y))
    return np.stack([x, y, cross(x, y)], axis=-1)


def _local(points: F64, origin: F64, frame: F64) -> F64:
    """Transform points (T, 3) m from the world to moving frames with origins (T, 3) and axes (T, 3, 3)."""
    result: F64 = np.einsum("tij,ti->tj", frame, points - origin)
    return result


def _world(point: F64, origin: F64, frame: F64) -> F64:
    """Transform a point (3,) m of moving frames to world positions (T, 3)."""
    return origin + frame @ point


def _centre_of_rotation(turning: list[F64], expected: F64, deviations: tuple[float, float]) -> F64:
    """Estimate the point (3,) m of a moving frame whose distances to other points are constant over time."""
    # The estimate is a regularised least-squares fit. Along the axis of a hinge, where distances do not depend on the
    # position, the expected position is kept. The frames of a recording are correlated; therefore all frames of a point
    # together have the weight of one observation.
    anatomy, skin = deviations
    centre = expected.copy()
    for _ in range(8):
        matrix, vector = np.eye(3) / anatomy**2, (expected - centre) / anatomy**2
        for points in turning:
            distance = norm(centre - points)
            slope = (centre - points) / np.maximum(distance, 1e-9)[:, None]
            slope, residual = slope - slope.mean(axis=0), distance - distance.mean()
            matrix += slope.T @ slope / len(points) / skin**2
            vector -= slope.T @ residual / len(points) / skin**2
        centre = centre + np.linalg.solve(matrix, vector)
    return centre


def _legs(m: Mapping[str, F64], leg: float) -> dict[str, F64]:
    """Compute hips, knees and ankles (T, 3) m by name, for a leg length of `leg` metres."""
    middle, pelvis = _pelvis(m)
    left = pelvis[..., 0]
    points: dict[str, F64] = {}
    for side, s, sign in SIDES:
        knee, ankle = m[s + "KNE"], m[s + "ANK"]
        turning = [_local(m[s + name], middle, pelvis) for name in ("KNE", "THI")]
        hip = _world(_centre_of_rotation(turning, hip_regression(leg) * [sign, 1, 1], _HIP_DEVIATIONS), middle, pelvis)
        thigh = _frame(hip - knee, sign * (m[s + "THI"] - knee))
        axis = _knee_axis(_local(ankle, knee, thigh), np.einsum("tij,ti->tj", thigh, left))
        ankle = ankle - sign * _ANKLE * leg * (thigh @ axis)
        turning = [_local(ankle, knee, thigh), _local(m[s + "TIB"], knee, thigh)]
        centre = _centre_of_rotation(turning, -sign * _KNEE * leg * axis, _KNEE_DEVIATIONS)
        points |= {f"{side}_hip": hip, f"{side}_knee": _world(centre, knee, thigh), f"{side}_ankle": ankle}
    return points


def _pelvis(m: Mapping[str, F64]) -> tuple[F64, F64]:
    """Return the midpoint (T, 3) m of ASI, and the pelvis' axes (T, 3, 3): left, up, forward; ASI to PSI is level."""
    middle = (m["LASI"] + m["RASI"]) / 2
    left = m["LASI"] - m["RASI"]
    return middle, _frame(cross(middle - (m["LPSI"] + m["RPSI"]) / 2, left), left)


def hips_by_regression(markers: F64) -> tuple[F64, F64]:
    """Return left and right hip, (T, 3) m each, from the leg length alone (`hip_regression`), for (T, 39, 3) m."""
    m = {name: markers[:, i] for i, name in enumerate(MARKERS)}
    middle, pelvis = _pelvis(m)
    left = hip_regression(_leg_length(m))
    return _world(left, middle, pelvis), _world(left * [-1, 1, 1], middle, pelvis)


def hip_regression(leg: float) -> F64:
    """Return the left hip (3,) m from the ASI midpoint (left, up, forward) for a leg length in m."""
    # The leg length is the only input, since soft tissue over the pelvis does not affect it. Source: Hara, McGinley,
    # Briggs, Baker, Sangeux: Predicting the location of the hip joint centres, impact of age group and sex. Scientific
    # Reports 6:37707, 2016.
    return np.array([0.008 + 0.086 * leg, -0.009 - 0.078 * leg, 0.011 - 0.063 * leg])


def _knee_axis(ankle: F64, left: F64) -> F64:
    """Return the flexion axis (3,), to the left, of a knee in the thigh's frame from the ankle's motion (T, 3)."""
    # The ankle moves in a plane perpendicular to the axis. If the knee hardly bends, the result is the mean left
    # direction of the pelvis.
    spread, axes = np.linalg.eigh(np.cov(ankle.T))
    mean = unit(left.mean(axis=0))
    if spread[1] < 0.02**2:
        return mean
    result: F64 = axes[:, 0] * np.sign(axes[:, 0] @ mean)
    return result


def _arms(m: Mapping[str, F64], leg: float) -> dict[str, F64]:
    """Compute shoulders, elbows and wrists (T, 3) m by name, for a leg length of `leg` metres."""
    root = (m["C7"] + m["CLAV"]) / 2
    up = root - (m["T10"] + m["STRN"]) / 2
    points: dict[str, F64] = {}
    for side, s, sign in SIDES:
        wrist = (m[s + "WRA"] + m[s + "WRB"]) / 2
        outwards = sign * (m[s + "SHO"] - root)
        clavicle = _frame(perpendicular(up, unit(outwards)), outwards)
        expected = np.array([0, -_SHOULDER * leg, 0])
        shoulder = _world(expected, m[s + "SHO"], clavicle)
        half = sign * _half_elbow(shoulder, m[s + "ELB"], wrist, _ELBOW * leg)
        for _ in range(3):
            elbow = _elbow(shoulder, m[s + "ELB"], wrist, half)
            upper_arm = _frame(shoulder - elbow, m[s + "ELB"] - elbow)
            elbow = _world(
                _centre_of_rotation([_local(wrist, elbow, upper_arm)], np.zeros(3), _ARM_DEVIATIONS), elbow, upper_arm
            )
            turning = [_local(elbow, m[s + "SHO"], clavicle)]
            shoulder = _world(_centre_of_rotation(turning, expected, _ARM_DEVIATIONS), m[s + "SHO"], clavicle)
        points |= {f"{side}_shoulder": shoulder, f"{side}_elbow": elbow, f"{side}_wrist": wrist}
    return points


def _half_elbow(shoulder: F64, marker: F64, wrist: F64, expected: float) -> float:
    """Return the distance in m between the ELB marker and the elbow centre, given the expected one."""
    # While the arm is straight, this is the distance of the marker from the line between shoulder and wrist. Its 2nd
    # percentile over time is used if it is 1 to 1.6 times `expected`. Otherwise, the result is `expected`: a larger
    # percentile means that the arm is never straight.
    nearest = float(np.percentile(norm(perpendicular(marker - shoulder, unit(wrist - shoulder))), 2))
    return nearest if expected < nearest < 1.6 * expected else expected


def _elbow(shoulder: F64, marker: F64, wrist: F64, half: float) -> F64:
    """Compute elbow centres (T, 3) m; `half` is their distance from the marker, m, negative for the right arm."""
    # The marker is on the perpendicular to the plane of shoulder, elbow and wrist. There are two such planes; the
    # result is the one in which the elbow bends in its anatomical direction. If the marker is nearer than `half` to the
    # line from shoulder to wrist, the centre lies in the direction of this line.
    line = unit(wrist - shoulder)
    out = perpendicular(marker - shoulder, line)
    distance = norm(out)[:, None]
    cos = np.minimum(abs(half) / np.maximum(distance, 1e-6), 1)
    normal = cos * out / np.maximum(distance, 1e-6)
    normal += np.sign(half) * np.sqrt(1 - cos**2) * cross(line, unit(out))
    return marker - abs(half) * normal


def _head(m: Mapping[str, F64]) -> dict[str, F64]:
    """Compute neck, head, nose and ears (T, 3) m by name."""
    # The pitch of the headband is corrected: in upright frames, the person is assumed to look horizontally in the
    # median.
    front, back = (m["LFHD"] + m["RFHD"]) / 2, (m["LBHD"] + m["RBHD"]) / 2
    left = (m["LFHD"] + m["LBHD"] - m["RFHD"] - m["RBHD"]) / 2
    size = float(np.median(norm(left) + norm(front - back))) / _HEAD_BAND[1]
    head = _frame(cross(front - back, left), left)
    trunk = unit((m["C7"] + m["CLAV"]) / 2 - (m["LPSI"] + m["RPSI"] + m["LASI"] + m["RASI"]) / 4)
    upright = trunk[:, 1] > np.cos(np.radians(15))
    if upright.any():
        ahead = head[upright][..., 2]
        head = head @ about_axis("x", np.median(np.arcsin(ahead[:, 1])))
    base = (front + back) / 2 - head @ (np.array([0, _HEAD_BAND[0], HEAD_POINTS["ears"][2]]) * size)
    return {name: base + head @ (np.array(place) * size) for name, place in HEAD_POINTS.items()}


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Plausibility of joint centres that were computed from optical markers."""

    bones: dict[str, float]  # standard deviation over time of the length of each limb bone, m, by name of the bone
    sides: float  # largest difference of left and right bone lengths, as a fraction of their mean
    hips: float  # distance of the hips from those of `hips_by_regression`, m: median over time, mean of left and right

    def __str__(self) -> str:
        bones = ", ".join(f"{bone} {1000 * deviation:.0f}" for bone, deviation in self.bones.items())
        return (
            f"bones vary by (mm) {bones}; sides differ by up to {100 * self.sides:.1f} %; "
            f"hips {1000 * self.hips:.0f} mm from the regression"
        )


def plausibility(markers: F64, points: F64) -> Plausibility:
    """Measure the plausibility of joint centres, computed with `rigid=False` from markers that were not moved."""
    seen = np.isfinite(points).all(axis=(1, 2))
    markers, points = markers[seen], points[seen]
    bones, sides = {}, []
    for name, (near, far) in LIMB_BONES.items():
        lengths = [
            norm(points[:, POINTS.index(f"{side}_{far}")] - points[:, POINTS.index(f"{side}_{near}")])
            for side, _, _ in SIDES
        ]
        bones[name] = max(float(length.std()) for length in lengths)
        left, right = map(np.median, lengths)
        sides.append(float(2 * abs(left - right) / max(left + right, 1e-9)))
    expected = hips_by_regression(markers)
    hips = [points[:, POINTS.index(f"{side}_hip")] for side, _, _ in SIDES]
    distances = [np.median(norm(hip - guess)) for hip, guess in zip(hips, expected, strict=True)]
    return Plausibility(bones, max(sides), float(np.mean(distances)))
