"""Writers of the files that the sensor readers read, of a made-up motion."""

import json

import numpy as np

from pose.body.sensors import azure
from pose.errors import PoseError
from pose.structures.skeletons import H36M17
from pose.video.depth import open_depth
from tests.mutations import damaged, try_mutations

FRAMES = 40
TIMES = np.arange(FRAMES) / 30


def body(seed=0):
    """Return joints (T, 17, 3) m of a swaying person, x to the left, y up, z towards the camera."""
    rng = np.random.default_rng(seed)
    rest = np.array(
        [[0, 0.95, 0], [-0.1, 0.95, 0], [-0.1, 0.5, 0], [-0.1, 0.08, 0], [0.1, 0.95, 0], [0.1, 0.5, 0], [0.1, 0.08, 0],
         [0, 1.2, 0], [0, 1.45, 0], [0, 1.55, 0.05], [0, 1.68, 0], [0.18, 1.4, 0], [0.2, 1.1, 0], [0.2, 0.85, 0.1],
         [-0.18, 1.4, 0], [-0.2, 1.1, 0], [-0.2, 0.85, 0.1]]
    )  # fmt: skip
    sway = 0.05 * np.sin(2 * TIMES[:, None, None] + rng.uniform(0, 6, (1, 17, 3)))
    return rest + sway - [0, 0, 2.5]


def write_kinect(path):
    """Write a pair of files of random bones and angles; return their (offsets, degrees)."""
    rng = np.random.default_rng(1)
    offsets = np.repeat(rng.uniform(-20, 20, (1, 22, 3)), FRAMES, axis=0)
    degrees = rng.uniform(-60, 60, (1, 22, 3)) + 20 * np.sin(TIMES[:, None, None] + rng.uniform(0, 6, (22, 3)))
    np.savetxt(path, offsets.reshape(FRAMES, -1), delimiter=",", fmt="%.5f")
    np.savetxt(path.with_name(path.name.replace("_positions", "_angles")), degrees.reshape(FRAMES, -1), fmt="%.5f")
    return offsets, degrees


def azure_points(joints):
    """Return the 32 joints (T, 32, 3) m in camera axes whose joints of Human3.6M-17 are `joints`."""
    points = np.zeros((len(joints), 32, 3))
    for at, name in enumerate(H36M17.names):
        role = azure._ROLES[name]
        for one in (role,) if isinstance(role, str) else role:
            points[:, azure.NAMES.index(one)] = joints[:, at]
    return points * [1, -1, -1]


def write_azure(path, people):
    """Write the JSON file of joints (T, 17, 3) by body id."""
    points = {number: azure_points(joints) for number, joints in people.items()}
    frames = [
        {
            "bodies": [
                {"body_id": number, "joint_positions": (1000 * p[at]).tolist()}
                for number, p in points.items()
            ],
            "frame_id": at,
            "num_bodies": len(points),
            "timestamp_usec": round(1e6 * (seconds + 5)),
        }
        for at, seconds in enumerate(TIMES)
    ]  # fmt: skip
    content = {"bone_list": [["PELVIS", "NECK"]], "frames": frames, "joint_names": list(azure.NAMES)}
    path.write_text(json.dumps(content))


