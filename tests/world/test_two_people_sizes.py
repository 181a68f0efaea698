"""Heights and distances of two people on one floor, against triangulation of two calibrated views."""

import json

import cv2
import numpy as np
import pytest
from pose_apps.run import main

from pose.results import load_poses
from pose.structures.skeletons import H36M17, to_h36m17
from pose.world.scene.model import ADULT_M, CHILD_M, DISTANCE_LOG_SIGMA

pytestmark = pytest.mark.slow
VIEWS = ("view-a", "view-b")
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
SOLE = 0.08  # m, from the ankle to the sole
MAN, WOMAN = 1, 2  # ids in both views
HEIGHTS = {MAN: 1.76, WOMAN: 1.48}  # m, from both views
PLATFORM = 0.1  # m, height of the treadmill under the man above the floor under the woman


@pytest.fixture(scope="module")
def cameras(videos):
    return json.loads((videos / "two-people" / "calibration.json").read_text())["cameras"]


@pytest.fixture(scope="module")
def results(videos, weights_dir, cameras, tmp_path_factory):
    """The result of each view by itself, with its published intrinsics."""
    out, found = tmp_path_factory.mktemp("two-people"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
        for name in VIEWS:
            k = cameras[name]["K"]
            camera = f"{k[0][0]},{k[1][1]},{k[0][2]},{k[1][2]}"
            clip = str(videos / "two-people" / f"{name}.mp4")
            call = [clip, "--out", str(out / name), "--intrinsics", camera, "--formats", "npz", "--no-overlay"]
            assert main([*call, "--quiet"]) == 0
            found[name] = load_poses(out / name / "poses.npz")
    return found


def hips_of(result, camera, person):
    """Frame -> the pelvis (2,) in normalised, undistorted image coordinates."""
    rows = np.flatnonzero(result.id == person)
    points, _ = to_h36m17(result.keypoints[rows], result.scores[rows], result.skeleton)
    lens = np.array(camera["K"]), np.array(camera["distortion_k1_k2_p1_p2"])
    seen = cv2.undistortPoints(points[:, :1].astype(float), *lens)[:, 0]
    return dict(zip(result.frame_index[rows].tolist(), seen, strict=True))


def distances(results, cameras, person):
    """View -> m, the median distance of the triangulated pelvis from its camera."""
    seen = [hips_of(results[name], cameras[name], person) for name in VIEWS]
    poses = [(np.array(cameras[name]["R"]), np.array(cameras[name]["t"])) for name in VIEWS]
    frames = sorted(seen[0].keys() & seen[1].keys())
    matrices = [np.column_stack(pose) for pose in poses]
    points = cv2.triangulatePoints(*matrices, *(np.array([one[frame] for frame in frames]).T for one in seen))
    places = (points[:3] / points[3]).T
    return {
        name: float(np.median(np.linalg.norm(places @ rotation.T + shift, axis=1)))
        for name, (rotation, shift) in zip(VIEWS, poses, strict=True)
    }


@pytest.mark.parametrize("name", VIEWS)
def test_two_real_people_stand_on_one_floor(results, name):
    result = results[name]
    for person in (MAN, WOMAN):
        lower = result.placed.joints[result.id == person][:, ANKLES, 1].min(axis=1)
        assert abs(np.median(lower) - SOLE) < 0.08


@pytest.mark.parametrize("name", VIEWS)
def test_distances_agree_with_triangulation(results, cameras, name):
    """One view of known intrinsics shows how far two people on one floor are relative to each other.

    It does not show the scale: the prior of heights does, and these two are 5 % below the average adult in the mean,
    the woman 2.4 standard deviations. So the scale is only compared with what the result claims, at two sigma.
    """
    result, far, sigmas = results[name], {}, {}
    truth = {person: distances(results, cameras, person)[name] for person in HEIGHTS}
    for person, height in HEIGHTS.items():
        rows = result.id == person
        far[person] = np.median(np.linalg.norm(result.root[rows], axis=1))
        sigmas[person] = np.median(result.placed.root_sigma[rows]) / 1000
        found, sigma = result.world_info.heights[person]
        assert abs(found - height) < 2 * sigma
        assert sigma < np.hypot((ADULT_M - CHILD_M) / 2, 0.1), "that of a person who is an adult or a child"
        assert abs(far[person] - truth[person]) < 2 * sigmas[person]
    # Errors of both distances at a known size, and of the floor, which is that of the woman.
    tolerance = np.hypot(np.sqrt(2) * DISTANCE_LOG_SIGMA, PLATFORM / abs(result.world_info.world.floor))
    assert far[MAN] / far[WOMAN] == pytest.approx(truth[MAN] / truth[WOMAN], rel=tolerance)
