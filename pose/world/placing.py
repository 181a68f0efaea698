"""World coordinates of a whole run, with its camera motion or the path from standing feet.

A foot that stands moves relative to the camera as the floor does. The lower foot of a person is mostly in contact, so
the most frequent velocity of lower feet, with the known rotation compensated, is the negative velocity of the camera.
Its integral is the path. It drifts: the uncertainty grows with time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.types import F64
from pose.world.camera_motion.decision import AUTO, FREE, Decision, decide, decide_by_device
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import TRANSLATING
from pose.world.carried import RunData, carry
from pose.world.clean import Steps
from pose.world.footing import check_with_feet
from pose.world.rules import FOOTING
from pose.world.run import PlacedRun
from pose.world.scene.lines import select_lines
from pose.world.scenes import Scene


def place_run(
    recorded: RunData, log: MotionLog, camera: str, steps: Steps, join: bool = True
) -> tuple[PlacedRun | None, Decision]:
    """Decide how to handle the camera motion of a run, and transform its people to the world.

    Translation is estimated in three cases: the background shows it, feet slide after compensation of the rotation, or
    `camera` is 'free' and the camera moves; other modes are 'auto', 'fixed' (no motion) and 'rotating' (no
    translation). A path in `steps` is that of a device. Returns the run in its world, which the caller must close, and
    the decision. Without a world the run is None, and `problem` of the decision gives the reason.
    """
    if steps.path is not None:
        return _placed_by(recorded, decide_by_device(steps.path, log.with_people), steps, join)
    first = decide(log, camera, not steps.camera_known)
    steps = _with_lines(recorded, log, first, steps)
    run, decision = _placed_by_background(recorded, log, first, camera, steps, join)
    if camera != AUTO or not log.peopled or (run is not None and not decision.without_world):
        return run, decision
    if run is not None:
        run.close()
    return _placed_by_people(recorded, log, decision, steps, join)


def _placed_by_background(
    recorded: RunData, log: MotionLog, first: Decision, camera: str, steps: Steps, join: bool
) -> tuple[PlacedRun | None, Decision]:
    """Transform the run where the background decides the camera's motion."""
    if not log.peopled:
        return _placed_by(recorded, replace(first, problem=""), steps, join)
    if first.measured is None or camera not in (AUTO, FREE) or not first.motion.moves:
        return _placed_by(recorded, first, steps, join)
    shown = first.motion.kind == TRANSLATING
    if camera == AUTO and not shown:
        run, settled = _placed_by(recorded, first, steps, join)
        if run is not None:
            return run, settled
        first = settled
    if first.focal != 1.0:  # structure from motion needs the path at the assumed focal length
        first = replace(first, measured=log.solve()[0])
    carried = carry(first, recorded, steps)
    if not carried.translation:
        run, settled = _placed_by(recorded, carried, steps, join)
        if run is not None:
            return run, settled
        carried = replace(first, translation="standing feet contradict structure from motion")
    if carried.problem:
        problem = carried.problem.removesuffix(")")
        return None, replace(carried, problem=f"{problem}; {carried.translation})")
    return _placed_by(recorded, carried, steps, join)


def _placed_by_people(
    recorded: RunData, log: MotionLog, before: Decision, steps: Steps, join: bool
) -> tuple[PlacedRun | None, Decision]:
    """Transform a run whose background does not decide the camera's motion: people give its translation."""
    path = log.solve(not steps.camera_known)[0] if before.measured is None else before.measured
    motion = replace(before.motion, scenes=tuple(replace(scene, world=True) for scene in before.motion.scenes))
    decision = Decision(motion, path, measured=path)
    run, decision = _placed_by(recorded, decision, steps, join)
    if run is None:
        return run, decision
    shown = {scene.number for scene in before.motion.scenes if scene.world}  # by the background
    scenes = [scene for scene in run.scenes if scene.number not in shown]
    found = path_from_feet(path, scenes, run.foot_velocities)
    lost = 1 - float(np.isfinite(path.sigmas).mean())
    turned = f"; its rotation is unknown in {100 * lost:.0f} % of the frames and interpolated" if lost else ""
    why, _, advice = "; ".join([before.problem, *before.notices]).strip("; ").partition(" (")
    why, advice = why.partition(":")[0], f" ({advice}" if advice else ""
    if found is None:
        text = "no standing feet show it; people are placed relative to the camera"
        return run, replace(decision, notices=(f"{why}: {text}{turned}{advice}",))
    run.close()
    motion = replace(motion, distance=found.distance, distance_sigma=found.sigma)
    text = f"standing feet give its path ({found.distance:.1f} m long, +- {found.sigma:.1f} m at its end)"
    decision = replace(decision, motion=motion, path=found.path, notices=(f"{why}: {text}{turned}{advice}",))
    return _placed_by(recorded, decision, steps, join)


