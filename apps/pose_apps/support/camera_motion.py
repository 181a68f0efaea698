"""What commands do with a measured camera motion, and what they say about it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.config import FIXED_CAMERA

if TYPE_CHECKING:
    from pose.camera_motion.log import MotionLog
    from pose.camera_motion.path import CameraPath
    from pose.camera_motion.verdict import CameraMotion
    from pose.files import MotionInfo

_WITHOUT_TRANSLATION = ("rotating", "free")  # what --camera says where a rotation is taken out all the same


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run does about its camera. info: for the files. path: to compensate; None where there is nothing to.
    world: whether people can be put into a world. line: for the summary. warning: why there is no world; or empty.
    """

    info: "MotionInfo"
    path: "CameraPath | None"
    world: bool
    line: str
    warning: str = ""


def decide(log: "MotionLog", camera: str) -> Decision:
    """What to do about the camera of a run of at least one frame. camera: as in `PipelineConfig`."""
    from pose.camera_motion.verdict import FIXED, TRANSLATING, UNKNOWN, CameraMotion
    from pose.files import MotionInfo

    if camera == FIXED_CAMERA:
        return Decision(MotionInfo(CameraMotion(FIXED)), None, True, "")
    path, motion = log.solve()
    line = motion_line(motion)
    if motion.kind == UNKNOWN:
        warning = "the camera's motion is unknown, so the results have no world (--camera fixed if it stood still)"
        return Decision(MotionInfo(motion), None, False, line, warning)
    if motion.kind == TRANSLATING and camera not in _WITHOUT_TRANSLATION:
        warning = "the camera moved from its place, so the results have no world (--camera rotating ignores that)"
        return Decision(MotionInfo(motion), None, False, line, warning)
    if not motion.moves:
        return Decision(MotionInfo(motion), None, True, line)
    line += f"; rotation and zoom compensated, good to {max(motion.sigma_degrees, 0.1):.1f} degrees"
    if motion.kind == TRANSLATING:
        line += "; its translation is not"
    return Decision(MotionInfo(motion, compensated=True), path, True, line)


def motion_line(motion: "CameraMotion") -> str:
    """What the camera did, with numbers."""
    from pose.camera_motion.verdict import STATIC, UNKNOWN

    if motion.kind == UNKNOWN:
        return f"camera motion: unknown, measured in {motion.known:.0%} of the frames with people"
    if motion.kind == STATIC:
        return "camera motion: none"
    text = f"camera motion: {motion.kind}, pan {motion.pan:.1f}, tilt {motion.tilt:.1f}, roll {motion.roll:.1f} degrees"
    text += f", shake {motion.shake:.2f} degrees rms"
    return text + (f", zoom {motion.zoom:.2f} x" if motion.zoom > 1.01 else "")
