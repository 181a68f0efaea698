"""Messages to the user about what live cameras still need for a calibration, such as motion of people."""

from collections.abc import Collection, Sequence

from pose.live.several.sightings import MAX_STEP_SECONDS, Sightings
from pose.multiview.linking import MOTION_REMEDY
from pose.multiview.videos import MIN_CAMERAS

PATIENCE_SECONDS = 30.0  # time without a message
MOTION_SECONDS = 10.0  # duration of motion that a calibration needs in each camera
MIN_FPS = 1 / MAX_STEP_SECONDS  # frame rate at which motion is measured, frames/s


def waiting_line(
    sightings: Sequence[Sightings], names: Sequence[str], live: Collection[int], calibrated: Collection[int]
) -> str:
    """Describe what the cameras without a calibration still need, in one line; empty if they need nothing."""
    if len(live) < MIN_CAMERAS:
        return "" if calibrated else "not calibrated: fewer than two cameras send images"
    lacks, moves = [], True
    for index in sorted(set(live) - set(calibrated)):
        one = sightings[index]
        if one.motion_seconds >= MOTION_SECONDS:
            continue
        if one.rate < MIN_FPS:
            lacks.append(f"{names[index]}: fewer than {MIN_FPS:.0f} frames/s are processed")
            moves = False
        else:
            lacks.append(f"{names[index]}: {'too little motion of people' if one.sees else 'no person seen'}")
    if not lacks:
        return ""
    advice = MOTION_REMEDY if moves else "use fewer cameras, a faster --config or a GPU"
    return f"not calibrated after {PATIENCE_SECONDS:.0f} s: {'; '.join(lacks)}; {advice}"