def _with_lines(recorded: RunData, log: MotionLog, decision: Decision, steps: Steps) -> Steps:
    """Return the steps with the lines of the background, unless gravity is given or no people are in view."""
    if steps.up is not None or not log.peopled or not log.segments:
        return steps
    lines = select_lines(log.segments, log.times, log.begins, decision.motion.moves, recorded.camera)
    return replace(steps, lines=lines)


def _placed_by(recorded: RunData, decision: Decision, steps: Steps, join: bool) -> tuple[PlacedRun | None, Decision]:
    """Transform the run with the camera path of a decision; return None for the run if feet contradict the decision."""
    if decision.problem:
        return None, decision
    steps = replace(steps, path=decision.path, without_world=decision.without_world)
    run = PlacedRun(recorded.results, recorded.skeleton, recorded.camera, steps, join=join, folder=recorded.folder)
    settled = check_with_feet(decision, run.foot_velocities)
    if settled.problem:
        run.close()
        return None, settled
    if settled.without_world == decision.without_world:
        return run, settled
    run.close()  # repeat without the scenes that feet contradict, whose people affect the others
    return _placed_by(recorded, settled, steps, join)


_STEP_S = 0.1  # between estimates of the velocity
_WINDOW_S = 0.5  # standard deviation in time of the samples of an estimate
_ITERATIONS = 20
_MIN_SAMPLES_S = 0.15  # minimum weighted duration of samples of an estimate
# Standard deviations in m/s: of an estimate, and of a camera without standing feet in view (a walk); and the time over
# which their errors are correlated.
_SIGMA_MPS, _UNSEEN_SIGMA_MPS, _CORRELATION_S = 0.1, 0.7, 0.7
_FINE_S = 0.05  # longest interval between samples with this standard deviation
_SCALE_SIGMA = 0.1  # of body heights and of the lifter's feet, relative


@dataclass(frozen=True, slots=True)
class PeoplePath:
    """A path with positions from standing feet."""

    path: CameraPath  # positions in m, 0 at the start of each scene
    distance: float  # m, length of the path
    sigma: float  # m, standard deviation of the position at the end of the longest scene
    seen: float  # fraction of the time with standing feet in view


