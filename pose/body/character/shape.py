"""The shape of a person: phenotypes and local changes of the body model, fitted to bone lengths.

Bone lengths contain little information about gender, age, muscle and weight. The prior, an average adult, determines
these.
"""

from dataclasses import dataclass

import numpy as np

from pose.body.character.model import PHENOTYPES, BodyModel
from pose.body.skeleton import NAMES, Body
from pose.structures.types import F64

# Prior mean and standard deviation of each phenotype; local changes have mean 0 and _LOCAL_SIGMA.
_PRIOR = {
    "gender": (0.5, 0.1), "age": (0.667, 0.1), "muscle": (0.5, 0.1), "weight": (0.5, 0.1), "height": (0.5, 0.3),
    "proportions": (0.5, 0.2),
}  # fmt: skip
_LOCAL_SIGMA = 0.4
_LENGTH_SIGMA = 0.005  # standard deviation of a length, m
_STEPS = 30
_DELTA = 1e-4  # step of numerical derivatives
LENGTHS = ("hip", "thigh", "shank", "trunk", "shoulder", "upper arm", "forearm", "skull")


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a person, fitted to bone lengths."""

    phenotypes: F64  # (6,) values from 0 to 1, in the order of `PHENOTYPES`
    local: F64  # (L,) local changes, from -1 to 1
    coefficients: F64  # (S,) coefficients of the shape directions of the body model
    lengths: F64  # (8,) m, bone lengths of the shape in the order of `LENGTHS`


def lengths_of_heads(model: BodyModel, heads: F64) -> F64:
    """Compute bone lengths (8,) m in the order of `LENGTHS`, averaged over left and right."""

    def at(name: str) -> F64:
        result: F64 = heads[model.index(name)]
        return result

    def between(first: str, second: str) -> float:
        return float(np.mean([np.linalg.norm(at(side + second) - at(side + first)) for side in ("Left", "Right")]))

    thorax = thorax_of_heads(model, heads)
    pelvis = (at("LeftUpLeg") + at("RightUpLeg")) / 2
    return np.array(
        [
            np.linalg.norm(at("LeftUpLeg") - at("RightUpLeg")) / 2,
            between("UpLeg", "Leg"),
            between("Leg", "Foot"),
            np.linalg.norm(thorax - pelvis),
            np.linalg.norm(at("LeftArm") - at("RightArm")) / 2,
            between("Arm", "ForeArm"),
            between("ForeArm", "Hand"),
            np.linalg.norm(at("Head") - thorax),
        ]
    )


def thorax_of_heads(model: BodyModel, heads: F64) -> F64:
    """Return the joint thorax of Human3.6M-17, (3,) m: the point where collar bones and neck meet."""
    collars = heads[model.index("LeftShoulder")] + heads[model.index("RightShoulder")]
    thorax: F64 = (collars + 2 * heads[model.index("Neck")]) / 4
    return thorax


# Positions of head points above the base of the skull, up and forward, m, for a head of average size, as in the
# lifter's training data (datasets/pose_datasets/mapping.py).
NECK_POINT, HEAD_POINT = np.array([0.0, 0.015, 0.03]), np.array([0.0, 0.13, 0.0])


def lengths_of_body(body: Body) -> F64:
    """Compute bone lengths (8,) m in the order of `LENGTHS` from the median bones of a tracked person."""
    offsets = dict(zip(NAMES, body.offsets, strict=True))
    return np.array(
        [
            abs(offsets["left_hip"][0]),
            np.linalg.norm(offsets["left_knee"]),
            np.linalg.norm(offsets["left_ankle"]),
            np.linalg.norm(offsets["spine"]) + np.linalg.norm(offsets["thorax"]),
            abs(offsets["left_shoulder"][0]),
            np.linalg.norm(offsets["left_elbow"]),
            np.linalg.norm(offsets["left_wrist"]),
            max(0.03, float(np.linalg.norm(offsets["neck"] - NECK_POINT))),
        ]
    )


def fit_shape(model: BodyModel, lengths: F64) -> Shape:
    """Find the most probable shape for bone lengths (8,) m by regularised Gauss-Newton within the limits."""
    count = len(model.local_names)
    mean = np.array([*(_PRIOR[name][0] for name in PHENOTYPES), *[0.0] * count])
    sigma = np.array([*(_PRIOR[name][1] for name in PHENOTYPES), *[_LOCAL_SIGMA] * count])
    lower_bound = np.array([*[0.0] * len(PHENOTYPES), *[-1.0] * count])

    def lengths_at(values: F64) -> F64:
        return lengths_of_heads(model, model.heads_of(model.coefficients(values[:6], values[6:])))

    def cost(values: F64) -> float:
        residuals = (lengths_at(values) - lengths) / _LENGTH_SIGMA
        return float(residuals @ residuals + (((values - mean) / sigma) ** 2).sum())

    values, best = mean, cost(mean)
    for _ in range(_STEPS):
        here = lengths_at(values)
        steps = np.where(values + _DELTA <= 1, _DELTA, -_DELTA)
        moved = [lengths_at(values + step * row) for step, row in zip(steps, np.eye(len(values)), strict=True)]
        slope = (np.array(moved) - here).T / steps / _LENGTH_SIGMA
        gradient = slope.T @ ((lengths - here) / _LENGTH_SIGMA) - (values - mean) / sigma**2
        change = np.linalg.solve(slope.T @ slope + np.diag(1 / sigma**2), gradient)
        # Line search: the model is not linear in the phenotypes, so a full step may overshoot.
        for step_fraction in (1.0, 0.5, 0.25, 0.1):
            tried = np.clip(values + step_fraction * change, lower_bound, 1.0)
            if (reached := cost(tried)) < best - 1e-9:
                values, best = tried, reached
                break
        else:
            break
    coefficients = model.coefficients(values[:6], values[6:])
    return Shape(values[:6], values[6:], coefficients, lengths_at(values))
