"""Motion on the user's own character: by its bone names, in the directions of the person's joints, on the floor."""

import json

import numpy as np
import pytest
from glb_reader import Glb, node_places
from mutations import damaged, quick_and_long, try_mutations
from pose_apps.convert import main
from rig_files import BONES, VRM_NAMES, rigged

from pose.body.character.bone_map import bones_by_name
from pose.body.character.look import character_of
from pose.body.character.retarget import Retargeting
from pose.body.rigs import bone_names
from pose.body.skeleton import NAMES, SkeletonMotion, joint_positions
from pose.body.tracks import open_selection
from pose.errors import PoseError
from pose.export import export
from pose.export.gltf_file import read_character
from pose.structures import rotations
from pose.structures.skeletons import H36M17
from pose.world.frame import FEET, World, rotation_of

ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
PLAIN = {name: name for name in BONES}
SEGMENTS = {
    "Arm": ("shoulder", "elbow"), "ForeArm": ("elbow", "wrist"), "UpLeg": ("hip", "knee"), "Leg": ("knee", "ankle")
}  # fmt: skip
ENDS = {"Arm": "ForeArm", "ForeArm": "Hand", "UpLeg": "Leg", "Leg": "Foot"}


def angles(first, second):
    """Angles (T,) in degrees between vectors."""
    cosine = (rotations.unit(first) * rotations.unit(second)).sum(axis=-1)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def check_directions(found, names, joints, most=1.0):
    """The limbs point where those of the joints (T, 17, 3) point, and the pelvis lies across as theirs."""
    for side in ("Left", "Right"):
        for bone, (start, end) in SEGMENTS.items():
            wanted = (
                joints[:, H36M17.index(f"{side.lower()}_{end}")] - joints[:, H36M17.index(f"{side.lower()}_{start}")]
            )
            got = found[names[f"{side}{ENDS[bone]}"]] - found[names[f"{side}{bone}"]]
            assert angles(got, wanted).max() < most, (side, bone)
    across = joints[:, H36M17.index("left_hip")] - joints[:, H36M17.index("right_hip")]
    assert angles(found[names["LeftUpLeg"]] - found[names["RightUpLeg"]], across).max() < 0.1


@pytest.mark.parametrize(
    ("names", "look"),
    [
        (bone_names("mixamo"), {"unit": 100.0}),
        (bone_names("unreal"), {"a_pose": 45.0, "unit": 100.0}),
        (bone_names("rigify"), {"a_pose": 35.0, "size": 0.6}),
        (bone_names("vrm"), {"axes": False, "soles": False}),
        ({name: f"bone {at}" for at, name in enumerate(BONES)}, {"vrm": 1, "a_pose": 20.0}),
        ({name: f"bone {at}" for at, name in enumerate(BONES)}, {"vrm": 0, "facing": 180.0}),
        (PLAIN, {"posed": True, "facing": 70.0}),
    ],
    ids=["mixamo", "unreal", "rigify", "vrm names", "vrm 1", "vrm 0", "posed nodes"],
)
def test_limbs_point_where_those_of_the_person_do(recorded, tmp_path, names, look):
    recording, joints = recorded(40)
    recording.character = rigged(tmp_path / "mine.glb", names, **look)
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    found, _, glb = node_places(made.path)
    check_directions(found, names, joints[0])
    assert "mine.glb moves as each person" in str(made)
    assert len(glb.gltf.skins) == 1
    size, thigh = look.get("size", 1.0), found[names["LeftLeg"]] - found[names["LeftUpLeg"]]
    own = size * np.linalg.norm(np.subtract(BONES["LeftLeg"][1], BONES["LeftUpLeg"][1]))
    np.testing.assert_allclose(np.linalg.norm(thigh, axis=1), own, rtol=1e-3, err_msg="lengths are the character's")


