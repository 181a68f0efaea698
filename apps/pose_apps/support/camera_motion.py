"""Message about the motion of the camera."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.world.camera_motion.decision import Decision

_FOCAL_SIGMA = 0.06  # minimum relative change of the focal length that is reported
_UNSEEN = (
    0.3  # m/s; slower translation in front of a wall is often mistaken for rotation (docs/studies/moving-camera.md)
)
_DRIFTS = 0.15  # m/s; minimum speed of standing feet that is reported


def motion_line(decision: "Decision") -> str:
    """Describe the camera motion with measured values, in one line; empty if it was not measured."""
    from pose.world.camera_motion.verdict import FIXED, ROTATING, STATIC, TRANSLATING, UNKNOWN, ZOOMING

    motion, scenes = decision.motion, decision.motion.scenes
    known_scenes = sum(scene.world for scene in scenes)
    rest = (
        f"; unknown in {len(scenes) - known_scenes} of {len(scenes)} scenes" if 0 < known_scenes < len(scenes) else ""
    )
    if motion.kind == FIXED:
        return ""
    if motion.kind == UNKNOWN:
        return f"camera motion: unknown, measured in {motion.known:.0%} of the frames with people"
    if motion.kind == STATIC:
        return f"camera motion: none{rest}"
    text = f"camera motion: {motion.kind}, pan {motion.pan:.1f}, tilt {motion.tilt:.1f}, roll {motion.roll:.1f} degrees"
    text += f", shake {motion.shake:.2f} degrees rms"
    text += f", zoom {motion.zoom:.2f} x" if motion.zoom > 1.01 else ""
    if decision.path is not None:
        text += f"; rotation and zoom compensated (+- {max(motion.sigma_degrees, 0.1):.1f} degrees)"
        if motion.translation_known:
            text += f"; translation compensated, {motion.distance:.1f} m (+- {motion.distance_sigma:.1f})"
        elif motion.kind == TRANSLATING:
            text += "; translation not compensated"
        elif motion.drift > _DRIFTS:
            text += f"; standing feet drift by {motion.drift:.2f} m/s, so the camera may move this slowly"
        elif motion.kind in (ROTATING, ZOOMING):
            text += f"; a translation slower than {_UNSEEN:g} m/s may remain unnoticed"
        if decision.focal != 1.0:
            text += f"; focal length {decision.focal:.2f} x the assumed one, from the images"
        elif motion.focal_sigma < _FOCAL_SIGMA and abs(motion.focal_ratio - 1) > _FOCAL_SIGMA:
            text += (
                f"; its rotation fits a focal length of {motion.focal_ratio:.2f} x the one used (--intrinsics sets it)"
            )
    return text + rest
