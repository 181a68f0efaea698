"""The skinned character: its file, its shape, its pose, its names, and the GLB that holds it."""

import json

import numpy as np
import pytest
from export_fakes import wave

from pose.body.character.hands import HandRotations, _rest_hand, finger_bones, hands_of, interpolated, twist_of
from pose.body.character.look import SHAPE_NOTE
from pose.body.character.model import body_model
from pose.body.character.posing import joints_of, pose_character, skin
from pose.body.character.rest import make_character
from pose.body.character.shape import fit_shape, lengths_of_body, lengths_of_heads
from pose.body.rigs import bone_names
from pose.body.skeleton import Body, SkeletonMotion, fit_body, joint_positions
from pose.export import export
from pose.networks.weights import Store, sha256_of
from pose.networks.weights.packaged import MODELS, packaged_weights
from pose.structures import rotations
from pose.structures.skeletons import H36M17

BODY = Body(
    np.array(
        [
            (0, 0, 0), (0.1, 0, 0), (0, -0.42, 0), (0, -0.4, 0), (-0.1, 0, 0), (0, -0.42, 0), (0, -0.4, 0),
            (0, 0.25, 0), (0, 0.26, 0), (0, 0.12, 0.03), (0, 0.11, -0.03), (0.17, -0.03, 0), (0.29, 0, 0), (0.25, 0, 0),
            (-0.17, -0.03, 0), (-0.29, 0, 0), (-0.25, 0, 0),
        ]
    ),
    np.zeros((17, 3)),
)  # fmt: skip


def character_of(body: Body):
    model = body_model()
    return make_character(model, fit_shape(model, lengths_of_body(body)), body)


def moving(count: int = 20) -> np.ndarray:
    """(T, 17, 3) m of a body that bends every joint about any axis by up to about 30 degrees."""
    rng = np.random.default_rng(3)
    axis = rotations.unit(rng.standard_normal((count, 17, 3)))
    turns = rotations.about(axis, 0.25 * rng.standard_normal((count, 17)))
    return joint_positions(BODY, SkeletonMotion(rng.standard_normal((count, 3)), turns))


def test_character_file_matches_its_card():
    card = json.loads((MODELS / "body.json").read_text())
    assert sha256_of(MODELS / "body.npz") == card["sha256"]
    assert packaged_weights()["body"].licence == "CC0-1.0"
    assert Store.from_environment().locate("body") == MODELS / "body.npz"
    assert (MODELS / "body.npz").stat().st_size < 10_000_000


def test_the_fit_recovers_the_lengths_of_known_shapes():
    model, rng = body_model(), np.random.default_rng(0)
    away = []
    for _ in range(6):
        phenotypes = rng.uniform(0.25, 0.75, 6)
        wanted = lengths_of_heads(model, model.heads_of(model.coefficients(phenotypes, np.zeros(10))))
        shape = fit_shape(model, wanted)
        away.append(1000 * np.abs(shape.lengths - wanted))
        assert (shape.phenotypes >= 0).all()
        assert (shape.phenotypes <= 1).all()
        own = model.coefficients(phenotypes, np.zeros(10))
        tall = [np.ptp(model.vertices_of(c)[:, 1]) for c in (shape.coefficients, own)]
        assert tall[0] == pytest.approx(tall[1], abs=0.05)
    assert np.median(away) < 2
    assert np.max(away) < 8


def test_joints_of_the_character_are_those_of_the_skeleton():
    points = moving()
    body = fit_body([points])
    character = character_of(body)
    away = 1000 * np.linalg.norm(joints_of(character, pose_character(character, points)) - points, axis=-1)
    limbs = [at for at, name in enumerate(H36M17.names) if name.split("_")[0] in ("left", "right")]
    assert np.median(away, axis=0).max() < 15
    assert np.median(away[:, limbs]) < 3


