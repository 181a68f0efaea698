"""Files read by Blender, OpenSim, py-c3d, pybvh, three.js, three-vrm and the validator of Khronos.

Each lives in an environment of its own, `$POSE_READERS/NAME` (`.ci/nightly` makes them). Where one is missing its
test is skipped and says so.
"""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from export_fakes import wave
from glb_reader import node_places
from link_fakes import link_frame
from reader_environments import clean_environment, environment
from rig_files import BONES, VRM_NAMES, rigged

from pose.body.motions import AnimatedSkeleton
from pose.body.rigs import RIGS, STICKS
from pose.body.skeleton import NAMES, ORDER, joint_positions
from pose.body.tracks import open_selection
from pose.errors import PoseError
from pose.export import export
from pose.export.opensim_setup import MODEL
from pose.live.links import vmc
from pose.structures.skeletons import H36M17

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "readers"
GAPS = np.ones((2, 90), bool)
GAPS[0, :10] = GAPS[0, 30:36] = False


def read_by(name, script, *words):
    """What a script prints after RESULT, run by the Python that has the package `name`."""
    python = environment(name) / "bin" / "python"
    call = [python, SCRIPTS / script, *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, env=clean_environment(), timeout=300)
    answers = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert answers, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(answers[0].removeprefix("RESULT"))


@pytest.fixture
def files(recorded, tmp_path):
    """files(*formats) -> what was written, and the joints that went in (P, T, 17, 3)."""

    def make(*formats, present=None, people=1, rig=RIGS[0]):
        recording, places = recorded(90, people, present=present)
        recording.rig = rig
        made = [one.path for one in export(recording, list(formats), tmp_path, "poses")]
        return made, places, recording

    return make


def check_heads(person, expected, frames, offset):
    """The bones' heads, within 1 mm."""
    for frame, heads in zip(frames, person["heads"], strict=True):
        assert set(heads) == set(NAMES)
        got = np.array([heads[name] for name in NAMES])
        np.testing.assert_allclose(got, expected[round(frame) - offset], atol=1e-3)


def test_blender_imports_the_bvh(files):
    (path,), places, _ = files("bvh")
    read = read_by("bpy", "blender.py", path, 0.01)
    assert (read["first"], read["last"], read["fps"]) == (1, 90, 30)
    check_heads(read["people"][0], places[0][:, ORDER], read["frames"], 1)


def test_blender_imports_all_people_of_the_glb(files):
    (path,), places, _ = files("glb", people=2, rig=STICKS)
    read = read_by("bpy", "blender.py", path, 1, 30)
    assert (read["first"], read["last"]) == (0, 89)
    assert [person["name"] for person in read["people"]] == ["person1", "person2"]
    for person, joints in zip(read["people"], places, strict=True):
        check_heads(person, joints[:, ORDER], read["frames"], 0)


@pytest.mark.parametrize("rig", RIGS)
def test_glb_validator_reports_no_issue(files, rig):
    (path,), _, _ = files("glb", people=2, present=GAPS, rig=rig)
    report = validated(path)
    assert report["issues"]["messages"] == []
    assert report["info"]["animationCount"] == 3


@pytest.mark.parametrize("people", [1, 2])
def test_glb_validator_finds_nothing_new_in_the_users_character(recorded, tmp_path, people):
    recording, _ = recorded(30, people)
    recording.character = rigged(tmp_path / "mine.vrm", {name: name for name in BONES}, vrm=1, unit=100.0)
    before = {issue["code"] for issue in validated(recording.character)["issues"]["messages"]}
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    report = validated(made.path)
    assert {issue["code"] for issue in report["issues"]["messages"]} <= before
    assert report["issues"]["numErrors"] == 0


def test_vrm_reader_moves_the_humanoid(recorded, tmp_path):
    """three-vrm finds the bones that the file's extension names, where forward kinematics puts them."""
    recording, _ = recorded(61)
    odd = {name: f"bone {at}" for at, name in enumerate(BONES)}
    recording.character = rigged(tmp_path / "mine.vrm", odd, vrm=1, a_pose=30.0, unit=100.0)
    (made,) = export(recording, ["glb"], tmp_path, "poses")
    call = ["node", SCRIPTS / "three.mjs", environment("three-vrm"), made.path, "1"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True)
    humanoid = json.loads(done.stdout.partition("RESULT")[2])["humanoid"]
    places = node_places(made.path)[0]
    assert {"hips", "leftUpperArm", "rightFoot", "leftIndexProximal"} <= set(humanoid)
    for name, at in humanoid.items():
        np.testing.assert_allclose(at, places[odd[VRM_NAMES[name]]][30], atol=1e-3)


