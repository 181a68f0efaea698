"""The folder for OpenSim: its parts agree with each other."""

from xml.etree import ElementTree

import numpy as np
import pytest
from export_fakes import wave
from strict import read_mot, read_trc

from pose.body.skeleton import joint_positions
from pose.body.tracks import open_selection
from pose.export import export, export_all
from pose.export.opensim import FILES
from pose.export.opensim_setup import BACK, HALF_HIPS, HALF_SHOULDERS, HIPS, SHOULDERS
from pose.structures.skeletons import H36M17

GAPS = np.ones((1, 60), bool)
GAPS[0, 20:25] = False


@pytest.fixture
def package(recorded, tmp_path):
    """The recording, its joints, and the folder that was made of it."""
    recording, places = recorded(60, present=GAPS)
    (made,) = export(recording, ["opensim"], tmp_path, "poses")
    return recording, places[0], made.path


def xml(path):
    return ElementTree.fromstring(path.read_text())


def test_opensim_package_contains_all_referenced_files(package):
    _, _, folder = package
    assert folder.name == "poses-person1-opensim"
    assert {path.name for path in folder.iterdir()} == set(FILES)
    scale, ik = xml(folder / "scale.xml"), xml(folder / "ik.xml")
    assert scale.findtext(".//marker_set_file") == "markers.xml"
    assert {scale.findtext(".//marker_file"), ik.findtext(".//marker_file")} == {"markers.trc"}
    assert ik.findtext(".//model_file") == scale.findtext(".//ModelScaler/output_model_file") == "scaled.osim"
    assert scale.findtext(".//model_file") in (folder / "README.txt").read_text()


def test_opensim_markers_and_angles_share_one_frame(package):
    """The markers are the joints turned about y, and the model's hips, placed by the angles, are the markers."""
    _, places, folder = package
    trc, mot = read_trc((folder / "markers.trc").read_text()), read_mot((folder / "motion.mot").read_text())
    known = GAPS[0]
    joints = [H36M17.index(name) for name in trc.names[:12]]
    points, wanted = trc.values[known][:, :12], places[known][:, joints]
    rise = points[..., 1] - wanted[..., 1]
    np.testing.assert_allclose(rise, rise[0, 0], atol=3e-5)
    lengths = [np.linalg.norm(np.diff(joints, axis=1), axis=-1) for joints in (points, wanted)]
    np.testing.assert_allclose(*lengths, atol=1e-4)
    angles = {name: mot.values[known, mot.names.index(name)] for name in mot.names}
    assert abs(angles["pelvis_rotation"].mean()) < 5, "faces +x on average"
    hips = [points[:, trc.names.index(f"{side}_hip")] for side in ("left", "right")]
    scale = np.linalg.norm(hips[0] - hips[1], axis=1).mean() / (2 * HALF_HIPS)
    origin = np.stack([angles[f"pelvis_t{axis}"] for axis in "xyz"], axis=1)
    away = np.linalg.norm((hips[0] + hips[1]) / 2 - origin, axis=1)
    np.testing.assert_allclose(away, scale * np.hypot(*HIPS[:2]), atol=1e-3)


def test_a_walker_far_away_is_within_the_range_of_the_model(save, body, rng, tmp_path):
    """OpenSim clamps the pelvis without a word: 5 m along x, 3 m along z, 2 m up."""
    motion = wave(60, rng)
    motion.root[:] = np.linspace([7.0, 4.0, -9.0], [7.0, 4.0, -1.5], 60)
    (made,) = export(open_selection(save(joint_positions(body, motion)[None])), ["opensim"], tmp_path, "poses")
    trc = read_trc((made.path / "markers.trc").read_text())
    points = dict(zip(trc.names, trc.values.swapaxes(0, 1), strict=True))
    pelvis = (points["left_hip"] + points["right_hip"]) / 2
    assert (np.abs(pelvis) < (5, 2, 3)).all()
    mot = read_mot((made.path / "motion.mot").read_text())
    assert np.abs(mot.values[:, mot.names.index("pelvis_tx")]).max() < 5


def test_lumbar_and_thorax_hold_the_tilt_of_the_pelvis(package):
    _, _, folder = package
    trc = read_trc((folder / "markers.trc").read_text())
    points = dict(zip(trc.names, trc.values[GAPS[0]].swapaxes(0, 1), strict=True))
    pelvis = (points["left_hip"] + points["right_hip"]) / 2
    trunk = points["thorax"] - pelvis
    lean = points["lumbar"] - pelvis
    cosine = (trunk * lean).sum(axis=1) / np.linalg.norm(trunk, axis=1) / np.linalg.norm(lean, axis=1)
    assert np.degrees(np.arccos(cosine)) == pytest.approx(np.degrees(np.arccos(cosine[0])), abs=0.1), "one rigid pelvis"
    names = {one.get("name") for one in xml(folder / "ik.xml").iter("IKMarkerTask")}
    assert names == set(trc.names) == {one.get("name") for one in xml(folder / "markers.xml").iter("Marker")}


def test_the_torso_reaches_from_the_scaled_pelvis_to_the_shoulders(package):
    _, places, folder = package
    left_hip, right_hip, left, right = (
        places[GAPS[0]][:, H36M17.index(name)] for name in ("left_hip", "right_hip", "left_shoulder", "right_shoulder")
    )
    found = xml(folder / "scale.xml").iter("Scale")
    scales = {one.get("name"): np.array(one.findtext("scales").split(), float) for one in found}
    pelvis = np.linalg.norm(left_hip - right_hip, axis=1).mean() / (2 * HALF_HIPS)
    reach = pelvis * (np.array(BACK) - np.array(HIPS)) + scales["torso"] * SHOULDERS
    length = np.percentile(np.linalg.norm((left + right - left_hip - right_hip) / 2, axis=1), 75)
    assert np.linalg.norm(reach) == pytest.approx(length, abs=2e-3)
    width = np.linalg.norm(left - right, axis=1).mean()
    assert scales["torso"][2] * 2 * HALF_SHOULDERS == pytest.approx(width, abs=1e-3)


def test_overwrite_replaces_the_opensim_package_and_keeps_user_files(package, tmp_path):
    recording, _, folder = package
    warnings: list[str] = []
    for _ in range(2):
        assert export_all(recording, ["opensim"], [1], tmp_path, "poses", print, warnings.append) == []
    (folder / "scaled.osim").write_text("made by OpenSim")
    for _ in range(2):
        assert export_all(recording, ["opensim"], [1], tmp_path, "poses", print, warnings.append) == []
    kept = [path.name for path in sorted(tmp_path.glob("*.kept*"))]
    assert [f"{folder.name}.kept", f"{folder.name}.kept-2"] == kept, "the first was not recorded"
    assert (tmp_path / kept[1] / "scaled.osim").exists()
    assert len(warnings) == 2