def test_forward_kinematics_reaches_the_joints():
    points = moving()
    character = character_of(BODY)
    posed = pose_character(character, points)
    whole, heads = posed.quaternions.copy(), np.empty_like(posed.heads)
    heads[:, 0] = posed.root
    for bone, parent in enumerate(character.model.parents[1:], start=1):
        whole[:, bone] = rotations.multiply(whole[:, parent], posed.quaternions[:, bone])
        offset = character.heads[bone] - character.heads[parent]
        heads[:, bone] = heads[:, parent] + rotations.rotate(whole[:, parent], offset)
    np.testing.assert_allclose(heads, posed.heads, atol=1e-9)


def test_the_rest_pose_is_a_t_on_the_floor_and_skins_to_itself():
    character = character_of(BODY)
    names, heads = character.model.index, character.heads
    assert character.vertices[:, 1].min() == pytest.approx(0, abs=1e-9)
    for side, sign in (("Left", 1), ("Right", -1)):
        arm, hand = heads[names(f"{side}Arm")], heads[names(f"{side}Hand")]
        np.testing.assert_allclose(hand - arm, (sign * 0.54, 0, 0), atol=1e-9)
        np.testing.assert_allclose(heads[names(f"{side}Foot")] - heads[names(f"{side}UpLeg")], (0, -0.82, 0), atol=1e-9)
    posed = pose_character(
        character, joint_positions(BODY, SkeletonMotion(np.zeros((1, 3)), np.tile([1.0, 0, 0, 0], (1, 17, 1))))
    )
    posed.heads[:] = heads
    posed.global_quaternions[:] = (1, 0, 0, 0)
    np.testing.assert_allclose(skin(character, posed, 0), character.vertices, atol=1e-9)


