"""What is said about joints found from markers."""

import numpy as np
import pytest
from marker_person import LEG, marker_person
from pose_datasets import markers
from pose_datasets.mapping import POINTS
from pose_datasets.markers import plausibility


def test_known_marker_deviations_are_found():
    seen, truth = marker_person(hip_off=(0.0, -0.02, 0.0))
    truth = truth.copy()
    shin = POINTS.index("left_ankle"), POINTS.index("left_knee")
    direction = (truth[:, shin[0]] - truth[:, shin[1]]) / 0.4
    longer = np.where(np.arange(len(truth)) % 2, 0.03, 0.01)  # 20 ± 10 mm
    truth[:, shin[0]] += longer[:, None] * direction
    truth[::7] = np.nan
    found = plausibility(seen, truth)
    assert found.bones["shin"] == pytest.approx(0.01, abs=1e-4)
    assert found.bones["thigh"] == pytest.approx(0, abs=1e-9)
    assert found.sides == pytest.approx(0.02 / 0.41, rel=0.3)
    leg = markers._leg_length({name: seen[:, i] for i, name in enumerate(markers.MARKERS)})
    expected = np.linalg.norm(markers.hip_regression(LEG) + np.array([0, -0.02, 0]) - markers.hip_regression(leg))
    assert found.hips == pytest.approx(expected, abs=1e-3)
    assert str(found).startswith("bones vary by (mm) thigh 0, shin 10, ")
