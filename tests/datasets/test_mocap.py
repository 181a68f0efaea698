"""Clips: cut at jumps, brought to one rate without aliasing, kept in one file, split by subject."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets import asf_amc, bvh, mocap, snu
from pose_datasets.mapping import asf_points, bvh_points

from pose.errors import PoseError
from pose.utils.written_files import RECORD


def test_discontinuities_are_cut_out():
    times = np.arange(600) / 120
    points = np.zeros((600, 19, 3))
    points[200:, 5, 0] = 0.5  # 60 m/s
    points[400, 7, 1] = 2.0  # a single lost frame
    pieces = mocap.clean(points, times)
    assert [(round(t[0] * 120), round(t[-1] * 120)) for _, t in pieces] == [(0, 199), (200, 399), (401, 599)]


@pytest.mark.parametrize(("hertz", "kept"), [(2, 1.0), (8, 1.0), (50, 0.0), (58, 0.0)])
def test_decimation_removes_aliasing_frequencies(hertz, kept):
    times = np.arange(1200) / 120
    wave = np.sin(2 * np.pi * hertz * times)[:, None, None] * np.ones((1, 2, 3))
    slow, at = mocap.decimate(wave, times)
    assert len(at) == 600
    expected = kept * np.sin(2 * np.pi * hertz * at)[:, None, None]
    assert np.abs(slow - expected)[20:-20].max() < 0.02


@pytest.mark.parametrize("rate", [60, 120, 240])
def test_decimation_keeps_straight_lines_to_the_ends(rate):
    times = np.arange(rate * 2) / rate
    line = times[:, None, None] * np.ones((1, 19, 3))
    points, at = mocap.decimate(line, times)
    assert 59 < (len(at) - 1) / (at[-1] - at[0]) < 61
    np.testing.assert_allclose(points[:, 0, 0], at, atol=1e-9)


def test_clips_round_trip_through_the_file(tmp_path):
    clips = [waving_clip("01", 1.0), waving_clip("12", 2.0, rate=30)]
    path = tmp_path / "clips.npz"
    mocap.save_clips(clips, path)
    again = mocap.load_clips(path)
    assert [(clip.subject, clip.name) for clip in again] == [("01", "01_01"), ("12", "12_01")]
    for before, after in zip(clips, again, strict=True):
        np.testing.assert_array_equal(before.points, after.points)
        np.testing.assert_array_equal(before.times, after.times)
    assert sorted(file.name for file in tmp_path.iterdir()) == [RECORD, "clips.npz"]


def test_invalid_clip_file_is_rejected(tmp_path):
    path = tmp_path / "clips.npz"
    with pytest.raises(PoseError, match=r"clips\.npz: not a motion file"):
        mocap.load_clips(path)
    np.savez(path, subject=np.array([object()], dtype=object))
    with pytest.raises(PoseError, match=r"clips\.npz: not a motion file"):
        mocap.load_clips(path)


def test_folder_and_zip_are_read_alike(cmu, tmp_path):
    with zipfile.ZipFile(cmu / "131.zip") as archive:
        archive.extractall(tmp_path)
    from_folder = list(mocap.read_trials(tmp_path))
    from_zip = list(mocap.read_subject(cmu / "131.zip"))
    assert [trial for _, trial, _, _ in from_folder] == ["131_01", "131_02", "131_03", "131_04"]
    for (_, a, points_a, _), (_, b, points_b, _) in zip(from_folder, from_zip, strict=True):
        assert a == b
        np.testing.assert_array_equal(points_a, points_b)


def test_trial_uses_its_own_skeleton(cmu, tmp_path):
    with zipfile.ZipFile(cmu / "07.zip") as archive:
        skeleton, motion = archive.read("07/07.asf").decode(), archive.read("07/07_02.amc").decode()
    folder = tmp_path / "07"
    folder.mkdir()
    (folder / "07.asf").write_text(skeleton)
    (folder / "07_01.amc").write_text(motion)
    (folder / "07_02.amc").write_text(motion)
    (folder / "07_02.asf").write_text(skeleton.replace("length 7.40507", "length 8.40507"))
    points = {trial: points for _, trial, points, _ in mocap.read_trials(tmp_path)}
    shins = {trial: np.linalg.norm(p[0, 6] - p[0, 5]) for trial, p in points.items()}
    assert shins["07_02"] - shins["07_01"] == pytest.approx(0.056444, abs=1e-5)


def test_motion_without_a_skeleton_is_rejected(tmp_path):
    (tmp_path / "07").mkdir()
    (tmp_path / "07" / "07_01.amc").write_text("1\nroot 0 0 0 0 0 0\n")
    with pytest.raises(PoseError, match=r"07_01\.amc: no skeleton 07\.asf or 07_01\.asf beside it"):
        list(mocap.read_trials(tmp_path))


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["missing", "empty"])
def test_source_without_motion_is_rejected(tmp_path, make):
    make(tmp_path / "db")
    with pytest.raises(PoseError, match=r"db: no \.amc or \.bvh files"):
        list(mocap.read_trials(tmp_path / "db"))


def test_prepare_makes_the_file_and_says_what_is_in_it(cmu, tmp_path):
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "43.zip").symlink_to(cmu / "43.zip")
    line = mocap.prepare_clips(mocap.load_source(tmp_path / "db"), tmp_path / "out.npz")
    (clip,) = mocap.load_clips(tmp_path / "out.npz")
    assert clip.name == "43_01"
    assert clip.points.dtype == np.float32
    assert np.diff(clip.times) == pytest.approx(1 / 60)
    assert line.endswith("1 clips, 1 subjects, 0.1 minutes")


def test_limbs_are_calibrated_unless_they_should_stay_as_recorded(cmu, tmp_path):
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "43.zip").symlink_to(cmu / "43.zip")
    ends, middles = [1, 3, 4, 6, 11, 13, 14, 16], [2, 5, 12, 15]
    (moved,), (recorded,) = (mocap.load_source(tmp_path / "db", calibrated) for calibrated in (True, False))
    assert np.abs(moved.points[:, ends] - recorded.points[:, ends]).max() < 0.01
    assert np.abs(moved.points[:, middles] - recorded.points[:, middles]).max() > 0.01
    mocap.prepare_clips(mocap.load_source(tmp_path / "db", calibrated=False), tmp_path / "out.npz")
    np.testing.assert_array_equal(mocap.load_clips(tmp_path / "out.npz")[0].points, recorded.points)


def recordings_of_each_skeleton(shared):
    """One recording of each skeleton of the shared motion capture, with bones as recorded."""
    for folder in sorted((shared / "mocap" / "cmu").glob("*.zip")):
        seen = set()
        with mocap.closing(mocap.MotionFiles(folder)) as files:
            for name in files.names:
                text = files.read(name)
                subject, skeleton = name.split("/")[-1].split("_")[0], text.split("MOTION")[0]
                if name.endswith(".bvh") and skeleton not in seen:
                    seen.add(skeleton)
                    figure = bvh.parse_bvh(text, name)
                    yield subject, bvh_points(figure, name)[1:40]
                elif name.endswith(".amc") and "amc" not in seen:
                    seen.add("amc")
                    body = asf_amc.parse_asf(files.read(f"{subject}/{subject}.asf"), name)
                    yield subject, asf_points(body, asf_amc.parse_amc(text, body, name), name)[:40]
    for name, group in snu.GROUPS.items():
        with mocap.closing(mocap.MotionFiles(shared / "mocap" / "snu" / f"{name}.zip")) as files:
            for file in (files.names[0], files.names[-1]):  # the last one of woody is of another person
                subject = "snu-girl" if "round_girl" in file else group.subject
                yield subject, snu.snu_points(bvh.parse_bvh(files.read(file), file), group, file)[:40]


@pytest.mark.slow
def test_no_body_is_in_two_parts(shared):
    """CMU 12 and 60, once test subjects, are on the figure of 06, 07, 13 and 94."""
    clips = [
        mocap.Clip(subject, f"{subject}_{number}", points.astype(np.float32), np.arange(len(points)) / 60)
        for number, (subject, points) in enumerate(recordings_of_each_skeleton(shared))
    ]
    assert mocap.bodies_in_several_parts(clips) == []
    renamed = [replace(clip, subject="39") if clip.subject == "12" else clip for clip in clips]
    assert mocap.bodies_in_several_parts(renamed) == [(other, "39") for other in ("06", "07", "13")] + [
        ("39", "60"),
        ("39", "94"),
    ]


def test_subjects_are_in_one_split_only():
    clips = [waving_clip(f"{n:02d}", 0.6) for n in range(1, 145)]
    parts = {part: {clip.subject for clip in mocap.split(clips, part)} for part in ("train", "validation", "test")}
    assert parts["test"] == {"08", "16", "35"}
    assert parts["validation"] == {"05", "09", "17", "39", "131", "135"}
    assert not parts["train"] & (parts["test"] | parts["validation"])
    assert sum(map(len, parts.values())) == 144
    with pytest.raises(ValueError, match="expected train, validation or test, got 'all'"):
        mocap.split(clips, "all")
