"""What commands say of a camera's motion."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.camera_motion.decision import Decision

_FOCAL_SIGMA = 0.06  # relative


def motion_line(decision: "Decision") -> str:
    """What the camera did, with numbers; empty where it was not measured."""
    from pose.camera_motion.verdict import FIXED, STATIC, TRANSLATING, UNKNOWN

    motion = decision.motion
    if motion.kind == FIXED:
        return ""
    if motion.kind == UNKNOWN:
        return f"camera motion: unknown, measured in {motion.known:.0%} of the frames with people"
    if motion.kind == STATIC:
        return "camera motion: none"
    text = f"camera motion: {motion.kind}, pan {motion.pan:.1f}, tilt {motion.tilt:.1f}, roll {motion.roll:.1f} degrees"
    text += f", shake {motion.shake:.2f} degrees rms"
    text += f", zoom {motion.zoom:.2f} x" if motion.zoom > 1.01 else ""
    if decision.path is not None:
        text += f"; rotation and zoom compensated (+- {max(motion.sigma_degrees, 0.1):.1f} degrees)"
        text += "; translation not compensated" if motion.kind == TRANSLATING else ""
        if motion.focal_sigma < _FOCAL_SIGMA and abs(motion.focal_ratio - 1) > _FOCAL_SIGMA:
            text += (
                f"; its rotation fits a focal length of {motion.focal_ratio:.2f} x the one used (--intrinsics sets it)"
            )
    return text