def test_vmc_moves_an_avatar_of_three_vrm(rng, tmp_path):
    """Limbs of an avatar with other proportions point where ours do, without what is specific to three-vrm."""
    (person,) = link_frame(rng).people
    avatar = rigged(tmp_path / "avatar.vrm", {name: name for name in BONES}, vrm=1, size=0.6)
    bones = {values[0]: values[4:] for address, values in vmc.messages(person, 0.0) if address == "/VMC/Ext/Bone/Pos"}
    # three.js is right-handed: x is mirrored. Names of VRM begin with a small letter.
    pose = {name[0].lower() + name[1:]: [x, -y, -z, w] for name, (x, y, z, w) in bones.items()}
    call = ["node", SCRIPTS / "three.mjs", environment("three-vrm"), avatar, "0", json.dumps(pose)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True)
    places = json.loads(done.stdout.partition("RESULT")[2])["humanoid"]
    for side in ("left", "right"):
        for begin, end, joint, next_joint in (
            ("UpperArm", "LowerArm", "shoulder", "elbow"), ("LowerArm", "Hand", "elbow", "wrist"),
            ("UpperLeg", "LowerLeg", "hip", "knee"), ("LowerLeg", "Foot", "knee", "ankle"),
        ):  # fmt: skip
            theirs = np.subtract(places[f"{side}{end}"], places[f"{side}{begin}"])
            ours = np.subtract(*(person.joints[H36M17.index(f"{side}_{name}")] for name in (next_joint, joint)))
            cosine = theirs @ ours / np.linalg.norm(theirs) / np.linalg.norm(ours)
            # Knees and elbows of the avatar lie off the straight line in its T-pose: up to 3.6 degrees.
            assert cosine > np.cos(np.radians(3.7)), (side, begin)


