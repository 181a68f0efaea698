"""Depth images of a rendered character in a room, with the noise of two families of depth cameras."""

from dataclasses import dataclass

import numpy as np

from pose.body.character.model import body_model
from pose.body.character.posing import joints_of, pose_character, skin
from pose.body.character.rest import make_character
from pose.body.character.shape import fit_shape, lengths_of_body
from pose.body.skeleton import fit_body

SIZE = (320, 240)
MATRIX = np.array([[270.0, 0, 159.5], [0, 270.0, 119.5], [0, 0, 1]])
_SAMPLES = np.array([(a, b, 4 - a - b) for a in range(5) for b in range(5 - a)]) / 4  # points of a triangle


@dataclass
class Rendered:
    """Frames of a character: joints (T, 17, 3) m in the world (y up, floor at 0), and its surface."""

    joints: np.ndarray
    surfaces: list

    @classmethod
    def of(cls, points):
        """Make the character that follows joints (T, 17, 3) m."""
        body = fit_body([points])
        model = body_model()
        character = make_character(model, fit_shape(model, lengths_of_body(body)), body)
        posed = pose_character(character, points)
        faces = character.model.faces.astype(int)
        surfaces = [
            np.einsum("sk,fkx->fsx", _SAMPLES, skin(character, posed, frame)[faces]).reshape(-1, 3)
            for frame in range(len(points))
        ]
        return cls(joints_of(character, posed), surfaces)


def camera_of(pitch, height, distance):
    """Return rotation and centre of a camera before the origin: p_camera = (p_world - centre) @ rotation.T."""
    a = np.radians(pitch)
    rotation = np.array([[1, 0, 0], [0, -np.cos(a), -np.sin(a)], [0, np.sin(a), -np.cos(a)]])
    return rotation, np.array([0.0, height, distance])


def render(surface, rotation, centre, wall=3.0):
    """Return the true depth (H, W) m of a surface (N, 3) m on a floor, `wall` m before a wall."""
    width, height = SIZE
    v, u = np.mgrid[:height, :width]
    rays = np.stack([(u - MATRIX[0, 2]) / MATRIX[0, 0], (v - MATRIX[1, 2]) / MATRIX[1, 1], np.ones(u.shape)], axis=-1)
    world = rays @ rotation
    with np.errstate(divide="ignore", invalid="ignore"):
        planes = [-centre[1] / world[..., 1], (-wall - centre[2]) / world[..., 2]]
    depth = np.full(u.shape, 20.0)
    for plane in planes:
        depth = np.where((plane > 0) & (plane < depth), plane, depth)
    points = (surface - centre) @ rotation.T
    points = points[points[:, 2] > 0.1]
    column, row = (np.round(points[:, i] / points[:, 2] * MATRIX[i, i] + MATRIX[i, 2]).astype(int) for i in (0, 1))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    np.minimum.at(depth, (row[inside], column[inside]), points[inside, 2])
    return depth


def disturb(depth, family, rng):
    """Return depth as a structured-light or a time-of-flight camera measures it, m: noise, holes, flying pixels."""
    edge = np.zeros(depth.shape, bool)
    for axis in (0, 1):
        step = np.abs(np.diff(depth, axis=axis)) > 0.1
        edge |= np.pad(step, [(0, 1) if i == axis else (0, 0) for i in (0, 1)])
        edge |= np.pad(step, [(1, 0) if i == axis else (0, 0) for i in (0, 1)])
    if family == "structured light":
        noisy = depth + rng.normal(0, 0.0019, depth.shape) * depth**2
        hole = (edge & (rng.random(depth.shape) < 0.8)) | (rng.random(depth.shape) < 0.03) | (depth > 6)
    else:
        noisy = depth + rng.normal(0, 0.004, depth.shape) + 0.005
        behind = np.maximum(np.roll(noisy, 2, axis=1), np.roll(noisy, -2, axis=1))
        flying = edge & (rng.random(depth.shape) < 0.6)
        noisy = np.where(flying, noisy + rng.random(depth.shape) * (behind - noisy), noisy)
        hole = rng.random(depth.shape) < 0.02
    for _ in range(6):  # dark or shiny patches
        row, column = rng.integers(0, SIZE[1] - 12), rng.integers(0, SIZE[0] - 12)
        hole[row : row + 12, column : column + 12] = True
    return np.where(hole, 0, np.round(noisy, 3)).astype(np.float32)
