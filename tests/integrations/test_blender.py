"""The Blender extension: its mathematics against ours, its zip, and its operators in headless Blender (`bpy`)."""

import ast
import json
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from pose_fakes import STANDING, run_info, seen_result
from reader_environments import clean_environment, environment

from pose.body import skeleton as ours
from pose.body.tracks import open_selection
from pose.export import export
from pose.live import LiveResult
from pose.live.messages import messages
from pose.live.rigid import RigidBodies
from pose.results import NpzWriter
from pose.structures.rotations import rotate
from pose.structures.skeletons import H36M17

FOLDER = Path(__file__).resolve().parents[2] / "integrations" / "blender"
CHECKS = Path(__file__).with_name("blender_checks.py")
TO_BLENDER = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
BLENDERS = ("bpy", "bpy-previous")  # environments with the two newest versions


def module(name: str, path: Path):
    spec = spec_from_file_location(name, path)
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def moving(count: int = 12) -> np.ndarray:
    """Joints (count, 17, 3) m in camera axes of a body that bends knees and arms and turns, relative to the pelvis."""
    found = np.repeat(STANDING[None].astype(np.float64), count, axis=0)
    for at in range(count):
        angle = at / count
        for name, shift in (
            ("left_knee", (0, 0, -0.2)),
            ("right_elbow", (-0.1, -0.1, -0.1)),
            ("left_wrist", (0.1, -0.3, 0)),
        ):
            found[at, H36M17.index(name)] += angle * np.array(shift)
        turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
        found[at] = found[at] @ turn.T
    return found


@pytest.fixture
def result(tmp_path):
    folder = tmp_path / "result"
    folder.mkdir()
    with NpzWriter(folder / "poses.npz", run_info(H36M17)) as writer:
        for at, joints in enumerate(moving()):
            writer.write(seen_result([(0.1 * at, 0.1, 4.0)], joints.astype(np.float32), at, at / 25))
    return folder


def test_the_skeleton_of_the_extension_is_ours():
    theirs = module("skeleton_of_extension", FOLDER / "pose_run" / "skeleton.py")
    assert (ours.NAMES, ours.PARENTS, H36M17.names) == (theirs.NAMES, theirs.PARENTS, theirs.JOINTS)
    joints = moving(40) * (1, -1, -1)
    body = ours.fit_body([joints])
    offsets = theirs.fit(joints)
    np.testing.assert_allclose(offsets, body.offsets, atol=1e-9)
    local, root = theirs.solve(joints, offsets)
    motion = ours.solve(joints, body)
    np.testing.assert_allclose(root, motion.root)
    expected = np.stack([rotate(motion.quaternions, axis) for axis in np.eye(3)], axis=-1)
    np.testing.assert_allclose(local, expected, atol=1e-7)
    np.testing.assert_allclose(theirs.matrix_of(motion.quaternions), expected, atol=1e-9)


