"""The traffic light: what keeps a figure from green."""

import numpy as np
import pytest
from stick_figures import standing

from pose.analysis.metrics import FRONTAL, LEGS, SAGITTAL, quality
from pose.body.segments import Motion
from pose.structures.skeletons import H36M17

TIMES = np.arange(0, 4, 1 / 30)


def person(sigma=20.0, visible=None, camera=None, times=TIMES):
    seen = np.ones((len(times), 17), bool) if visible is None else visible
    return Motion(times, standing(times), np.full((len(times), 17), sigma), seen, camera)


def test_fully_visible_person_has_good_quality():
    assert quality(person(camera=np.array([5.0, 1, 0])), 0, 4, plane=SAGITTAL) == ("green", "")


@pytest.mark.parametrize(("sigma", "flag"), [(100.0, "amber"), (200.0, "red")])
def test_uncertain_joints_lower_the_quality(sigma, flag):
    assert quality(person(sigma), 0, 4) == (flag, f"uncertain joints: sigma {sigma:.0f} mm")


@pytest.mark.parametrize(("share", "flag"), [(0.2, "amber"), (0.5, "red")])
def test_missing_frames_lower_the_quality(share, flag):
    visible = np.ones((len(TIMES), 17), bool)
    visible[: round(share * len(TIMES))] = False
    found, doubt = quality(person(visible=visible), 0, 4)
    assert found == flag
    assert f"person not seen in {share:.0%} of the frames" in doubt


def test_only_joints_of_the_metric_count_as_occluded():
    visible = np.ones((len(TIMES), 17), bool)
    visible[:, [H36M17.index(name) for name in ("left_wrist", "right_wrist", "left_elbow", "right_elbow")]] = False
    assert quality(person(visible=visible), 0, 4, LEGS) == ("green", "")
    assert quality(person(visible=visible), 0, 4) == ("amber", "24% of the joints occluded")


@pytest.mark.parametrize(
    ("plane", "camera", "flag"),
    [
        (SAGITTAL, (0, 1, 5), "red"),
        (SAGITTAL, (2, 1, 5), "amber"),
        (FRONTAL, (0, 1, 5), "green"),
        (FRONTAL, (5, 1, 0), "red"),
    ],
)
def test_camera_along_the_plane_of_motion_lowers_the_quality(plane, camera, flag):
    found, doubt = quality(person(camera=np.array(camera, float)), 0, 4, plane=plane)
    assert found == flag
    assert (f"{plane} plane seen at" in doubt) == (flag != "green")


def test_low_frame_rate_and_few_observations_lower_the_quality():
    slow = person(times=np.arange(0, 4, 1 / 10))
    assert quality(slow, 0, 4, few="3 strides") == ("amber", "only 10 frames/s; 3 strides")
    assert quality(person(), 7, 9) == ("red", "no frame of this part shows the person")
