"""A recorded walk with seven sensors, against another implementation of inertial motion capture."""

import numpy as np
import pytest

from pose.body.imu import read_imus, solve_imus
from pose.structures.skeletons import H36M17


@pytest.fixture(scope="module")
def recording(shared):
    return read_imus(shared / "mocap/imu/lower-body-walk.zip")


@pytest.fixture(scope="module")
def motion(recording):
    return solve_imus(recording, height=1.75, rate=10.0)


def test_segments_follow_from_the_names_of_the_devices(recording):
    expected = "pelvis left_thigh right_thigh left_shank right_shank left_foot right_foot"
    assert [sensor.segment for sensor in recording.sensors] == expected.split()


def test_joint_angles_equal_those_of_imumocap(recording):
    imumocap = pytest.importorskip("imumocap", reason="needs imumocap, which requires Python 3.12")
    from imumocap import Joint, Link, Matrix, Model, solvers

    ours = solve_imus(recording, rate=5.0, heading=0.0)
    orientations = recording.orientations(ours.times)
    standing = {segment: Matrix(quaternion=q[0]) for segment, q in orientations.items()}
    links = {segment: Link(segment, Matrix(z=0.1)) for segment in orientations}
    links["pelvis"].connect(links["left_thigh"]).connect(links["right_thigh"])
    for side in ("left", "right"):
        links[f"{side}_thigh"].connect(links[f"{side}_shank"])
        links[f"{side}_shank"].connect(links[f"{side}_foot"])
    model = Model(links["pelvis"])
    solvers.calibrate(model, standing)
    # Its angles are about the axes to the left (y), forward (x) and up (z) of its world, in this order.
    joints = {segment: Joint(link, Matrix.align_pz_px_py()) for segment, link in links.items()}
    theirs = {segment: [] for segment in links}
    for frame in range(len(ours.times)):
        model.set_pose_from_imus({segment: Matrix(quaternion=q[frame]) for segment, q in orientations.items()})
        for segment, joint in joints.items():
            theirs[segment].append(joint.get())
    assert imumocap is not None
    for side, outward in (("left", 1), ("right", -1)):
        thigh, shank, foot = (np.array(theirs[f"{side}_{part}"]) for part in ("thigh", "shank", "foot"))
        for name, expected in (
            ("hip_flexion", -thigh[:, 0]),
            ("hip_abduction", outward * thigh[:, 1]),
            ("hip_rotation", -outward * thigh[:, 2]),
            ("knee_flexion", shank[:, 0]),
            ("ankle_flexion", -foot[:, 0]),
        ):
            assert np.abs(ours.angles[f"{side}_{name}"] - expected).max() < 0.5, (side, name)


def test_knees_bend_in_one_direction_only(motion):
    for side in ("left", "right"):
        assert motion.angles[f"{side}_knee_flexion"].min() > -10
        assert motion.angles[f"{side}_knee_flexion"].max() > 50


def test_feet_stay_above_the_floor_and_bones_keep_their_lengths(motion):
    assert motion.joints[..., 1].min() >= 0
    for side in ("left", "right"):
        shank = motion.joints[:, H36M17.index(f"{side}_knee")] - motion.joints[:, H36M17.index(f"{side}_ankle")]
        np.testing.assert_allclose(np.linalg.norm(shank, axis=1), 0.246 * 1.75, rtol=1e-6)


def test_joints_without_a_sensor_say_so_and_have_a_large_sigma(motion):
    assert motion.sensors[H36M17.index("right_ankle")] == ("pelvis", "right_thigh", "right_shank")
    assert motion.sensors[-1] == ("pelvis",)
    assert motion.sigma[H36M17.index("right_ankle")] < 60 < motion.sigma[-1]
