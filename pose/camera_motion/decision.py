"""Decision about a run's camera: compensate its motion, treat it as static, or give no world."""

from collections.abc import Sequence
from dataclasses import dataclass

from pose.camera_motion.log import MotionLog
from pose.camera_motion.path import CameraPath
from pose.camera_motion.verdict import FIXED, TRANSLATING, UNKNOWN, CameraMotion, SceneMotion

AUTO, FREE = "auto", "free"  # values of `PipelineConfig.camera`: unknown motion, and a carried camera
_MAX_NAMED = 4  # scenes in a message


@dataclass(frozen=True, slots=True)
class Decision:
    """How a run handles the motion of its camera.

    Attributes:
        motion: The camera's motion.
        path: Path to compensate; None if there is none.
        problem: Why there is no world; empty if there is one.
        check_feet: Whether standing feet must confirm the path (`pose.world.footing`).
        measured: Path of the background, independent of the decision.
        translation: Why translation could not be estimated; empty if it was, or was not attempted.
    """

    motion: CameraMotion
    path: CameraPath | None = None
    problem: str = ""
    check_feet: bool = False
    measured: CameraPath | None = None
    translation: str = ""


def decide(log: MotionLog, camera: str = AUTO) -> Decision:
    """Decide about the camera of a run with at least one frame.

    Args:
        log: The backgrounds of the run.
        camera: See `PipelineConfig`.
    """
    if camera == FIXED or not log.measured:
        return Decision(CameraMotion(FIXED))
    path, motion = log.solve()
    problems = {
        UNKNOWN: ("the camera's motion is unknown", "--camera fixed if it is static"),
        TRANSLATING: ("the camera moved from its place", "--camera rotating ignores that"),
    }
    if motion.kind == UNKNOWN or (motion.kind == TRANSLATING and camera == AUTO):
        what, remedy = problems[motion.kind]
        problem = f"{what}{_named(motion.scenes)}: no world is written ({_others(motion.scenes)}{remedy})"
        return Decision(motion, problem=problem, measured=None if motion.kind == UNKNOWN else path)
    return Decision(motion, path if motion.moves else None, check_feet=camera == AUTO, measured=path)


def _named(scenes: Sequence[SceneMotion]) -> str:
    """` in scene 2 (3.0 to 6.5 s)`: the scenes whose motion is not compensated; empty without any."""
    bad = [one for one in scenes if one.motion.kind in (UNKNOWN, TRANSLATING)]
    if not bad:
        return ""
    names = [f"{one.number + 1} ({one.begin:.1f} to {one.end:.1f} s)" for one in bad[:_MAX_NAMED]]
    more = f" and {len(bad) - _MAX_NAMED} more" if len(bad) > _MAX_NAMED else ""
    return f" in {'scene' if len(bad) == 1 else 'scenes'} {', '.join(names)}{more}"


def _others(scenes: Sequence[SceneMotion]) -> str:
    """How to get a world of the other scenes; empty without any."""
    bad = [one for one in scenes if one.motion.kind in (UNKNOWN, TRANSLATING)]
    return "--start and --end choose other scenes, " if 0 < len(bad) < len(scenes) else ""
