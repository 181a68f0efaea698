"""Names of body segments in files of sensors."""

import re
from itertools import pairwise

from pose.body.imu.recording import SEGMENTS

# Words of the names that programs and people give to sensors; the first match counts.
_WORDS = (
    ("foot", ("foot", "feet", "toe", "calcn", "shoe")),
    ("shank", ("shank", "lowerleg", "lleg", "tibia", "calf", "shin")),
    ("thigh", ("thigh", "upperleg", "uleg", "femur")),
    ("hand", ("hand", "palm")),
    ("forearm", ("forearm", "lowerarm", "larm", "radius", "ulna", "wrist")),
    ("upper_arm", ("upperarm", "uarm", "humerus")),
    ("head", ("head",)),
    ("trunk", ("trunk", "torso", "sternum", "chest", "thorax", "t8", "back")),
    ("pelvis", ("pelvis", "sacrum", "hip", "waist", "root")),
)
_SIDES = (("left", ("left", "l")), ("right", ("right", "r")))


def segment_of(name: str) -> str | None:
    """Return the segment that the name of a sensor means, or None.

    Understood are names such as "Left Lower Leg", "tibia_r_imu", "RightForeArm" and "pelvis".
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    parts = {*words, *(first + second for first, second in pairwise(words))}
    for segment, options in _WORDS:
        if parts & set(options):
            side = next((side for side, options in _SIDES if parts & set(options)), None)
            found = f"{side}_{segment}" if side else segment
            return found if found in SEGMENTS else segment if segment in SEGMENTS else None
    return None
