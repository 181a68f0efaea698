"""Every script and notebook of examples/ runs on what its docstring asks for."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pose_datasets.mocap import save_clips
from reader_environments import clean_environment, environment
from short_clips import beginning

from pose import Pipeline

sys.path.append(str(Path(__file__).parent / "datasets"))
from motion import waving_clip

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
pytestmark = pytest.mark.usefixtures("at_hand")


@pytest.fixture(scope="module")
def clip(videos, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("examples") / "clip.mp4"
    return beginning(videos / "squats.mp4", path, 2.4)  # 12 frames


@pytest.fixture(scope="module")
def poses(clip) -> Path:
    return Pipeline.from_preset("fast").process(clip).save(clip.with_name("poses.npz"))


@pytest.fixture
def run(monkeypatch, clip):
    def run_example(name, *words):
        monkeypatch.chdir(clip.parent)
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    return run_example


def test_example_read_poses_npz_runs(run, poses, capsys):
    run("read_poses_npz.py", poses)
    assert "12 frames" in capsys.readouterr().out


def test_example_knee_angle_runs(run, poses, tmp_path):
    run("knee_angle.py", poses, tmp_path / "knee.png")
    assert (tmp_path / "knee.png").read_bytes().startswith(b"\x89PNG")


def test_example_lift_keypoints_runs(run, poses, capsys):
    run("lift_keypoints.py", poses)
    assert capsys.readouterr().out.startswith("12 frames lifted")


def test_example_compare_lifters_runs(run, poses, capsys):
    run("compare_lifters.py", poses, "offline", "offline")
    assert "MPJPE 0.0 mm, P-MPJPE 0.0 mm" in capsys.readouterr().out


def test_example_custom_detector_runs(run, clip, capsys):
    run("custom_detector.py", clip)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert lines[-1].endswith("1 people")


def test_name_of_a_custom_detector_is_recorded(clip, monkeypatch):
    class Nobody:
        name = "nobody"

        def detect(self, images):
            from pose.structures.types import Boxes

            return [Boxes.empty() for _ in images]

    result = Pipeline.from_preset("fast", detector=Nobody()).process(clip)
    assert result.people == ()
    assert result.table.run.settings["detector"] == "nobody"
    assert [model.role for model in result.table.run.models] == ["estimator", "lifter"]


def test_example_live_links_runs(run, clip, capsys):
    run("live_links.py", clip, "osc")
    assert "osc ok" in capsys.readouterr().out


def test_example_live_callback_runs(run, clip, capsys):
    run("live_callback.py", clip)
    assert "pelvis at" in capsys.readouterr().out


RETARGET = """
import runpy, sys
import bpy
from mathutils import Quaternion, Vector

bpy.ops.wm.read_factory_settings(use_empty=True)
for name, length, roll in (("SOURCE", 1.0, 0.0), ("TARGET", 0.7, 1.1)):
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    prefix = "" if name == "TARGET" else "person1_mixamorig:"
    hips, arm = rig.data.edit_bones.new(prefix + "Hips"), rig.data.edit_bones.new(prefix + "Arm")
    hips.head, hips.tail = (0, 0, length), (0, 0, 1.5 * length)
    arm.head, arm.tail, arm.roll, arm.parent = (0, 0, 1.5 * length), (length, 0, 1.5 * length), roll, hips
    bpy.ops.object.mode_set(mode="OBJECT")
scene = bpy.context.scene
scene.frame_start = scene.frame_end = 1
source, target = bpy.data.objects["SOURCE"], bpy.data.objects["TARGET"]
bone = source.pose.bones["person1_mixamorig:Arm"]
bone.rotation_mode = "QUATERNION"
bone.rotation_quaternion = Quaternion((0.3, 1, 0.2), 0.9)
bpy.context.view_layer.update()
runpy.run_path(sys.argv[1])
bpy.context.view_layer.update()
ways = [(pose.tail - pose.head).normalized() for pose in (bone, target.pose.bones["Arm"])]
assert abs(ways[0].x) < 0.99
assert ways[0].angle(ways[1]) < 1e-3, ways
assert abs(target.pose.bones["Hips"].head.z - 0.7) < 1e-5
"""


@pytest.mark.slow
def test_example_retarget_in_blender_runs():
    script = EXAMPLES / "retarget_in_blender.py"
    assert script.name == "retarget_in_blender.py"
    python = environment("bpy") / "bin" / "python"
    words = [python, "-c", RETARGET, str(script)]
    done = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stderr


def test_example_new_attention_runs(run, monkeypatch, capsys):
    from pose.lifting.attention import ATTENTIONS

    monkeypatch.delitem(ATTENTIONS, "mean", raising=False)
    run("new_attention.py")
    assert "lifter with mean attention" in capsys.readouterr().out
    ATTENTIONS.pop("mean")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_example_notebook_shows_plots(path, poses, monkeypatch):
    monkeypatch.chdir(poses.parent)
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    names = {}
    text = path.read_text(encoding="utf-8")
    assert "matplotlib.use" not in text, "Jupyter would show no plot"
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
    assert [len(axes.lines) > 0 for number in plt.get_fignums() for axes in plt.figure(number).axes].count(True)
    plt.close("all")


@pytest.mark.slow
def test_example_train_small_lifter_runs(run, tmp_path, capsys):
    path = tmp_path / "clips.npz"
    save_clips([waving_clip(subject, seconds=3.0) for subject in ("01", "39", "08")], path)
    run("train_small_lifter.py", path, tmp_path / "run", 3)
    assert "validation, detector 2D" in capsys.readouterr().out


def test_example_own_loss_runs(run, tmp_path, capsys):
    path = tmp_path / "clips.npz"
    save_clips([waving_clip(subject, seconds=3.0) for subject in ("01", "39")], path)
    run("own_loss.py", path, tmp_path / "run", 2)
    assert "step 2: " in capsys.readouterr().out
    assert "symmetry" in (tmp_path / "run" / "training.csv").read_text()


@pytest.mark.slow
def test_example_batch_ray_runs(run, clip, tmp_path, capsys):
    pytest.importorskip("ray", reason="the extra [ray] is not installed")
    run("batch_ray.py", clip.parent, tmp_path / "results")
    assert "clip.mp4: 1 people" in capsys.readouterr().out


def test_every_example_has_a_test():
    text = Path(__file__).read_text(encoding="utf-8")
    missing = [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text]
    assert missing == []