@pytest.mark.parametrize("size", [0.6, 1.3])
def test_soles_stand_on_the_floor_and_do_not_slide(save, body, tmp_path, size):
    """A person whose ankles wander by centimetres although the feet stand."""
    turns = np.tile(rotations.IDENTITY, (60, 17, 1))
    for side in ("left", "right"):
        for joint, share in (("hip", -0.5), ("knee", 1.0), ("ankle", -0.5)):
            bend = share * (0.6 + 0.4 * np.sin(np.arange(60) / 9))
            turns[:, NAMES.index(f"{side}_{joint}")] = rotations.about(np.eye(3)[0], bend)
    root = np.zeros((60, 3))
    joints = joint_positions(body, SkeletonMotion(root, turns))
    root[:, 1] = 0.11 - joints[:, ANKLES, 1].mean(axis=1)
    root[:, [0, 2]] = -joints[:, ANKLES].mean(axis=1)[:, [0, 2]] + 0.04 * np.sin(np.arange(60) / 5)[:, None] + (0, -4)
    joints = joint_positions(body, SkeletonMotion(root, turns))
    world = World(rotation_of(np.array([0.0, -1, 0])), 0.0, FEET, 1.0)
    recording = open_selection(save(joints[None], world=world, contacts=np.ones((60, 2))))
    recording.character = rigged(tmp_path / "mine.glb", PLAIN, size=size, a_pose=30.0)
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    _, matrices, glb = node_places(made.path)
    skin, primitive = glb.gltf.skins[0], glb.gltf.meshes[0].primitives[0]
    bound = glb.values(skin.inverseBindMatrices).reshape(-1, 4, 4).swapaxes(1, 2)
    points = np.c_[glb.values(primitive.attributes.POSITION), np.ones(8)]
    for side, own in (("Left", points[:4]), ("Right", points[4:])):
        foot = [glb.gltf.nodes[joint].name for joint in skin.joints].index(f"{side}Foot")
        sole = np.einsum("tij,sj->tsi", matrices[f"{side}Foot"] @ bound[foot], own)[..., :3]
        assert np.abs(sole[..., 1].min(axis=1)).max() < 0.01
        assert np.linalg.norm(np.diff(sole[..., [0, 2]].mean(axis=1), axis=0), axis=1).max() * 30 < 0.02
    recording.foot_lock = False
    (free,) = export(recording, ["glb"], tmp_path, "free")
    check_directions(node_places(free.path)[0], PLAIN, joints, most=4.0)  # straight arms keep a bend of 6 degrees


def test_fingers_and_head_follow_where_they_are_known(recorded, tmp_path):
    recording, _ = recorded(20)
    own = rigged(tmp_path / "mine.vrm", PLAIN, a_pose=40.0)
    rig = read_character(own).rig
    track = recording.track(1, recording.timeline)
    character = character_of(track)
    retargeting = Retargeting(character, rig, hands=True)
    turns = np.tile(rotations.IDENTITY, (20, len(character.model.names), 1))
    bent = character.model.index("LeftHandIndex1")
    bones = [character.model.index(name) for name in ("LeftHandIndex1", "LeftHandIndex2", "LeftHandIndex3")]
    turns[:, bones] = rotations.about(np.array([0.0, 0, -1]), np.radians(60))
    head = character.model.index("Head")
    turns[:, head] = rotations.about(np.eye(3)[1], np.radians(40))
    zero = np.zeros((20, 3))
    posed = retargeting.apply(zero, turns, zero + np.array([0, 0.5, 0]), None, np.arange(20) / 30, np.zeros(3))
    finger = posed.heads[:, rig.bones["LeftHandIndex2"]] - posed.heads[:, rig.bones["LeftHandIndex1"]]
    ours = character.heads[bent + 1] - character.heads[bent]
    assert angles(finger, rotations.rotate(turns[:, bent], ours)).max() < 0.1
    turned = turn_of(posed, rig, "Head")
    assert angles(rotations.rotate(turned, np.eye(3)[2]), rotations.rotate(turns[:, head], np.eye(3)[2])).max() < 0.1


def turn_of(posed, rig, bone):
    """(T, 4) rotation of a bone from its rest pose, in the file's axes, by those of its parents."""
    node, path = rig.bones[bone], []
    while node >= 0:
        path.append(node)
        node = rig.parents[node]
    whole = np.tile(rotations.IDENTITY, (len(posed.quaternions), 1))
    for node in path[::-1]:
        local = posed.quaternions[:, posed.moving.index(node)] if node in posed.moving else rig.quaternions[node]
        whole = rotations.multiply(whole, local)
    return rotations.multiply(whole, rotations.inverse(rig.rest[rig.bones[bone]]))


