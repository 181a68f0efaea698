"""VMC, VRChat and OSC: what a receiver decodes, by python-osc and by a second decoder from the specification."""

from dataclasses import replace

import numpy as np
import pytest
from link_fakes import in_names_order, link_frame, live_result, osc_messages, quaternion_matrix, receiver, turned_body
from pose_fakes import STANDING
from pythonosc.osc_packet import OscPacket

from pose.body.skeleton import NAMES
from pose.live.counter import Count
from pose.live.links import vmc
from pose.live.links.base import Address
from pose.live.links.frames import FrameBuilder
from pose.live.links.osc import OscLink
from pose.live.links.unity import BONES, unity_euler
from pose.live.links.vmc import VmcLink
from pose.live.links.vrchat import TRACKERS, VrchatLink
from pose.structures.skeletons import H36M17

# Parents of Unity's human bones that are sent (Unity's documentation of HumanBodyBones).
UNITY_PARENTS = {
    "Spine": "Hips", "Chest": "Spine", "Neck": "Chest", "Head": "Neck",
    **{f"{s}{b}": (f"{s}{p}" if p.startswith(("Upper", "Lower")) else p) for s in ("Left", "Right") for b, p in (
        ("UpperLeg", "Hips"), ("LowerLeg", "UpperLeg"), ("Foot", "LowerLeg"), ("UpperArm", "Chest"),
        ("LowerArm", "UpperArm"), ("Hand", "LowerArm"))},
}  # fmt: skip


def sent(link_kind, frame, count=1, person=None):
    sockets = receiver(count)
    link = link_kind(Address("--send test", "127.0.0.1", sockets[0].getsockname()[1], person=person))
    try:
        assert sockets[0].recv(10) == b""  # the probe of the address
        link.send(frame)
        packets = [one.recv(65536) for one in sockets]
    finally:
        link.close()
        for one in sockets:
            one.close()
    for packet in packets:  # both decoders agree
        theirs = [(timed.message.address, list(timed.message)) for timed in OscPacket(packet).messages]
        assert theirs == osc_messages(packet)
    return [osc_messages(packet) for packet in packets]


def unity_joints(messages):
    """Forward kinematics in Unity's axes of the bones of a bundle."""
    bones = {values[0]: values[1:] for address, values in messages if address == "/VMC/Ext/Bone/Pos"}
    places, turns = {}, {}

    def solve(bone):
        if bone not in places:
            offset, own = np.array(bones[bone][:3]), quaternion_matrix(*bones[bone][3:])
            if bone == "Hips":
                places[bone], turns[bone] = offset, own
            else:
                parent = UNITY_PARENTS[bone]
                solve(parent)
                places[bone], turns[bone] = places[parent] + turns[parent] @ offset, turns[parent] @ own

    for bone in BONES:
        solve(bone)
    return places, turns


def test_vmc_gives_our_joints_by_forward_kinematics(rng):
    for _ in range(5):
        frame = link_frame(rng)
        (messages,) = sent(VmcLink, frame)
        places, _ = unity_joints(messages)
        ours = dict(zip(NAMES, in_names_order(frame.people[0].joints), strict=True))
        for bone, joint in BONES.items():
            np.testing.assert_allclose(places[bone] * (-1, 1, 1), ours[joint], atol=1e-4, err_msg=bone)
        assert messages[0] == ("/VMC/Ext/OK", [1])
        assert ("/VMC/Ext/Root/Pos", ["root", 0, 0, 0, 0, 0, 0, 1]) in messages


def test_vmc_gives_the_points_of_the_fingers_by_forward_kinematics(rng):
    (person,) = link_frame(rng).people
    wrists = person.joints[[H36M17.index(f"{side}_wrist") for side in ("left", "right")]]
    steps = rng.normal(0, 0.01, (2, 5, 4, 3)) + rng.normal(0, 0.04, (2, 5, 1, 3))
    hands = np.concatenate([wrists[:, None], wrists[:, None] + steps.cumsum(axis=2).reshape(2, 20, 3)], axis=1)
    found = vmc.messages(replace(person, hands=hands), 0.0)
    bones = {values[0]: values[1:] for address, values in found if address == "/VMC/Ext/Bone/Pos"}
    places, turns = unity_joints(found)
    for side, points in zip(("Left", "Right"), hands, strict=True):
        for finger, name in enumerate(("Thumb", "Index", "Middle", "Ring", "Little")):
            place, turn = places[f"{side}Hand"], turns[f"{side}Hand"]
            for part, bone in enumerate(("Proximal", "Intermediate", "Distal")):
                values = bones[f"{side}{name}{bone}"]
                place, turn = place + turn @ np.array(values[:3]), turn @ quaternion_matrix(*values[3:])
                np.testing.assert_allclose(place * (-1, 1, 1), points[4 * finger + part + 1], atol=1e-4)


def test_vmc_t_pose_has_identity_rotations():
    joints = STANDING.copy()
    for side, x in (("left", 1), ("right", -1)):
        shoulder = H36M17.index(f"{side}_shoulder")
        for at, name in enumerate(("elbow", "wrist"), start=1):
            joints[H36M17.index(f"{side}_{name}")] = joints[shoulder] + np.array([0.27 * at * x, 0, 0])
    joints[H36M17.index("head")] = joints[H36M17.index("neck")] + np.array([0, -0.13, 0])
    frame = FrameBuilder().build(live_result(joints))
    (messages,) = sent(VmcLink, frame)
    turns = [values[4:] for address, values in messages if address == "/VMC/Ext/Bone/Pos"]
    np.testing.assert_allclose(np.abs(turns), np.tile([0, 0, 0, 1], (len(BONES), 1)), atol=1e-6)


