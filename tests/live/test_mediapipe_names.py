"""`pose.compat.mediapipe_pose`: code written for `mp.solutions.pose` runs and gets landmarks under the old names."""

import numpy as np
import pytest
from pose_fakes import STANDING

from pose.compat import mediapipe_pose as mp_pose
from pose.errors import UsageError
from pose.structures.camera import intrinsics_from_fov, project
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.structures.types import FrameResult, People, Poses3D

SIZE = (640, 480)
MATRIX = intrinsics_from_fov(SIZE)
# Index of some landmarks in MediaPipe's documentation.
INDICES = {
    "NOSE": 0, "LEFT_EYE": 2, "RIGHT_EAR": 8, "LEFT_SHOULDER": 11, "RIGHT_ELBOW": 14, "LEFT_WRIST": 15,
    "LEFT_PINKY": 17, "RIGHT_INDEX": 20, "LEFT_HIP": 23, "RIGHT_KNEE": 26, "LEFT_ANKLE": 27,
    "RIGHT_HEEL": 30, "LEFT_FOOT_INDEX": 31,
}  # fmt: skip


def result_of(joints: np.ndarray, root: np.ndarray) -> FrameResult:
    own = project(joints + root, MATRIX).astype(np.float32)
    keypoints = np.full((1, 33, 2), 300, np.float32)
    for at, name in enumerate(BLAZEPOSE33.names):
        if name in H36M17.names:
            keypoints[0, at] = own[H36M17.index(name)]
    scores = np.linspace(0, 1, 33, dtype=np.float32)[None]
    people = People(
        0, 0.0, np.array([1]), np.array([[0, 0, 9, 9]], np.float32), np.ones(1, np.float32), keypoints, scores
    )
    return FrameResult(people, Poses3D(joints[None], root[None].astype(np.float32), np.ones((1, 17), np.float32)))


def test_landmarks_have_the_old_indices():
    assert {name: int(mp_pose.PoseLandmark[name]) for name in INDICES} == INDICES
    assert len(mp_pose.PoseLandmark) == 33
    assert (11, 13) in mp_pose.POSE_CONNECTIONS


def test_landmarks_are_relative_to_the_image_and_to_the_hips():
    root = np.array([0.4, 0.1, 4.0])
    found = mp_pose.landmarks_of(result_of(STANDING, root), MATRIX, SIZE)
    wrist = mp_pose.PoseLandmark.LEFT_WRIST
    expected = STANDING[H36M17.index("left_wrist")] - STANDING[[1, 4]].mean(axis=0)
    world = found.pose_world_landmarks.landmark[wrist]
    np.testing.assert_allclose([world.x, world.y, world.z], expected, atol=1e-5)
    pixel = project((STANDING + root)[H36M17.index("left_wrist")][None], MATRIX)[0]
    flat = found.pose_landmarks.landmark[wrist]
    np.testing.assert_allclose([flat.x * 640, flat.y * 480], pixel, atol=1e-3)
    assert flat.visibility == world.visibility == pytest.approx(15 / 32)
    # A landmark that the lifter lacks lies on the ray of its pixel.
    heel = found.pose_world_landmarks.landmark[mp_pose.PoseLandmark.LEFT_HEEL]
    place = np.array([heel.x, heel.y, heel.z]) + root + STANDING[[1, 4]].mean(axis=0)
    np.testing.assert_allclose(project(place[None], MATRIX)[0], [300, 300], atol=1e-3)
    assert np.isfinite([(one.x, one.y, one.z) for one in found.pose_world_landmarks.landmark]).all()


def test_no_person_gives_none():
    result = result_of(np.full((17, 3), np.nan, np.float32), np.zeros(3))
    found = mp_pose.landmarks_of(result, MATRIX, SIZE)
    assert (found.pose_landmarks, found.pose_world_landmarks, found.segmentation_mask) == (None, None, None)


def test_what_is_not_available_is_refused():
    for options, words in (
        ({"enable_segmentation": True}, "segmentation is not available"),
        ({"model_complexity": 3}, "model_complexity: 3 is unknown"),
    ):
        with pytest.raises(UsageError, match=words):
            mp_pose.Pose(**options)


@pytest.mark.slow
@pytest.mark.parametrize("static", [False, True])
def test_old_code_runs_on_a_video(videos, weights_dir, monkeypatch, static):
    from pose.video import open_source

    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    with open_source(str(videos / "squats.mp4"), end=0.4) as source, mp_pose.Pose(static_image_mode=static) as pose:
        found = [pose.process(frame.image) for frame in source]
    last = found[-1]
    assert last.pose_landmarks is not None
    hip, ankle = (last.pose_world_landmarks.landmark[mp_pose.PoseLandmark[name]] for name in ("LEFT_HIP", "LEFT_ANKLE"))
    assert 0.3 < ankle.y - hip.y < 1.2, "y points down"
    assert 0 < last.pose_landmarks.landmark[mp_pose.PoseLandmark.NOSE].y < last.pose_landmarks.landmark[27].y < 1.1
