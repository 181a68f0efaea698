"""`--bvh-skeleton`: names, axes and places of the skeletons that other programs expect, read by a reader of our own."""

from dataclasses import replace

import numpy as np
import pytest
from glb_reader import node_places
from pose_apps.convert import main as convert
from pose_datasets.rotations import intrinsic
from pose_fakes import run_info, seen_result

from pose.body.rigs import bone_names, is_finger
from pose.body.tracks import open_selection
from pose.export import export
from pose.export.bvh_skeletons import BVH_SKELETONS
from pose.results import NpzWriter
from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17

OTHERS = BVH_SKELETONS[1:]
# Their joints at our joints: (name of ours, name in blender, lafan1, xsens, mixamo, unreal).
SAME = (
    ("pelvis", "spine", "Hips", "Hips", "mixamorig:Hips", "pelvis"),
    ("thorax", "spine.003", "Spine2", "Chest4", "mixamorig:Spine2", "spine_03"),
    ("head", "spine.006", "Head", "Head", "mixamorig:Head", "head"),
    ("left_shoulder", "upper_arm.L", "LeftArm", "LeftShoulder", "mixamorig:LeftArm", "upperarm_l"),
    ("right_elbow", "forearm.R", "RightForeArm", "RightElbow", "mixamorig:RightForeArm", "lowerarm_r"),
    ("left_wrist", "hand.L", "LeftHand", "LeftWrist", "mixamorig:LeftHand", "hand_l"),
    ("right_hip", "thigh.R", "RightUpLeg", "RightHip", "mixamorig:RightUpLeg", "thigh_r"),
    ("left_knee", "shin.L", "LeftLeg", "LeftKnee", "mixamorig:LeftLeg", "calf_l"),
    ("right_ankle", "foot.R", "RightFoot", "RightAnkle", "mixamorig:RightFoot", "foot_r"),
)


def read_bvh(path):
    """Names, parents, offsets, channel orders and the motion of a file, by the description of the format."""
    head, _, motion = path.read_text().partition("MOTION\n")
    names, parents, offsets, orders, stack = [], [], [], [], []
    for line in head.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] in ("ROOT", "JOINT"):
            parents.append(next((one for one in reversed(stack) if one is not None), -1))
            names.append(words[1])
            stack.append(len(names) - 1)
        elif words[0] == "End":
            stack.append(None)
        elif words[0] == "OFFSET" and stack[-1] is not None:
            offsets.append([float(word) for word in words[1:]])
        elif words[0] == "CHANNELS":
            orders.append("".join(word[0].lower() for word in words[2:] if word.endswith("rotation")))
        elif words[0] == "}":
            stack.pop()
    lines = motion.splitlines()
    return names, parents, np.array(offsets), orders, np.array([line.split() for line in lines[2:]], float)


def places_of(path):
    """Joint places (T, J, 3) and global axes (T, J, 3, 3) by forward kinematics."""
    names, parents, offsets, orders, rows = read_bvh(path)
    places, axes = np.zeros((len(rows), len(names), 3)), np.zeros((len(rows), len(names), 3, 3))
    for at, parent in enumerate(parents):
        local = intrinsic(orders[at], np.radians(rows[:, 3 + 3 * at : 6 + 3 * at]))
        if parent < 0:
            places[:, at], axes[:, at] = rows[:, :3] + offsets[at], local
        else:
            places[:, at] = places[:, parent] + axes[:, parent] @ offsets[at]
            axes[:, at] = axes[:, parent] @ local
    return names, places, axes


@pytest.fixture
def written(recorded, tmp_path):
    """written(name) -> the file of a skeleton, and the joints (T, 17, 3) m of our rigid skeleton."""

    def make(name):
        recording, places = recorded(30)
        recording.bvh_skeleton = name
        (made,) = export(recording, ["bvh"], tmp_path, name)
        return made, recording, places[0]

    return make


@pytest.mark.parametrize("name", OTHERS)
def test_joints_are_at_our_joints(written, name):
    made, _, ours = written(name)
    names, places, _ = places_of(made.path)
    scale = 1.0 if name == "blender" else 0.01
    column = 1 + OTHERS.index(name)
    pelvis = ours[:, H36M17.index("pelvis")]
    drop = (scale * places[:, 0] - pelvis)[:, 1].mean()  # in camera coordinates the file is moved onto the floor
    for row in SAME:
        place = scale * places[:, names.index(row[column])] - (0, drop, 0)
        np.testing.assert_allclose(place, ours[:, H36M17.index(row[0])], atol=1e-4, err_msg=row[column])