def test_vmc_raised_left_arm_turns_about_minus_z_in_unity():
    """A golden value by hand: from the T-pose (left arm along -x in Unity) straight up is -90 degrees about z."""
    joints = STANDING.copy()
    shoulder = H36M17.index("left_shoulder")
    for at, name in enumerate(("left_elbow", "left_wrist"), start=1):
        joints[H36M17.index(name)] = joints[shoulder] + np.array([0, -0.27 * at, 0])
    (messages,) = sent(VmcLink, FrameBuilder().build(live_result(joints)))
    (arm,) = [values for address, values in messages if values and values[0] == "LeftUpperArm"]
    np.testing.assert_allclose(quaternion_matrix(*arm[4:]), [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], atol=1e-5)


def test_vmc_people_have_ports_of_their_own(rng):
    frame = link_frame(rng, people=3)
    bundles = sent(VmcLink, frame, count=3)
    for messages, person in zip(bundles, frame.people, strict=True):
        places, _ = unity_joints(messages)
        np.testing.assert_allclose(places["Hips"] * (-1, 1, 1), person.root, atol=1e-5)


def test_vmc_sends_a_chosen_person_to_the_first_port(rng):
    frame = link_frame(rng, people=3)
    (messages,) = sent(VmcLink, frame, person=3)
    np.testing.assert_allclose(unity_joints(messages)[0]["Hips"] * (-1, 1, 1), frame.people[2].root, atol=1e-5)


@pytest.mark.parametrize(
    ("quaternion", "degrees"),
    [
        ((1, 0, 0, 0), (0, 0, 0)),
        ((0.5**0.5, 0.5**0.5, 0, 0), (90, 0, 0)),
        ((0.5**0.5, 0, 0.5**0.5, 0), (0, 90, 0)),
        ((0.5**0.5, 0, 0, 0.5**0.5), (0, 0, 90)),
        # By hand: 90 degrees about z, then 90 degrees about y: q = q_y q_z = (1/2, 1/2, 1/2, 1/2).
        ((0.5, 0.5, 0.5, 0.5), (0, 90, 90)),
        # By hand: 45 degrees about z, then 30 about x: q = (c_x, s_x, 0, 0) (c_z, 0, 0, s_z).
        ((0.8923991, 0.2391176, -0.0990458, 0.3696438), (30, 0, 45)),
    ],
)
def test_unity_euler_angles_apply_z_then_x_then_y(quaternion, degrees):
    np.testing.assert_allclose(unity_euler(np.array(quaternion, float)), degrees, atol=1e-4)


def rotation_zxy(x, y, z):
    """Rotation matrix of Unity's Euler angles in degrees, from three elementary rotations."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians([x, y, z])), np.sin(np.radians([x, y, z]))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_y @ about_x @ about_z


def test_vrchat_trackers_are_at_our_joints(rng):
    frame = link_frame(rng)
    (messages,) = sent(VrchatLink, frame)
    (bundle,) = sent(VmcLink, frame)
    places, turns = unity_joints(bundle)
    values = dict(messages)
    assert len(values) == 18
    for at, joint in enumerate(TRACKERS):
        own = f"/tracking/trackers/{'head' if joint == 'head' else at + 1}"
        bone = {joint: bone for bone, joint in BONES.items()}[joint]
        np.testing.assert_allclose(values[f"{own}/position"], places[bone], atol=1e-4)
        np.testing.assert_allclose(rotation_zxy(*values[f"{own}/rotation"]), turns[bone], atol=1e-4)


def test_osc_sends_joints_angles_and_events(rng):
    live = live_result(turned_body(rng), [(0, 0, 4.0), (1, 0, 4.0)], counts={2: Count("squat", 5)})
    frame = FrameBuilder().build(live)
    sockets = receiver()
    link = OscLink(Address("--send osc", "127.0.0.1", sockets[0].getsockname()[1]))
    link.send(frame)
    packets = [packet for packet in (sockets[0].recv(65536) for _ in range(4)) if packet]
    packets = packets[:3]
    link.close()
    sockets[0].close()
    found = [message for packet in packets for message in osc_messages(packet)]
    values = {}
    for address, arguments in found:
        values.setdefault(address, []).append(arguments)
    assert values["/pose/count"] == [[2]]
    assert values["/pose/event/entered"] == [[1, "", 0], [2, "", 0]]
    assert values["/pose/event/repetition"] == [[2, "squat", 5]]
    assert values["/pose/2/repetitions"] == [[5, "squat"]]
    for person in frame.people:
        for name, place in zip(H36M17.names, person.joints, strict=True):
            np.testing.assert_allclose(values[f"/pose/{person.id}/{name}"][0], [*place, 1], atol=1e-5)
        for name, angle in person.angles.items():
            assert values[f"/pose/{person.id}/angle/{name}"][0][0] == pytest.approx(angle, abs=1e-3)
    assert all(len(packet) < 2500 for packet in packets)