def hand_points(character, side: int, turns: dict[str, np.ndarray]) -> np.ndarray:
    """(1, 2, 21, 3) m: one hand of the T-pose whose bones are turned in their parents' frames."""
    model, points = character.model, np.full((1, 2, 21, 3), np.nan)
    name = ("Left", "Right")[side]
    hand = model.index(f"{name}Hand")
    points[0, side, 0] = character.heads[hand]
    _, directions = _rest_hand(character, side)
    whole = {hand: turns.get(f"{name}Hand", rotations.IDENTITY)}
    places = {hand: character.heads[hand]}
    for at, bone_name in enumerate(finger_bones(side)):
        bone = model.index(bone_name)
        parent = int(model.parents[bone])
        places[bone] = places[parent] + rotations.rotate(whole[parent], character.heads[bone] - character.heads[parent])
        whole[bone] = rotations.multiply(whole[parent], turns.get(bone_name, rotations.IDENTITY))
        joint = 4 * (at // 3) + at % 3 + 1
        points[0, side, joint] = places[bone]
        points[0, side, joint + 1] = places[bone] + 0.02 * rotations.rotate(whole[bone], directions[at])
    return points


@pytest.mark.parametrize("side", [0, 1])
def test_finger_and_forearm_rotations_follow_the_hand_points(side: int):
    character = character_of(BODY)
    name = ("Left", "Right")[side]
    up = rotations.about(np.array([1.0, 0, 0]), np.array(-1.2))  # the thumb goes up
    bent = rotations.about(np.array([0, 0, -1.0 if side == 0 else 1.0]), np.array(0.7))  # a finger closes
    points = hand_points(character, side, {f"{name}Hand": up, f"{name}HandIndex2": bent})
    body = joint_positions(BODY, SkeletonMotion(np.zeros((1, 3)), np.tile([1.0, 0, 0, 0], (1, 17, 1))))
    posed = pose_character(character, body, hands_of(character, points))
    index = character.model.index
    for bone, turn in ((f"{name}Hand", up), (f"{name}HandIndex1", up)):
        np.testing.assert_allclose(np.abs(posed.global_quaternions[0, index(bone)] @ turn), 1, atol=1e-9)
    _, rest = _rest_hand(character, side)
    directions = [rotations.rotate(turn, rest[4]) for turn in (posed.quaternions[0, index(f"{name}HandIndex2")], bent)]
    np.testing.assert_allclose(*directions, atol=1e-9)
    without = pose_character(character, body)
    forearms = [one.global_quaternions[0, index(f"{name}ForeArm")] for one in (without, posed)]
    bare = rotations.inverse(forearms[0])
    twist = twist_of(rotations.multiply(bare, up[None]))
    half = rotations.about(np.array([1.0, 0, 0]), twist[0] / 2)
    np.testing.assert_allclose(np.abs(rotations.multiply(bare, forearms[1]) @ half), 1, atol=1e-9)
    np.testing.assert_allclose(joints_of(character, posed), joints_of(character, without), atol=1e-9)
    other = index(f"{('Right', 'Left')[side]}Hand")
    np.testing.assert_array_equal(posed.global_quaternions[:, other], without.global_quaternions[:, other])


def about_bone(quaternions, axis):
    """(T,) twist about the rest direction of a bone, rad."""
    return 2 * np.arctan2((quaternions[:, 1:] * axis).sum(axis=1), quaternions[:, 0])


@pytest.mark.parametrize("seed", range(4))
def test_twists_along_a_chain_sum_to_the_orientation_of_its_last_segment(seed):
    """Whatever the limbs do, hand and foot are as observed; forearm and shank take half of the twist to them."""
    rng = np.random.default_rng(seed)
    character, count = character_of(BODY), 40
    body = joint_positions(BODY, wave(count, rng))
    times = np.arange(count) / 30
    bare = pose_character(character, body, times=times)
    index, X, Y = character.model.index, *np.eye(3)[:2]
    twists = np.cumsum(rng.normal(0, 0.15, (4, count)), axis=1).clip(-1.2, 1.2)
    ends = {
        bone: bare.global_quaternions[:, index(bone)] for bone in ("LeftHand", "RightHand", "LeftFoot", "RightFoot")
    }
    wanted = {
        bone: rotations.multiply(whole, rotations.about(X if "Hand" in bone else Y, twist))
        for (bone, whole), twist in zip(ends.items(), twists, strict=True)
    }
    fingers = np.tile(rotations.IDENTITY, (count, 2, 15, 1))
    hands = HandRotations(np.stack([wanted["LeftHand"], wanted["RightHand"]], axis=1), fingers)
    feet = np.stack(
        [np.stack([rotations.rotate(wanted[f"{s}Foot"], axis) for axis in (np.eye(3)[2], Y)], axis=1)
         for s in ("Left", "Right")], axis=1,
    )  # fmt: skip
    posed = pose_character(character, body, hands, feet=feet, times=times)
    chains = (("Arm", "ForeArm", "Hand", X), ("UpLeg", "Leg", "Foot", Y))
    for bone, twist in zip(wanted, twists, strict=True):
        side = "Left" if bone.startswith("Left") else "Right"
        upper, lower, _, axis = chains["Foot" in bone]
        np.testing.assert_allclose(
            rotations.angle_between(posed.global_quaternions[:, index(bone)], wanted[bone]), 0, atol=1e-6
        )
        given = rotations.multiply(
            rotations.inverse(bare.global_quaternions[:, index(f"{side}{lower}")]),
            posed.global_quaternions[:, index(f"{side}{lower}")],
        )
        np.testing.assert_allclose(about_bone(given, axis), twist / 2, atol=1e-6, err_msg="the lower bone takes half")
        np.testing.assert_allclose(about_bone(posed.quaternions[:, index(bone)], axis), twist / 2, atol=1e-6)
        same = [one.global_quaternions[:, index(f"{side}{upper}")] for one in (bare, posed)]
        np.testing.assert_allclose(
            rotations.angle_between(*same), 0, atol=1e-6, err_msg="the joints show the upper one"
        )
    np.testing.assert_allclose(joints_of(character, posed), joints_of(character, bare), atol=1e-9)


def test_face_rotates_the_head_without_moving_joints():
    character = character_of(BODY)
    points = np.repeat(
        joint_positions(BODY, SkeletonMotion(np.zeros((1, 3)), np.tile([1.0, 0, 0, 0], (1, 17, 1)))), 3, axis=0
    )
    angle = np.radians(50)
    faces = np.array([(np.sin(angle), 0, np.cos(angle)), (np.nan,) * 3, (-np.sin(angle), 0, np.cos(angle))])
    posed, without = (pose_character(character, points, faces=one) for one in (faces, None))
    head, neck = character.model.index("Head"), character.model.index("Neck")
    forward = rotations.rotate(posed.global_quaternions[:, head], np.array([0, 0, 1.0]))
    yaw = np.degrees(np.arctan2(forward[:, 0], forward[:, 2]))
    np.testing.assert_allclose(yaw, [50, 0, -50], atol=6)  # the head leans a little, and turns about its own axis
    half = rotations.angle_between(posed.global_quaternions[:, neck], without.global_quaternions[:, neck])
    assert np.degrees(half[0]) == pytest.approx(25, abs=5)
    at = H36M17.index("head")
    away = [np.linalg.norm(joints_of(character, one)[:, at] - points[:, at], axis=1) for one in (posed, without)]
    np.testing.assert_allclose(away[0], away[1], atol=0.015)


def test_unseen_hand_interpolates_between_observations():
    turns = rotations.about(np.array([1.0, 0, 0]), np.array([0.0, 0.2, 9.0, 0.6, 9.0]))
    given = interpolated(turns, np.array([False, True, False, True, False]))
    expected = rotations.about(np.array([1.0, 0, 0]), np.array([0.2, 0.2, 0.4, 0.6, 0.6]))
    np.testing.assert_allclose(given, expected, atol=1e-9)
    np.testing.assert_array_equal(interpolated(turns, np.zeros(5, bool)), np.tile(rotations.IDENTITY, (5, 1)))


@pytest.mark.parametrize(
    ("rig", "names"),
    [
        ("mixamo", {"mixamorig:Hips", "mixamorig:LeftForeArm", "mixamorig:RightHandThumb3"}),
        ("unreal", {"pelvis", "lowerarm_l", "thumb_03_r", "ball_l"}),
        ("rigify", {"spine", "forearm.L", "thumb.03.R", "f_index.01.L"}),
        ("vrm", {"hips", "leftLowerArm", "rightThumbDistal", "leftLittleProximal", "upperChest"}),
        ("plain", {"pelvis", "left_hip", "left_elbow", "right_thumb_3"}),
    ],
)
def test_every_rig_names_every_bone_once(rig: str, names: set[str]):
    given = bone_names(rig)
    assert sorted(given) == sorted(body_model().names)
    assert len(set(given.values())) == 52
    assert names <= set(given.values())


def test_glb_holds_a_skinned_body_for_each_person(recorded, tmp_path):
    pygltflib = pytest.importorskip("pygltflib")
    recording, _ = recorded(40, 2)
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    gltf = pygltflib.GLTF2().load(str(made.path))
    assert len(gltf.skins) == len(gltf.meshes) == 2
    assert gltf.nodes[gltf.skins[1].joints[0]].name == "person2_mixamorig:Hips"
    assert [note for note in made.notes if "average adult" in note] == [SHAPE_NOTE]
    assert "character of" in made.notes[1]
    for skin_, mesh in zip(gltf.skins, gltf.meshes, strict=True):
        (part,) = mesh.primitives
        weights, bones = (values_of(gltf, at) for at in (part.attributes.WEIGHTS_0, part.attributes.JOINTS_0))
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
        assert bones.max() < len(skin_.joints) == 52
        np.testing.assert_allclose(np.linalg.norm(values_of(gltf, part.attributes.NORMAL), axis=1), 1, atol=1e-5)
        assert values_of(gltf, part.indices).max() < len(weights)
        inverse = values_of(gltf, skin_.inverseBindMatrices).reshape(-1, 4, 4).swapaxes(1, 2)
        heads = np.linalg.inv(inverse)[:, :3, 3]
        np.testing.assert_allclose(heads[0], gltf.nodes[skin_.joints[0]].translation, atol=1e-6)
        assert values_of(gltf, part.attributes.POSITION)[:, 1].min() == pytest.approx(0, abs=1e-6)


def values_of(gltf, accessor: int) -> np.ndarray:
    a = gltf.accessors[accessor]
    kind = {5126: "<f4", 5123: "<u2", 5121: "u1"}[a.componentType]
    width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}[a.type]
    start = gltf.bufferViews[a.bufferView].byteOffset
    return np.frombuffer(gltf.binary_blob(), kind, a.count * width, start).reshape(a.count, -1).astype(float)
