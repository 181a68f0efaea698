"""Characters as FBX, through a stand-in for Blender and through `bpy`, and as USD, read by Pixar's library."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from glb_reader import node_places

from pose.body.character.look import CharacterMotion, character_of
from pose.body.character.posing import pose_character, skin
from pose.body.soles import smooth_feet
from pose.errors import PoseError
from pose.export import blender as blender_conversion
from pose.export import check_formats, export
from pose.structures.rotations import unit
from pose.structures.skeletons import H36M17


@pytest.fixture
def blender(tmp_path, monkeypatch):
    """blender(text) puts a program of that name on the PATH: a Python script, whose arguments are `args`."""

    def make(text: str):
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "blender"
        program.write_text(f"#!{sys.executable}\nimport pathlib, sys\nargs = sys.argv\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(blender_conversion, "find_spec", lambda name: None)

    return make


WRITES = """
source, target, rate, start, end = args[args.index("--") + 1:]
assert pathlib.Path(source).read_bytes()[:4] == b"glTF"
pathlib.Path(target).write_text(f"{rate} {start} {end}")
"""


@pytest.mark.skipif(os.name == "nt", reason="a script is no program there")
def test_blender_script_gets_rate_and_visibility(recorded, tmp_path, blender):
    blender(WRITES)
    present = np.ones((2, 40), bool)
    present[1, :15] = False
    recording, _ = recorded(40, 2, present=present)
    (made,) = export(recording, ["fbx"], tmp_path, "poses", [2])
    assert made.path.name == "poses-person2.fbx"
    assert made.path.read_text() == "30.000000 0.500000 1.300000"
    assert "character of" in str(made)


@pytest.mark.skipif(os.name == "nt", reason="a script is no program there")
def test_blender_failure_is_reported(recorded, tmp_path, blender):
    blender("sys.exit('no such operator')")
    recording, _ = recorded(10)
    with pytest.raises(PoseError, match="Blender failed: no such operator"):
        list(export(recording, ["fbx"], tmp_path, "poses"))
    assert not list(tmp_path.glob("*.fbx"))


def test_missing_blender_names_the_install_command(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(blender_conversion, "find_spec", lambda name: None)
    with pytest.raises(PoseError, match=r"^FBX needs Blender: pip install 'pose-run\[fbx\]'") as error:
        check_formats(["fbx"], "--to")
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("bpy") is None, reason="needs bpy")
def test_blender_writes_fbx(recorded, tmp_path):
    recording, _ = recorded(10)
    (made,) = export(recording, ["fbx"], tmp_path, "poses")
    assert made.path.read_bytes().startswith(b"Kaydara FBX Binary")
    (scene,) = export(recording, ["glb"], tmp_path, "poses")
    script = (
        "import bpy, json, sys\n"
        "for path in sys.argv[1:]:\n"
        "    bpy.ops.wm.read_factory_settings(use_empty=True)\n"
        "    (bpy.ops.import_scene.fbx if path.endswith('fbx') else bpy.ops.import_scene.gltf)(filepath=path)\n"
        "    found = [one for one in bpy.data.objects if one.type == 'CAMERA']\n"
        "    look = [list(-one.matrix_world.col[2].xyz.normalized()) for one in found]\n"
        "    print('RESULT' + json.dumps([[list(one.matrix_world.translation) for one in found], look]))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(made.path), str(scene.path)], capture_output=True, text=True, check=True
    )
    fbx_camera, glb_camera = (json.loads(line[6:]) for line in run.stdout.splitlines() if line.startswith("RESULT"))
    assert len(fbx_camera[0]) == len(glb_camera[0]) == 1
    np.testing.assert_allclose(fbx_camera, glb_camera, atol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("bpy") is None and shutil.which("blender") is None, reason="needs bpy or Blender")
def test_a_character_in_fbx_moves_as_the_person(recorded, tmp_path):
    """A file that Blender wrote, with its own bone axes and units."""
    recording, places = recorded(10)
    recording.foot_lock = False
    (made,) = export(recording, ["fbx"], tmp_path, "mine")
    recording.character = made.path
    (moved,) = export(recording, ["glb"], tmp_path, "poses")
    assert "bones by name" in str(moved)
    found = node_places(moved.path)[0]
    for start, end, bones in (
        ("left_elbow", "left_wrist", ("ForeArm", "Hand")),
        ("left_hip", "left_knee", ("UpLeg", "Leg")),
    ):
        wanted = places[0][:, H36M17.index(end)] - places[0][:, H36M17.index(start)]
        a, b = (next(value for name, value in found.items() if name.endswith(f"Left{bone}")) for bone in bones)
        cosine = (unit(wanted) * unit(b - a)).sum(axis=-1)
        assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 3


def test_usd_skins_every_vertex_as_the_character_does(recorded, tmp_path):
    usd = pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom, UsdSkel

    present = np.ones((2, 40), bool)
    present[1, :15] = False
    recording, _ = recorded(40, 2, present=present)
    (made,) = export(recording, ["usd"], tmp_path, "poses")
    stage = usd.Stage.Open(str(made.path))
    assert UsdGeom.GetStageUpAxis(stage) == "Y"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1
    track = recording.track(2, recording.timeline)
    character = character_of(track)
    (span,) = track.spans()
    feet = smooth_feet(track, np.flatnonzero(span.known), track.space)
    posed = pose_character(character, recording.space.to_file(span.joints), feet=feet, times=span.times[span.known])
    assert CharacterMotion(track, character, track.space).hands is False
    root = UsdSkel.Root(stage.GetPrimAtPath("/World/person2"))
    shown = UsdGeom.Imageable(root).GetVisibilityAttr()
    assert [shown.Get(time) for time in (14, 16)] == ["invisible", "inherited"]
    cache = UsdSkel.Cache()
    cache.Populate(root, usd.PrimDefaultPredicate)
    mesh = stage.GetPrimAtPath("/World/person2/body")
    bones = cache.GetSkelQuery(UsdSkel.Skeleton(stage.GetPrimAtPath("/World/person2/skeleton")))
    for frame in (0, 13):
        points = UsdGeom.Mesh(mesh).GetPointsAttr().Get()
        cache.GetSkinningQuery(mesh).ComputeSkinnedPoints(
            bones.ComputeSkinningTransforms(frame + 15), points, frame + 15
        )
        np.testing.assert_allclose(np.array(points), skin(character, posed, frame), atol=1e-4)
