"""What a run does about its camera: compensate it, take it for fixed, or have no world."""

from dataclasses import dataclass

from pose.camera_motion.log import MotionLog
from pose.camera_motion.path import CameraPath
from pose.camera_motion.verdict import FIXED, TRANSLATING, UNKNOWN, CameraMotion

AUTO = "auto"  # what `PipelineConfig.camera` says where nobody knows


@dataclass(frozen=True, slots=True)
class Decision:
    """motion: what the camera did. path: to compensate; None where there is nothing to. problem: why people cannot be
    put into a world; empty where they can. check_feet: whether standing feet must agree (`pose.world.footing`).
    """

    motion: CameraMotion
    path: CameraPath | None = None
    problem: str = ""
    check_feet: bool = False


def decide(log: MotionLog, camera: str = AUTO) -> Decision:
    """What to do about the camera of a run of at least one frame. camera: as in
    `PipelineConfig`."""
    if camera == FIXED or not log.measured:
        return Decision(CameraMotion(FIXED))
    path, motion = log.solve()
    if motion.kind == UNKNOWN:
        return Decision(
            motion, problem="the camera's motion is unknown: no world is written (--camera fixed if it stood still)"
        )
    if motion.kind == TRANSLATING and camera == AUTO:
        return Decision(
            motion, problem="the camera moved from its place: no world is written (--camera rotating ignores that)"
        )
    return Decision(motion, path if motion.moves else None, check_feet=camera == AUTO)