def validated(path):
    """The report of Khronos' validator."""
    module = environment("gltf-validator") / "node_modules" / "gltf-validator"
    script = (
        "const v=require(process.argv[1]),fs=require('fs');"
        "v.validateBytes(new Uint8Array(fs.readFileSync(process.argv[2]))).then(r=>console.log(JSON.stringify(r)))"
    )
    done = subprocess.run(["node", "-e", script, module, path], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("rig", RIGS)
def test_three_js_moves_two_people_with_bones_of_their_own(files, rig):
    """three.js finds bones by name: of two people with the same names only one would move."""
    (path,), places, _ = files("glb", people=2, rig=rig)
    call = ["node", SCRIPTS / "three.mjs", environment("three"), path, "1"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True)
    skins = json.loads(done.stdout.partition("RESULT")[2])["skins"]
    names = [bone for skin in skins for bone in skin["bones"]]
    assert len(skins) == 2
    assert len(set(names)) == len(names)
    for skin, own in zip(skins, places, strict=True):
        shown = np.array(skin["places"])
        np.testing.assert_allclose(shown[0], own[30, 0], atol=0.03)  # the pelvis after 1 s
        spread = np.linalg.norm(shown - own[30, 0], axis=1)
        assert spread.max() < 1.5  # a person, not bones of two


def test_opensim_reads_the_numbers_of_trc_and_mot(files):
    made, places, recording = files("trc", "mot", people=2, present=GAPS)
    paths = [path for path in made if "person1" in path.name]
    read = read_by("opensim", "opensim_tables.py", *paths)
    trc = read["trc"]
    assert tuple(trc["names"]) == H36M17.names
    assert (float(trc["meta"]["DataRate"]), trc["meta"]["Units"]) == (30, "m")
    np.testing.assert_allclose(trc["times"], np.arange(10, 90) / 30, atol=1e-6)
    got = np.array(trc["rows"], float)
    np.testing.assert_allclose(got[GAPS[0, 10:]], places[0, 10:][GAPS[0, 10:]], atol=2e-5)
    assert np.isnan(got[~GAPS[0, 10:]]).all()
    mot = np.loadtxt(next(path for path in paths if path.suffix == ".mot"), skiprows=7)
    np.testing.assert_allclose(read["mot"]["rows"], mot[:, 1:], atol=1e-9)
    assert read["mot"]["names"][:3] == ["pelvis_tilt", "pelvis_list", "pelvis_rotation"]
    assert recording.people == [1, 2]


@pytest.mark.parametrize("gaps", [False, True])
def test_opensim_scales_and_solves_the_package(files, gaps):
    """As the README in it says, on the files as they are."""
    model = environment("rajagopal") / "Rajagopal2015.osim"
    (folder,), _, _ = files("opensim", present=GAPS[:1] if gaps else None)
    shutil.copy(model, folder / MODEL)
    read = read_by("opensim", "opensim_tools.py", folder)
    assert read["frames"] == (54 if gaps else 90)
    assert read["rms"] < 0.008
    assert read["hips"] < 0.003, "of a model that motion.mot poses"


def test_solve_scales_and_solves_a_walker_beyond_the_range_of_the_model(save, body, rng, tmp_path):
    """A walk of 14 m, away from the origin: OpenSim clamps the pelvis to 5 m without a word."""
    pytest.importorskip("opensim")
    motion = wave(40, rng)
    motion.root[:] = np.linspace([3.0, 1.0, -16.0], [3.5, 1.0, -2.0], 40)
    recording = open_selection(save(joint_positions(body, motion)[None]))
    recording.opensim_model = environment("rajagopal") / "Rajagopal2015.osim"
    (made,) = export(recording, ["opensim"], tmp_path, "poses")
    note = next(note for note in made.notes if note.startswith("solved by OpenSim: marker error"))
    assert int(note.split()[5]) < 20, "mm RMS"
    assert {"ik.mot", "scaled.osim", "ik_marker_errors.sto"} <= {path.name for path in made.path.iterdir()}
    assert not (made.path / "opensim.log").exists()
    recording.opensim_model = tmp_path / "broken.osim"
    recording.opensim_model.write_text("<x/>")
    with pytest.raises(PoseError, match=r"--solve .*broken\.osim: "):
        list(export(recording, ["opensim"], tmp_path, "other"))


def test_py_c3d_reads_the_points_and_the_gaps(files):
    made, places, _ = files("c3d", people=2, present=GAPS)
    read = read_by("c3d", "pure_c3d.py", made[0])
    assert (read["rate"], read["units"]) == (30, "mm")
    assert tuple(read["labels"]) == H36M17.names
    points = np.array(read["frames"])
    known = GAPS[0, 10:]
    np.testing.assert_allclose(points[known, :, :3], 1000 * places[0, 10:][known], atol=0.01)
    assert (points[known, :, 3] == 0).all()
    assert (points[~known, :, 3] == -1).all()


def test_pybvh_reads_equal_joint_positions(files):
    (path,), _, recording = files("bvh")
    read = read_by("pybvh", "bvh_library.py", path)
    assert tuple(read["names"]) == NAMES
    assert read["step"] == pytest.approx(1 / 30, abs=1e-6)
    bones = AnimatedSkeleton(recording.track(1, recording.uniform))
    placed = np.concatenate([joint_positions(bones.body, motion) for _, motion in bones.spans()])[:, ORDER]
    np.testing.assert_allclose(np.array(read["places"]) / 100, placed, atol=2e-4)


def test_poseaudit_reads_our_angles(files, tmp_path):
    """MOT against a MOT whose right knee is 3 degrees higher throughout, and the same knee in the CSV of angles."""
    made, _, _ = files("mot", "angles")
    program = environment("poseaudit") / "bin" / "poseaudit"
    ours = next(path for path in made if path.suffix == ".mot")
    lines = ours.read_text().splitlines()
    column = lines[6].split("\t").index("knee_angle_r")
    rows = [line.split("\t") for line in lines[7:]]
    for row in rows:
        row[column] = f"{float(row[column]) + 3:.5f}"
    reference = tmp_path / "reference.mot"
    reference.write_text("\n".join([*lines[:7], *("\t".join(row) for row in rows), ""]))
    with next(path for path in made if path.suffix == ".csv").open(newline="") as file:
        knees = [row["right_knee_flexion_deg"] for row in csv.DictReader(file)]
    table = tmp_path / "pairs.csv"
    pairs = [f"{knee},{row[column]},{frame}" for frame, (knee, row) in enumerate(zip(knees, rows, strict=True))]
    table.write_text("\n".join(["pred,ref,frame", *pairs, ""]))
    for words in (("--pred-mot", ours, "--ref-mot", reference, "--measure", "knee_angle_r"), ("--table", table)):
        report = tmp_path / "report.json"
        call = [program, "paired", *words, "--big-error", "5", "--resamples", "50", "--json", report]
        subprocess.run(list(map(str, call)), check=True, capture_output=True, env=clean_environment(), timeout=120)
        measure = json.loads(report.read_text())  # one measure stands by itself
        assert measure["bias"] == pytest.approx(-3, abs=0.01)
        assert measure["rmse"] == pytest.approx(3, abs=0.01)
