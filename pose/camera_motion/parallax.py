"""Parallax: what a camera that moves from its place shows and one that turns and zooms does not.

Points of a key frame are compared with where they are seen much later, so that even slow motion has a wide baseline.
A camera that turns and zooms moves them by a homography that does not depend on depth. One that also moves from its
place moves them along lines through one epipole, by any amount (R. Hartley and A. Zisserman, Multiple View Geometry, 9
and 22). Points that no rotation explains and one translation does are parallax; the rest moved by themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.fit import View
from pose.camera_motion.turns import to_matrix

F64 = NDArray[np.float64]

FEWEST = 20  # points that a test needs
CARRIED_PARALLAX = 0.007  # rad, from which on a camera has moved from its place, not only turned
LONG_LENS = 3.0  # times the assumed focal length, in the median, from which on a rotation is not plausible
LONGEST_LENS = 4.0  # times the assumed focal length, which a test may find
_LENS, _KNOWN_LENS = 1.5, 1.1  # either way, that a camera of assumed and of known focal length may have
_EXPECTED = 1.0  # px^2, how much the expected focal length counts
_WIDTH = 1.5  # px, of the weights of both models
_LEAST_OFF = 0.05  # px, of a point: what residuals do not show
_ON_LINE = 1.2  # px; a point this near its line agrees with a translation
_MANY, _SOME, _SOME_SHARE = 91, 95, 1 / 3  # per cent of these points: the rest are far off; fewer must be further off
_ROUNDS = 6
_DIRECTIONS = 40  # tried, of translation
_REFINED, _STEPS = 6, 4


@dataclass(frozen=True, slots=True)
class Parallax:
    """parallax: rad by which a tenth of the points are off the best rotation and zoom, where a translation explains it,
    or a third of what a twentieth are. lens: the focal length over the expected one under which a rotation fits best,
    of at most `LONGEST_LENS`. lens_sigma: of its logarithm, as far as the residuals tell.
    """

    parallax: float
    lens: float
    lens_sigma: float


def parallax(rays: F64, seen: F64, axes: F64, view: View, focal: float, known: bool = False) -> Parallax:
    """Test points of a key frame.

    rays: (N, 3) in the key frame, z = 1. seen: (N, 2) px from the centre, later. axes: (N, 2, 2), as in `Features`.
    view: the later camera's, roughly. focal: px, of the key frame. known: whether it is calibrated.
    """
    best, off, slopes = _turned(rays, seen, axes, view, focal, LONGEST_LENS)
    lens, sigma = float(np.exp(best[4])), _lens_sigma(off, slopes)
    _, off, slopes = _turned(rays, seen, axes, view, focal, _KNOWN_LENS if known else _LENS)
    agree = _across_lines(off, slopes, seen / (focal * view.zoom), axes) < _ON_LINE
    if not agree.any():
        return Parallax(0.0, lens, sigma)
    many, some = np.percentile(np.linalg.norm(off[agree], axis=1), [_MANY, _SOME])
    return Parallax(float(max(many, _SOME_SHARE * some)) / (focal * view.zoom), lens, sigma)


def _lens_sigma(off: F64, slopes: F64) -> float:
    """Standard deviation of the logarithm of the focal length, for points (N, 2) px off and their slopes (N, 2, 5)."""
    square = (off * off).sum(axis=1)
    weight = 1 / (1 + square / _WIDTH**2)
    normal = (slopes * weight[:, None, None]).reshape(-1, 5).T @ slopes.reshape(-1, 5) + 1e-6 * np.eye(5)
    variance = float((weight * square).sum() / (2 * weight.sum())) + _LEAST_OFF**2
    return float(np.sqrt(variance * np.linalg.inv(normal)[4, 4]))


def _turned(rays: F64, seen: F64, axes: F64, view: View, focal: float, most: float) -> tuple[F64, F64, F64]:
    """The best rotation, zoom and focal length, `most` times the expected one or less: parameters (5,), px off (N, 2)
    and their slopes (N, 2, 5), both along `axes`.
    """
    parameters, bound = np.zeros(5), float(np.log(most))

    def off_by(p: F64) -> F64:
        turn, lens = to_matrix(p[:3]) @ view.turn, np.exp(p[4])
        there = np.concatenate([rays[:, :2] / lens, rays[:, 2:]], axis=1) @ turn.T
        place = focal * lens * view.zoom * np.exp(p[3]) * there[:, :2] / np.maximum(there[:, 2:], 1e-3)
        return np.asarray((axes @ (seen - place)[:, :, None])[:, :, 0])

    off, slopes = off_by(parameters), np.zeros((len(rays), 2, 5))
    for number in range(_ROUNDS):
        for at in range(5):
            ahead = parameters.copy()
            ahead[at] += 1e-4
            slopes[:, :, at] = (off - off_by(ahead)) / 1e-4
        square = (off * off).sum(axis=1)
        width = max(_WIDTH, 1.5 * float(np.sqrt(np.median(square)))) if number < 3 else _WIDTH
        weighted = slopes / (1 + square / width**2)[:, None, None]
        normal = weighted.reshape(-1, 5).T @ slopes.reshape(-1, 5) + np.diag([1e-6, 1e-6, 1e-6, 1e-6, _EXPECTED])
        pull = weighted.reshape(-1, 5).T @ off.reshape(-1) - np.array([0, 0, 0, 0, _EXPECTED * parameters[4]])
        step = np.linalg.solve(normal, pull)
        if abs(parameters[4] + step[4]) > bound:  # the rest is solved with the focal length that is as far as may be
            lens = np.copysign(bound, parameters[4] + step[4]) - parameters[4]
            step[:4] = np.linalg.solve(normal[:4, :4], pull[:4] - normal[:4, 4] * lens)
            step[4] = lens
        parameters = parameters + step
        off = off_by(parameters)
    return parameters, off, slopes


def _across_lines(off: F64, slopes: F64, places: F64, axes: F64) -> F64:
    """(N,) px by which points are off the lines of the best translation; rotation and zoom are solved with it.

    places: (N, 2) where they are seen, z = 1. A translation t moves a point at depth Z by (t_xy - t_z x) / Z.
    """
    plain = np.zeros((len(places), 2, 3))
    plain[:, 0, 0], plain[:, 1, 1], plain[:, :, 2] = 1, 1, -places
    lines = axes @ plain  # times t: the direction of each point's line
    best = _best(_solve(_half_sphere(_DIRECTIONS), off, slopes, lines))
    for _ in range(_REFINED):
        rest = off - slopes[:, :, :4] @ best.turns[0]
        cross = (rest[:, 0, None] * lines[:, 1] - rest[:, 1, None] * lines[:, 0]) / best.lengths[0, :, None]
        weights = 1 / (1 + (best.across[0] / _WIDTH) ** 2)
        t = np.linalg.eigh((weights[:, None] * cross).T @ cross)[1][:, 0]
        found = _solve(t[None], off, slopes, lines)
        if found.costs[0] >= best.costs[0]:
            break
        best = found
    result: F64 = np.abs(best.across[0])
    return result


@dataclass(frozen=True, slots=True)
class _Moved:
    """D directions of translation. turns: (D, 4) rotation and zoom that go with each. across: (D, N) px off its lines.
    lengths: (D, N) of these. costs: (D,).
    """

    turns: F64
    across: F64
    lengths: F64
    costs: F64


def _best(tried: _Moved) -> _Moved:
    at = slice(least := int(tried.costs.argmin()), least + 1)
    return _Moved(tried.turns[at], tried.across[at], tried.lengths[at], tried.costs[at])


def _solve(directions: F64, off: F64, slopes: F64, lines: F64) -> _Moved:
    line = np.einsum("nij,dj->dni", lines, directions)
    lengths = np.maximum(np.sqrt((line * line).sum(axis=2)), 1e-6)
    normal = np.stack([-line[:, :, 1], line[:, :, 0]], axis=2) / lengths[:, :, None]
    apart = (normal * off).sum(axis=2)
    slope = normal[:, :, :1] * slopes[:, 0, :4] + normal[:, :, 1:] * slopes[:, 1, :4]
    turns, rest = np.zeros((len(directions), 4)), apart
    for _ in range(_STEPS):
        weighted = slope / (1 + (rest / _WIDTH) ** 2)[:, :, None]
        across = np.swapaxes(weighted, 1, 2)
        turns = np.linalg.solve(across @ slope + 1e-3 * np.eye(4), across @ apart[:, :, None])[:, :, 0]
        rest = apart - (slope @ turns[:, :, None])[:, :, 0]
    return _Moved(turns, rest, lengths, np.log1p((rest / _WIDTH) ** 2).sum(axis=1))


def _half_sphere(count: int) -> F64:
    """(count, 3) directions spread over half a sphere: a Fibonacci lattice."""
    number = np.arange(count) + 0.5
    z, angle = number / count, np.pi * (1 + 5**0.5) * number
    radius = np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