def write_bag(path, people):
    """Write a ROS 1 bag of markers of joints (T, 17, 3) by body id."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    points = {number: azure_points(joints) for number, joints in people.items()}

    def marker(seconds, number, joint, xyz):
        stamp = types["builtin_interfaces/msg/Time"](int(seconds), round(seconds % 1 * 1e9))
        header = types["std_msgs/msg/Header"](seq=0, stamp=stamp, frame_id="depth_camera_link")
        pose = types["geometry_msgs/msg/Pose"](
            types["geometry_msgs/msg/Point"](*map(float, xyz)),
            types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
        )
        return types["visualization_msgs/msg/Marker"](
            header=header, ns="", id=100 * number + joint, type=2, action=0, pose=pose,
            scale=types["geometry_msgs/msg/Vector3"](0.05, 0.05, 0.05),
            color=types["std_msgs/msg/ColorRGBA"](1.0, 0.0, 0.0, 1.0),
            lifetime=types["builtin_interfaces/msg/Duration"](0, 0), frame_locked=False, points=[], colors=[], text="",
            mesh_resource="", mesh_use_embedded_materials=False,
        )  # fmt: skip

    kind = "visualization_msgs/msg/MarkerArray"
    with Writer(path) as writer:
        connection = writer.add_connection("/body_tracking_data", kind, typestore=store)
        for at, seconds in enumerate(TIMES + 5):
            markers = [marker(seconds, n, j, p[at, j]) for n, p in points.items() for j in range(32)]
            message = types[kind](markers)
            writer.write(connection, round(1e9 * seconds), store.serialize_ros1(message, kind))


MVN = (
    "Pelvis", "L5", "L3", "T12", "T8", "Neck", "Head", "RightShoulder", "RightUpperArm", "RightForeArm", "RightHand",
    "LeftShoulder", "LeftUpperArm", "LeftForeArm", "LeftHand", "RightUpperLeg", "RightLowerLeg", "RightFoot",
    "RightToe", "LeftUpperLeg", "LeftLowerLeg", "LeftFoot", "LeftToe",
)  # fmt: skip
MVN_JOINTS = {
    "T12": "spine", "Neck": "thorax", "Head": "neck",
    **{f"{side.title()}{part}": f"{side}_{joint}" for side in ("left", "right") for part, joint in (
        ("UpperLeg", "hip"), ("LowerLeg", "knee"), ("Foot", "ankle"), ("UpperArm", "shoulder"), ("ForeArm", "elbow"),
        ("Hand", "wrist"))},
}  # fmt: skip


def write_mvnx(path, joints):
    """Write an MVNX file of joints (T, 17, 3) of a suit whose head is upright."""
    points = np.zeros((len(joints), len(MVN), 3))
    for name, joint in MVN_JOINTS.items():
        points[:, MVN.index(name)] = joints[:, H36M17.index(joint)][:, [2, 0, 1]]
    segments = "".join(f'<segment label="{name}" id="{at + 1}"/>' for at, name in enumerate(MVN))
    frames = "".join(
        f'<frame time="{1000 * seconds:.3f}" type="normal"><orientation>{"1 0 0 0 " * len(MVN)}</orientation>'
        f"<position>{' '.join(f'{value:.6f}' for value in points[at].ravel())}</position></frame>"
        for at, seconds in enumerate(TIMES)
    )
    path.write_text(
        '<?xml version="1.0"?><mvnx xmlns="http://www.xsens.com/mvn/mvnx" version="4"><subject label="a">'
        f"<segments>{segments}</segments><frames>{frames}</frames></subject></mvnx>"
    )


_TREE = (
    ("Hips", None, "pelvis"), ("Spine", "Hips", "spine"), ("Neck", "Spine", "thorax"), ("Head", "Neck", "neck"),
    *((f"{side.title()}{bone}", f"{side.title()}{parent}" if parent not in ("Hips", "Neck") else parent,
       f"{side}_{joint}") for side in ("left", "right") for bone, parent, joint in (
        ("UpLeg", "Hips", "hip"), ("Leg", "UpLeg", "knee"), ("Foot", "Leg", "ankle"), ("Arm", "Neck", "shoulder"),
        ("ForeArm", "Arm", "elbow"), ("Hand", "ForeArm", "wrist"))),
)  # fmt: skip


def write_bvh(path, joints):
    """Write a BVH file in cm of joints (T, 17, 3), with a position of each bone in each frame."""
    parents = {name: parent for name, parent, _ in _TREE}
    place = {name: 100 * joints[:, H36M17.index(joint)] for name, _, joint in _TREE}
    order, lines = [], ["HIERARCHY"]

    def write(name, depth):
        pad = "  " * depth
        offset = place[name][0] - (place[parents[name]][0] if parents[name] else 0)
        lines.append(f"{pad}{'JOINT' if parents[name] else 'ROOT'} {name}")
        lines.append(f"{pad}{{")
        lines.append(f"{pad}OFFSET {' '.join(f'{value:.5f}' for value in offset)}")
        lines.append(f"{pad}CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation")
        order.append(name)
        children = [child for child, parent, _ in _TREE if parent == name]
        for child in children:
            write(child, depth + 1)
        if not children:
            lines.extend([f"{pad}End Site", f"{pad}{{", f"{pad}OFFSET 0 0 0", f"{pad}}}"])
        lines.append(f"{pad}}}")

    write("Hips", 0)
    lines += ["MOTION", f"Frames: {len(joints)}", f"Frame Time: {1 / 30:.7f}"]
    for at in range(len(joints)):
        row = []
        for name in order:
            local = place[name][at] - (place[parents[name]][at] if parents[name] else 0)
            row += [f"{value:.5f}" for value in local] + ["0", "0", "0"]
        lines.append(" ".join(row))
    path.write_text("\n".join(lines) + "\n")


def check_damaged_depths(content, target):
    """Sixty damaged copies of a file of depth images, written to `target`, are read or refused in one line."""
    refused = []

    def check(data):
        target.write_bytes(damaged(data, content))
        try:
            depth = open_depth(target)
            for at in range(len(depth.times)):
                assert depth.read(at).dtype == np.float32
        except PoseError as error:
            refused.append(str(error))

    try_mutations(check, 60)
    assert len(refused) > 10
    assert not any("\n" in one for one in refused)