def path_from_feet(path: CameraPath, scenes: Iterable[Scene], samples: Iterable[F64]) -> PeoplePath | None:
    """Add positions to a path, from samples (N, 6) of `lower_foot_velocities`; return None without standing feet.

    The samples are in the worlds of their scenes, with people at their final sizes; positions are at the lifted sizes,
    as in `pose.world.scenes`.
    """
    rows = np.concatenate([np.zeros((0, 6)), *samples])
    positions, distance, sigma, shares = np.zeros((len(path.times), 3)), 0.0, 0.0, []
    sigmas = np.zeros(len(path.times))
    for scene in scenes:
        frames, world = path.scenes == scene.number, scene.ground.world
        times = path.times[frames]
        own = rows[(rows[:, 0] >= times[0]) & (rows[:, 0] <= times[-1])]
        grid = np.linspace(times[0], times[-1], max(2, round(float(np.ptp(times)) / _STEP_S) + 1))
        velocities, seen = _velocities(own, grid)
        shares.append((float(np.ptp(times)), float(seen.mean())))
        if not seen.any():
            continue
        places = _integral(grid, velocities)
        level = np.column_stack([np.interp(times, grid, places[:, axis]) for axis in range(2)])
        positions[frames] = np.insert(level, 1, 0.0, axis=1) @ world.rotation / scene.ground.path_scale
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        coarse = max(1.0, float(np.median(own[:, 3])) / _FINE_S)  # few samples per stance
        speeds = np.where(seen, min(coarse * _SIGMA_MPS, _UNSEEN_SIGMA_MPS), _UNSEEN_SIGMA_MPS)
        random = np.sqrt(_CORRELATION_S * np.cumsum(np.diff(grid) * (speeds[1:] ** 2 + speeds[:-1] ** 2) / 2))
        grown = np.append(0.0, np.hypot(random, _SCALE_SIGMA * np.cumsum(steps)))  # m, since the start of the scene
        sigmas[frames] = np.interp(times, grid, grown) / scene.ground.path_scale
        distance, sigma = distance + float(steps.sum()), max(sigma, float(grown[-1]))
    if not distance:
        return None
    seconds = np.array(shares)
    share = float(np.average(seconds[:, 1], weights=np.maximum(seconds[:, 0], 1e-6)))
    return PeoplePath(replace(path, positions=positions, position_sigmas=sigmas), distance, sigma, share)


def _velocities(samples: F64, grid: F64) -> tuple[F64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return velocities (G, 2) m/s of the camera along x and z of the world, and (G,) whether feet show them."""
    found, seen, last = np.zeros((len(grid), 2)), np.zeros(len(grid), bool), None
    for row, time in enumerate(grid.tolist()):
        near = np.exp(-0.5 * ((samples[:, 0] - time) / _WINDOW_S) ** 2) * samples[:, 3]
        velocity, support = _mode(samples, near, last)
        if support >= _MIN_SAMPLES_S:
            found[row], seen[row], last = velocity, True, velocity
    if seen.any():  # without feet in view, the velocity changes evenly
        known = grid[seen]
        found = np.column_stack([np.interp(grid, known, found[seen, axis]) for axis in range(2)])
    return -found, seen


def _mode(samples: F64, near: F64, last: F64 | None) -> tuple[F64, float]:
    """Return the most frequent velocity (2,) of the floor, and the weighted duration of the samples that have it."""
    if near.sum() < _MIN_SAMPLES_S:
        return np.zeros(2), 0.0
    sight = samples[:, 4:6]
    level = (
        samples[:, 1:3] + (1 / FOOTING.along_share - 1) * (samples[:, 1:3] * sight).sum(axis=1, keepdims=True) * sight
    )
    starts = level[near.argsort()[-20:]]
    starts = starts if last is None else np.concatenate([last[None], starts])
    best, most = np.zeros(2), 0.0
    for start in starts:
        at = start
        for width in np.geomspace(4 * FOOTING.kernel_width_mps, FOOTING.kernel_width_mps, _ITERATIONS // 4):
            off = samples[:, 1:3] - (at - (1 - FOOTING.along_share) * (sight @ at)[:, None] * sight)
            weight = near * np.exp(-0.5 * (off**2).sum(axis=1) / width**2)
            # Each sample measures the velocity across the line of sight better than along it.
            scaled = np.eye(2) - (1 - FOOTING.along_share**2) * sight[:, :, None] * sight[:, None, :]
            matrix = np.einsum("n,nij->ij", weight, scaled) + 1e-9 * np.eye(2)
            at = np.linalg.solve(matrix, np.einsum("n,nij,nj->i", weight, scaled, level))
        support = float(weight.sum())
        if support > most:
            best, most = at, support
    return best, most


def _integral(grid: F64, velocities: F64) -> F64:
    """Return the trapezoidal integral (G, 2) of velocities (G, 2), from 0."""
    steps = np.diff(grid)[:, None] * (velocities[1:] + velocities[:-1]) / 2
    return np.concatenate([np.zeros((1, 2)), steps.cumsum(axis=0)])