def test_one_command_writes_an_installable_zip(tmp_path):
    build = module("build_of_extension", FOLDER / "build.py").build
    path = build(tmp_path)
    first = path.read_bytes()
    assert build(tmp_path).read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        manifest = tomllib.loads(archive.read("blender_manifest.toml").decode())
        imports = {
            (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or "."
            for name in names if name.endswith(".py")
            for node in ast.walk(ast.parse(archive.read(name)))
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        }  # fmt: skip
    assert {"__init__.py", "live.py", "result.py", "retarget.py", "scene.py", "skeleton.py"} < set(names)
    assert manifest["license"] == ["SPDX:GPL-3.0-or-later"]
    assert path.name == f"{manifest['id']}-{manifest['version']}.zip"
    outside = {name.partition(".")[0] for name in imports} - set(sys.stdlib_module_names)
    assert outside == {"bpy", "mathutils", "numpy"}, "only what Blender contains"


def in_blender(blender, tmp_path, source, way):
    python = environment(blender) / "bin" / "python"
    build = module("build_of_extension", FOLDER / "build.py").build
    package = tmp_path / "extension" / "pose_run"
    package.mkdir(parents=True)
    with zipfile.ZipFile(build(tmp_path)) as archive:
        archive.extractall(package)
    run = subprocess.run(
        [python, CHECKS, package.parent, source, way],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    lines = [line[6:] for line in run.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, run.stderr + run.stdout
    return json.loads(lines[0])


@pytest.mark.slow
@pytest.mark.parametrize("blender", BLENDERS)
def test_import_makes_people_camera_and_scene(result, tmp_path, blender):
    found = in_blender(blender, tmp_path, result, "import")
    assert found["names"] == ["Person 1"]
    assert (found["fps"], found["range"], found["size"]) == (pytest.approx(25), [1, 12], [640, 480])
    joints = moving() + np.array([[0.1 * at, 0.1, 4.0] for at in range(12)])[:, None]
    placed = (joints * (1, -1, -1)).astype(np.float64)
    body = ours.fit_body([placed])
    points, _ = ours.forward_kinematics(body, ours.solve(placed, body))
    np.testing.assert_allclose(found["joints"], points @ TO_BLENDER.T, atol=1e-4)
    for place, forward, up in found["camera"]:  # in the origin, along Blender's y
        np.testing.assert_allclose([place, forward, up], [[0, 0, 0], [0, 1, 0], [0, 0, 1]], atol=1e-6)
    assert found["focal_px"] == pytest.approx(run_info(H36M17).camera.matrix[0, 0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("blender", BLENDERS)
def test_live_messages_pose_an_armature_and_are_recorded(tmp_path, blender):
    bodies, texts = RigidBodies(), []
    for at, joints in enumerate(moving()):
        frame = seen_result([(0.1 * at, 0.1, 4.0)], joints.astype(np.float32), at, at / 30)
        live = LiveResult(np.zeros((480, 640, 3), np.uint8), frame, H36M17, 0.0, 0.01)
        texts += messages(live, bodies)
    texts.append('{"type": "pose", "format": "pose-live", "bones": []}')
    (tmp_path / "messages.json").write_text(json.dumps(texts), encoding="utf-8")
    found = in_blender(blender, tmp_path, tmp_path / "messages.json", "live")
    assert found["frames"] == 6
    sent = json.loads(texts[-2])
    pelvis = np.array(sent["bone_root"]) @ TO_BLENDER.T
    np.testing.assert_allclose(found["last"][0], pelvis, atol=1e-4)
    body = ours.Body(np.array(sent["bone_offsets"]), np.zeros((17, 3)))
    motion = ours.SkeletonMotion(np.array([sent["bone_root"]]), np.array([sent["bone_rotations"]]))
    points, _ = ours.forward_kinematics(body, motion)
    np.testing.assert_allclose(found["last"], points[0] @ TO_BLENDER.T, atol=0.02)  # lengths may differ by 1 cm
    np.testing.assert_allclose(found["recorded"][1], found["last"], atol=1e-4)
    assert found["refused"].startswith("port ")


@pytest.mark.slow
@pytest.mark.parametrize("blender", BLENDERS)
def test_retargeting_gives_the_limbs_our_directions(result, tmp_path, blender):
    found = in_blender(blender, tmp_path, result, "retarget")
    assert len(found["degrees"]) == 12
    for rig, degrees in found["degrees"].items():
        assert degrees < 0.5, rig
    assert "its bones have the names of no known rig" in found["error"]


@pytest.mark.slow
@pytest.mark.parametrize("blender", BLENDERS)
def test_a_wrong_folder_is_one_line_and_changes_nothing(result, tmp_path, blender):
    found = in_blender(blender, tmp_path, result, "errors")
    assert "no such file; choose the folder of a result of pose-run" in found["error"]
    assert found["objects"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("blender", BLENDERS)
def test_characters_are_imported_and_undo_removes_all(result, tmp_path, blender):
    (_,) = export(open_selection(result / "poses.npz"), ["glb"], result, "poses")
    found = in_blender(blender, tmp_path, result, "undo")
    before, after, undone = found["objects"]
    assert (before, undone) == (0, 0)
    assert after >= 4  # the armature of the person, the camera, the character and its mesh
    assert found["meshes"] >= 1
    assert found["version"][:2] >= [5, 2]
