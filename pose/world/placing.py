"""World coordinates of a whole run, with its camera motion."""

from dataclasses import replace

import numpy as np

from pose.world.camera_motion.decision import AUTO, FREE, Decision, decide
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.odometry import decide_by_device
from pose.world.camera_motion.verdict import TRANSLATING
from pose.world.carried import RunData, carry
from pose.world.clean import Steps
from pose.world.footing import check_with_feet
from pose.world.people_path import path_from_feet
from pose.world.run import PlacedRun
from pose.world.scene.lines import select_lines


def place_run(
    recorded: RunData, log: MotionLog, camera: str, steps: Steps, join: bool = True
) -> tuple[PlacedRun | None, Decision]:
    """Decide how to handle the camera motion of a run, and transform its people to the world.

    Translation is estimated in three cases: the background shows it, feet slide after compensation of the rotation, or
    `camera` is 'free' and the camera moves.

    Args:
        recorded: Results of the run, and access to its images.
        camera: Camera mode: 'auto', 'fixed' (no motion), 'rotating' (no translation) or 'free' (may translate).
        steps: Steps to run, and known properties of camera and people; its path, if any, is that of a device.
        join: Whether to join tracks of one person, and leave out tracks that show no person.

    Returns:
        The run in its world, which the caller must close, and the decision. Without a world the run is None, and
        `problem` of the decision gives the reason.
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