def test_several_people_are_copies_with_bones_of_their_own(recorded, tmp_path):
    present = np.ones((2, 40), bool)
    present[1, :15] = False
    recording, joints = recorded(40, 2, present=present)
    recording.character = rigged(tmp_path / "mine.vrm", PLAIN, vrm=1)
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    found, _, glb = node_places(made.path, animation=1)
    check_directions({name.removeprefix("person1_"): at for name, at in found.items()}, PLAIN, joints[0])
    names = [node.name for node in glb.gltf.nodes]
    assert len(set(names)) == len(names)
    assert [one.name for one in glb.gltf.animations] == ["all", "person1", "person2"]
    assert [skin.joints[0] for skin in glb.gltf.skins] == [1, 1 + len(BONES) + 2]
    assert glb.gltf.extensions == {}
    assert "without VRMC_vrm" in str(made)
    (alone,) = export(recording, ["glb"], tmp_path, "alone", [2])
    kept = Glb(alone.path).gltf
    hips = kept.extensions["VRMC_vrm"]["humanoid"]["humanBones"]["hips"]["node"]
    assert kept.nodes[hips].name == "Hips"
    scales = [c for c in kept.animations[0].channels if c.target.path == "scale"]
    assert len(scales) == 1, "hidden before the person comes"


def test_a_table_names_bones_that_no_one_knows(recorded, tmp_path, capsys):
    _, joints = recorded(10)
    odd = {name: f"x{at}" for at, name in enumerate(BONES)}
    character = rigged(tmp_path / "mine.glb", odd)
    words = [str(tmp_path / "poses.npz"), "--to", "glb", "--character", str(character), "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "no bone found for hips, leftUpperArm" in capsys.readouterr().err
    table = tmp_path / "bones.json"
    table.write_text(json.dumps({key: odd[own] for key, own in VRM_NAMES.items()}))
    assert main([*words, "--bones", str(table), "--quiet"]) == 0
    check_directions(node_places(tmp_path / "out" / "poses.glb")[0], odd, joints[0])
    for content, message in (
        ('{"hip": "x0"}', "'hip' is not a bone of VRM 1.0"), ('{"hips": "y"}', "no bone 'y'; it has"),
        ("[]", "an object"), ("{", "not JSON"),
    ):  # fmt: skip
        table.write_text(content)
        assert main([*words, "--bones", str(table), "--overwrite"]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--character", "missing.glb"], "no such file"),
        (["--bones", "{character}"], "--bones: names the bones of --character"),
        (["--character", "{poses}"], "expected a file that ends with .glb, .vrm, .fbx"),
        (["--character", "{character}", "--rig", "unreal"], "--rig: names the bones of our own"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(recorded, tmp_path, capsys, words, message):
    recorded(5)
    files = {"poses": tmp_path / "poses.npz", "character": rigged(tmp_path / "mine.glb", PLAIN)}
    words = [word.format(**files) for word in words]
    assert main([str(files["poses"]), "--to", "glb", "--out", str(tmp_path / "out"), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("mixamorig7:RightHandThumb2", "RightHandThumb2"), ("DEF-upper_arm.L", "LeftArm"), ("Bip01 R Calf", "RightLeg"),
        ("DEF-upper_arm.L.001", None), ("upperarm_twist_01_l", None), ("index_metacarpal_r", None),
        ("J_Bip_L_LowerArm", "LeftForeArm"), ("J_Bip_C_Hips", "Hips"), ("index_02_r", "RightHandIndex2"),
        ("LeftHandIndex4", None), ("f_pinky.03.R", "RightHandPinky3"), ("left_elbow", "LeftForeArm"),
        ("forearmL", "LeftForeArm"), ("Left ankle", "LeftFoot"), ("leftLittleDistal", "LeftHandPinky3"),
    ],
)  # fmt: skip
def test_names_of_bones_are_recognised(name, own):
    assert bones_by_name([name], [0]) == ({} if own is None else {own: 0})


@quick_and_long(10, 3000)
def test_damaged_characters_end_in_one_line(tmp_path_factory, examples):
    folder = tmp_path_factory.mktemp("damaged")
    whole = rigged(folder / "mine.glb", PLAIN, vrm=1).read_bytes()

    def check(data):
        (folder / "other.glb").write_bytes(damaged(data, whole))
        problem = ""
        try:
            read_character(folder / "other.glb")
        except PoseError as error:
            problem = str(error)
        assert "\n" not in problem

    try_mutations(check, examples)
