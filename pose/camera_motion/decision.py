"""Decision about a run's camera: compensate its motion, treat it as static, or give no world."""

from dataclasses import dataclass

from pose.camera_motion.log import MotionLog
from pose.camera_motion.path import CameraPath
from pose.camera_motion.verdict import FIXED, TRANSLATING, UNKNOWN, CameraMotion

AUTO, FREE = "auto", "free"  # values of `PipelineConfig.camera`: unknown motion, and a carried camera


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run does about its camera.

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
    if motion.kind == UNKNOWN:
        return Decision(
            motion, problem="the camera's motion is unknown: no world is written (--camera fixed if it is static)"
        )
    if motion.kind == TRANSLATING and camera == AUTO:
        return Decision(
            motion, problem="the camera moved from its place: no world is written (--camera rotating ignores that)",
            measured=path,
        )  # fmt: skip
    return Decision(motion, path if motion.moves else None, check_feet=camera == AUTO, measured=path)