def test_feet_are_on_the_floor(written):
    made, _, _ = written("lafan1")
    names, places, _ = places_of(made.path)
    ankles = places[:, [names.index("LeftFoot"), names.index("RightFoot")], 1]
    assert np.percentile(ankles, 2) == pytest.approx(100 * 0.08, abs=3), "an ankle is 8 cm above its sole"
    assert "so that the feet are on the floor" in str(made)


def test_lafan1_has_the_axes_and_the_order_of_the_data_set(written):
    """Offsets of LaFAN1 lie along the x axis of the parent, and both thighs have the same axes."""
    made, _, _ = written("lafan1")
    names, parents, offsets, orders, _ = read_bvh(made.path)
    assert names == [
        "Hips", "LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToe", "RightUpLeg", "RightLeg", "RightFoot", "RightToe",
        "Spine", "Spine1", "Spine2", "Neck", "Head", "LeftShoulder", "LeftArm", "LeftForeArm", "LeftHand",
        "RightShoulder", "RightArm", "RightForeArm", "RightHand",
    ]  # fmt: skip
    assert [names[parent] for parent in parents[1:]] == [
        "Hips", "LeftUpLeg", "LeftLeg", "LeftFoot", "Hips", "RightUpLeg", "RightLeg", "RightFoot", "Hips", "Spine",
        "Spine1", "Spine2", "Neck", "Spine2", "LeftShoulder", "LeftArm", "LeftForeArm", "Spine2", "RightShoulder",
        "RightArm", "RightForeArm",
    ]  # fmt: skip
    assert set(orders) == {"zyx"}
    along = ["LeftLeg", "LeftFoot", "RightLeg", "Spine1", "Spine2", "LeftArm", "LeftForeArm", "RightArm", "RightHand"]
    for name in along:
        x, y, z = offsets[names.index(name)]
        assert x > 0, name
        assert (y, z) == pytest.approx((0, 0), abs=1e-4), name
    assert offsets[names.index("LeftUpLeg")][2] > 0 > offsets[names.index("RightUpLeg")][2]
    _, _, axes = places_of(made.path)
    up, left = axes[:, 0, :, 0], axes[:, 0, :, 2]
    assert up[:, 1].mean() > 0.7, "the x axis of the hips points up"
    assert np.abs(np.linalg.norm(left, axis=1) - 1).max() < 1e-4


def test_unreal_rests_in_the_a_pose_and_xsens_in_the_t_pose(written):
    for name, arm, expected in (("unreal", "lowerarm_l", -1.0), ("xsens", "LeftElbow", 0.0)):
        made, _, _ = written(name)
        names, _, offsets, orders, _ = read_bvh(made.path)
        x, y, _ = offsets[names.index(arm)]
        assert y / x == pytest.approx(expected, abs=1e-4)
        assert set(orders) == {"yxz" if name == "xsens" else "zxy"}


def test_mujoco_reports_joint_limits_and_penetration(written):
    """A humanoid of the file's own bones, with ranges of a person's joints and a floor, posed by the file."""
    import mujoco

    made, _, _ = written("lafan1")
    names, parents, offsets, orders, rows = read_bvh(made.path)
    limits = {"LeftLeg": 2.7, "RightLeg": 2.7, "LeftForeArm": 2.7, "RightForeArm": 2.7, "Neck": 1.3, "Spine": 1.3}

    def body(at: int) -> str:
        children = "".join(body(child) for child, parent in enumerate(parents) if parent == at)
        joint = '<freejoint/>' if at == 0 else (
            f'<joint name="{names[at]}" type="ball" limited="true" range="0 {limits.get(names[at], 3.1)}"/>'
        )  # fmt: skip
        place = " ".join(f"{value / 100:.5f}" for value in (offsets[at] if at else np.zeros(3)))
        return f'<body name="{names[at]}" pos="{place}">{joint}<geom size="0.02" mass="1"/>{children}</body>'

    model = mujoco.MjModel.from_xml_string(
        '<mujoco><compiler angle="radian"/><worldbody><body name="floor"><geom type="plane" size="9 9 1" '
        f'quat="0.7071068 -0.7071068 0 0"/></body>{body(0)}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    worst_limit, deepest = 0.0, 0.0
    _, places, _ = places_of(made.path)
    for frame, row in enumerate(rows):
        for at, order in enumerate(orders):
            matrix = intrinsic(order, np.radians(row[3 + 3 * at : 6 + 3 * at]))
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, matrix.ravel())
            address = 3 if at == 0 else model.joint(names[at]).qposadr[0]
            data.qpos[address : address + 4] = quaternion
        data.qpos[:3] = row[:3] / 100
        mujoco.mj_forward(model, data)
        mine = np.array([data.body(name).xpos for name in names])
        np.testing.assert_allclose(mine, places[frame] / 100, atol=1e-4)
        for at in range(data.nefc):
            if data.efc_type[at] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT:
                worst_limit = min(worst_limit, float(data.efc_pos[at]))
        deepest = min([deepest, *(float(contact.dist) for contact in data.contact)])
    assert worst_limit > -0.05, "no joint beyond its range by more than 3 degrees"
    assert deepest > -0.12, "nothing deep below the floor"


