"""UI-PRMD as published: text files of markers in folders or ZIP files become clips of whole subjects."""

import zipfile

import numpy as np
import pytest
from marker_person import marker_person
from pose_datasets import mocap, ui_prmd
from pose_datasets.mapping import POINTS

from pose.errors import PoseError


def text_of(markers, separator=","):
    """Markers (T, 39, 3) m as the data set writes them: mm, z up, zeros for what was not seen."""
    rows = np.nan_to_num(1000 * markers[..., [2, 0, 1]]).reshape(len(markers), -1)
    return "\n".join(separator.join(f"{value:.1f}" for value in row) for row in rows)


@pytest.fixture(scope="module")
def markers():
    return marker_person()[0]


def test_folders_and_archives_give_equal_clips(markers, tmp_path):
    folder = tmp_path / "folder" / "Vicon" / "Positions"
    folder.mkdir(parents=True)
    text = text_of(markers)
    (folder / "m01_s03_e01_positions.txt").write_text(text)
    (folder / "m01_s03_e02_positions_inc.txt").write_text(text)
    (folder / "m01_s03_e01_angles.txt").write_text("1 2 3")
    kinect = tmp_path / "folder" / "Kinect" / "Positions"
    kinect.mkdir(parents=True)
    (kinect / "m01_s03_e01_positions.txt").write_text("1 2 3")
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_LZMA) as archive:
        for file in (tmp_path / "folder").rglob("*.txt"):
            archive.write(file, file.relative_to(tmp_path))
    clips = ui_prmd.load_ui_prmd(tmp_path / "folder")
    assert [(clip.subject, clip.name) for clip in clips] == [
        ("uiprmd-s03", "uiprmd-s03_m01_e01"),
        ("uiprmd-s03", "uiprmd-s03_m01_e02_inc"),
    ]
    assert np.diff(clips[0].times) == pytest.approx(0.02)
    for a, b in zip(clips, ui_prmd.load_ui_prmd(tmp_path / "all.zip"), strict=True):
        np.testing.assert_array_equal(a.points, b.points)


def test_kinect_archives_of_a_folder_are_ignored(markers, tmp_path):
    for name, text in {"s03.zip": text_of(markers), "kinect-s03.zip": "1 2 3"}.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("m01_s03_e01_positions.txt", text)
    assert [clip.name for clip in ui_prmd.load_ui_prmd(tmp_path)] == ["uiprmd-s03_m01_e01"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("1,2,x", "expected rows of numbers"),
        ("1,2,3", "3 numbers per row; expected 117"),
        ("1 2 3\n1 2", "expected rows of numbers"),
    ],
)
def test_invalid_text_files_are_rejected(text, message):
    with pytest.raises(PoseError, match=f"f.txt: .*{message}") as error:
        ui_prmd.parse_positions(text, "f.txt")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [0.0, 1e-3, 3.0])
def test_implausible_markers_are_rejected(markers, size, tmp_path):
    (tmp_path / "m01_s03_e01_positions.txt").write_text(text_of(size * markers + 0.1))
    with pytest.raises(PoseError, match=r"e01_positions\.txt: the distance of LASI and LANK is .* m; check the unit"):
        ui_prmd.load_ui_prmd(tmp_path)


def test_folder_without_recordings_is_rejected(tmp_path):
    with pytest.raises(PoseError, match="neither Vicon files of UI-PRMD"):
        ui_prmd.load_ui_prmd(tmp_path)
    (tmp_path / "s01.zip").write_bytes(b"PK no")
    with pytest.raises(PoseError, match=r"s01\.zip: not a ZIP file"):
        ui_prmd.load_ui_prmd(tmp_path)


def test_damaged_archive_is_rejected(markers, tmp_path):
    path = tmp_path / "s01.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("m01_s01_e01_positions.txt", text_of(markers))
    content = bytearray(path.read_bytes())
    content[2000:2100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(PoseError, match=r"s01\.zip: not a ZIP file, or a damaged one"):
        ui_prmd.load_ui_prmd(path)


def test_a_real_person_stands_nearly_straight_on_legs_of_one_length(shared, tmp_path):
    said = []
    options = ui_prmd.UiPrmdPreparation(
        source=str(shared / "mocap" / "ui-prmd" / "s09.zip"), out=str(tmp_path / "s09.npz")
    )
    options.prepare(said.append)
    line = said.pop()
    assert "80 clips, 1 subjects, " in line
    assert len(said) == 1
    assert said[0].startswith("uiprmd-s09, 80 recordings: bones vary by (mm) thigh ")
    clips = mocap.load_clips(tmp_path / "s09.npz")
    assert {clip.subject for clip in clips} == {"uiprmd-s09"}
    assert mocap.split(clips, "test") == clips
    points = np.concatenate([clip.points for clip in clips if "_m08_" in clip.name])
    for side in ("left", "right"):
        hip, knee, ankle = (points[:, POINTS.index(f"{side}_{joint}")] for joint in ("hip", "knee", "ankle"))
        thigh, shin = hip - knee, ankle - knee
        lengths = [np.linalg.norm(bone, axis=-1) for bone in (thigh, shin)]
        assert max(map(np.std, lengths)) < 1e-4
        flexion = 180 - np.degrees(np.arccos((thigh * shin).sum(axis=-1) / (lengths[0] * lengths[1])))
        assert 3 < np.median(flexion) < 11
