"""The line about the camera in the summary of `pose-run`."""

import numpy as np
import pytest
from pose_apps.support.summary import motion_line

from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import FIXED, ROTATING, SHAKING, STATIC, TRANSLATING, UNKNOWN, CameraMotion

PATH = CameraPath(np.zeros(1), np.eye(3)[None], np.ones(1), np.zeros(1), np.zeros(1, np.int64))
NUMBERS = {"known": 1.0, "pan": 20.0, "tilt": 5.0, "roll": 1.0, "shake": 0.1, "zoom": 1.0, "sigma_degrees": 0.05}


def line(kind, path=PATH, **numbers):
    return motion_line(Decision(CameraMotion(kind, **NUMBERS | numbers), path))


def test_fixed_camera_prints_no_motion_line():
    assert line(FIXED) == ""


@pytest.mark.parametrize(("kind", "said"), [(STATIC, "none"), (UNKNOWN, "unknown, measured in 100% of the frames")])
def test_static_and_unknown_camera_motion_is_summarised(kind, said):
    assert line(kind, None).startswith(f"camera motion: {said}")


def test_rotation_summary_states_the_undetectable_translation():
    text = line(ROTATING)
    assert "pan 20.0, tilt 5.0, roll 1.0 degrees" in text
    assert "compensated (+- 0.1 degrees); a translation slower than 0.3 m/s may remain unnoticed" in text
    assert "drift by 0.20 m/s, so the camera may move this slowly" in line(ROTATING, drift=0.2)
    assert "unnoticed" not in line(SHAKING), "a shake is no translation"
    carried = line(TRANSLATING, distance=4.0, distance_sigma=0.5)
    assert "translation compensated, 4.0 m (+- 0.5)" in carried
    assert "unnoticed" not in carried