def test_option_applies_to_bvh_only(recorded, tmp_path, capsys):
    assert convert([str(tmp_path / "x.npz"), "--to", "csv", "--bvh-skeleton", "lafan1"]) == 2
    assert "--bvh-skeleton: applies only to bvh" in capsys.readouterr().err
    assert convert([str(tmp_path / "x.npz"), "--to", "bvh", "--bvh-skeleton", "lafan"]) == 2


@pytest.mark.parametrize(
    ("name", "first"), [("blender", "f_index.01.L"), ("mixamo", "mixamorig:LeftHandIndex1"), ("unreal", "index_01_l")]
)
def test_fingers_have_the_directions_of_the_hand_points(name, first, rng, tmp_path):
    points = np.zeros((21, 3))  # camera axes: the arm to the right, palm down, fingers that bend
    for finger in range(5):
        points[4 * finger + 1] = 0.09, 0, -0.03 + 0.015 * finger
        for part in range(1, 4):
            points[4 * finger + part + 1] = points[4 * finger + part] + (
                0.03,
                0.01 * part * rng.random(),
                0.004 * finger,
            )
    path = tmp_path / "poses.npz"
    info = run_info(H36M17)
    with NpzWriter(path, replace(info, settings={**info.settings, "hands": True})) as writer:
        for at in range(6):
            seen = seen_result([(0, 0, 4)], index=at, time=at / 25)
            hands = Hands.unknown(1)
            hands.shapes[0, 0], hands.points[0, 0], hands.scores[0, 0] = points, 300 + 200 * points[:, :2], 0.9
            writer.write(replace(seen, people=replace(seen.people, hands=hands)))
    recording = open_selection(path, space="camera")
    recording.bvh_skeleton = name
    (made,) = export(recording, ["bvh"], tmp_path, name)
    names, places, _ = places_of(made.path)
    found = places[-1, names.index(first) :][:3]
    bones = np.diff(points[5:8], axis=0) * (1, -1, -1)
    np.testing.assert_allclose(unit(np.diff(found, axis=0)), unit(bones), atol=1e-3)
    lengths, expected = (np.linalg.norm(one, axis=1) for one in (np.diff(found, axis=0), bones))
    np.testing.assert_allclose(lengths / lengths.sum(), expected / expected.sum(), rtol=1e-3)  # sized to the forearm
    assert sum("ndex" in joint for joint in names) == 6
    recording.bvh_skeleton = "lafan1"
    (plain,) = export(recording, ["bvh"], tmp_path, "lafan1")
    assert len(read_bvh(plain.path)[0]) == 22


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def open_hands():
    """Shapes (2, 21, 3) m of hands with straight fingers, in camera axes."""
    along = np.repeat([0.05, 0.09, 0.1, 0.095, 0.085], 4) + np.tile(np.arange(4), 5) * 0.025
    across = np.repeat([0.05, 0.03, 0.01, -0.01, -0.03], 4)
    left = np.concatenate([np.zeros((1, 3)), np.stack([along, across, 0.01 * across], axis=1)])
    return np.stack([left, left * (-1, 1, 1)])


@pytest.mark.parametrize(("rig", "hands"), [("rigify", None), ("unreal", open_hands())], ids=["rigify", "hands"])
def test_bvh_obeys_the_rig_of_the_character(recorded, tmp_path, rig, hands):
    """All bones of the character that are known, at the places that its GLB has."""
    present = np.ones((1, 30), bool)
    present[0, 10:14] = False
    recording, _ = recorded(30, present=present, rig=rig, hands=hands)
    bvh, glb = export(recording, ["bvh", "glb"], tmp_path, "poses")
    names, places, _ = places_of(bvh.path)
    table = bone_names(rig)
    assert set(names) == {name for own, name in table.items() if hands is not None or not is_finger(own)}
    assert len(places) == 30, "gaps are filled"
    shown = node_places(glb.path)[0]
    for at, name in enumerate(names):
        np.testing.assert_allclose(places[present[0], at] / 100, shown[name], atol=1e-4)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=-1)
    assert steps[9:14].max() < 5 * steps[:9].max(), "without a jump"
