"""C3D and TRC files of markers become clips, whatever their unit, axes and names; what is none says so in one line."""

import warnings

import numpy as np
import pytest
from marker_person import FPS, LEG, marker_person
from pose_apps import prepare
from pose_datasets import marker_files, markers, mocap
from pose_datasets.mapping import POINTS
from pose_datasets.markers import plausibility

from pose.errors import PoseError

MARKERS = markers.MARKERS
ORDERS = {"z up": [2, 0, 1], "y up": [0, 1, 2], "x up": [1, 2, 0]}  # of our axes (left, up, forward) in the file


@pytest.fixture(scope="module")
def seen():
    return marker_person(1.5)[0]


@pytest.fixture(scope="module")
def expected(seen):
    return markers.joint_centres(seen)


def write_trc(path, positions, names=MARKERS, unit="mm", fps=FPS, scale=1000.0):
    """positions: (T, n, 3) m in the file's axes; NaN becomes an empty field."""
    head = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{fps}\t{fps}\t{len(positions)}\t{len(names)}\t{unit}\t{fps}\t1\t{len(positions)}",
        "Frame#\tTime\t" + "\t\t\t".join(names),
        "\t\t" + "\t".join(f"X{i}\tY{i}\tZ{i}" for i in range(1, len(names) + 1)),
        "",
    ]
    rows = [
        "\t".join([str(t + 1), f"{t / FPS:.5f}", *("" if np.isnan(v) else f"{v:.5f}" for v in row)])
        for t, row in enumerate(scale * positions.reshape(len(positions), -1))
    ]
    path.write_text("\n".join(head + rows) + "\n")


def write_c3d(path, positions, names=MARKERS, unit="mm", fps=FPS, scale=1000.0):
    c3d = pytest.importorskip("c3d")
    writer = c3d.Writer(point_rate=fps, analog_rate=0.0, point_scale=-1.0, point_units=unit)
    writer.set_point_labels([name.ljust(16) for name in names])
    for frame in positions:
        lost = np.isnan(frame).any(axis=-1)
        points = np.zeros((len(names), 5), np.float32)
        points[:, :3] = np.nan_to_num(scale * frame)
        points[lost, 3] = -1
        writer.add_frames([(points, np.zeros((0, 0)))])
    with path.open("wb") as file, warnings.catch_warnings(action="ignore", category=UserWarning):  # no analog channels
        writer.write(file)


@pytest.mark.parametrize("write", [write_trc, write_c3d])
@pytest.mark.parametrize("order", ORDERS)
def test_trc_and_c3d_equal_the_recording(seen, expected, tmp_path, write, order):
    path = tmp_path / f"walk.{write.__name__[-3:]}"
    write(path, seen[..., ORDERS[order]])
    (clip,) = marker_files.load_markers(path)
    assert (clip.subject, clip.name) == ("markers-walk", "markers-walk_walk")
    points, times = mocap.decimate(expected, np.arange(len(expected)) / FPS)
    np.testing.assert_allclose(clip.points, points, atol=2e-5)
    np.testing.assert_allclose(clip.times, times)


@pytest.mark.parametrize(("unit", "scale"), [("m", 1.0), ("cm", 100.0), ("MM", 1000.0), ("in", 39.37008)])
def test_units_come_from_the_file(seen, tmp_path, unit, scale):
    write_trc(tmp_path / "a.trc", seen, unit=unit, scale=scale)
    recording = marker_files.read_trc(tmp_path / "a.trc")
    np.testing.assert_allclose(recording.positions, seen, atol=1e-4)
    assert recording.fps == FPS


@pytest.mark.parametrize("write", [write_trc, write_c3d])
def test_lost_markers_are_nan(seen, tmp_path, write):
    broken = seen.copy()
    broken[10:14, 5] = np.nan
    path = tmp_path / f"a.{write.__name__[-3:]}"
    write(path, broken)
    read = marker_files._READERS[path.suffix](path).positions
    np.testing.assert_array_equal(np.isnan(read), np.isnan(broken))


def test_folders_and_prefixes_name_subjects(seen, tmp_path):
    for person in ("anna", "ben"):
        (tmp_path / person).mkdir()
        write_trc(tmp_path / person / "walk.trc", seen)
    both = np.concatenate([seen, seen + np.array([2, 0, 0])], axis=1)
    (tmp_path / "pair").mkdir()
    write_trc(tmp_path / "pair" / "dance.trc", both, [f"{p}:{m}" for p in ("a", "b") for m in MARKERS])
    write_trc(tmp_path / "single.trc", seen, [f"Anna:{m}" for m in MARKERS])
    clips = marker_files.load_markers(tmp_path)
    assert sorted(clip.subject for clip in clips) == [
        "markers-anna", "markers-ben", "markers-pair-a", "markers-pair-b", f"markers-{tmp_path.name}",
    ]  # fmt: skip


def test_sacrum_marker_replaces_both_psi_markers(seen, expected, tmp_path):
    left, right = MARKERS.index("LPSI"), MARKERS.index("RPSI")
    merged = seen.copy()
    merged[:, left] = (seen[:, left] + seen[:, right]) / 2
    names = [{"LPSI": "SACR"}.get(name, name) for name in MARKERS if name != "RPSI"]
    write_trc(tmp_path / "a.trc", np.delete(merged, right, axis=1)[..., ORDERS["z up"]], names)
    (clip,) = marker_files.load_markers(tmp_path / "a.trc")
    error = np.linalg.norm(clip.points - mocap.trial_clips("", "", expected, FPS)[0].points, axis=-1)
    assert error.max() < 2e-3


def test_markers_that_no_joint_needs_may_be_missing(seen, expected, tmp_path):
    kept = [name for name in MARKERS if name not in markers.UNUSED]
    more = [*kept, "*110"]
    write_trc(
        tmp_path / "a.trc", np.concatenate([seen[:, [MARKERS.index(n) for n in kept]], seen[:, :1]], axis=1), more
    )
    (clip,) = marker_files.load_markers(tmp_path)
    np.testing.assert_allclose(clip.points[0], expected[0], atol=0.01)


TINY = "PathFileType\nDataRate Units\n100 mm\nFrame#\tTime\tA\n\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path, seen: path.write_bytes(b""), "not a TRC file"),
        (lambda path, seen: path.write_bytes(bytes(range(256)) * 9), "not a TRC file"),
        (lambda path, seen: write_trc(path, seen[:60], unit="furlong"), "unknown unit 'furlong'; expected one"),
        (lambda path, seen: write_trc(path, seen[:60], unit="m"), "is m the unit|are unit and names"),
        (lambda path, seen: write_trc(path, seen[:60], fps="x"), "no DataRate and Units"),
        (lambda path, seen: write_trc(path, seen[:60], fps=0), "frame rate 0; expected"),
        (lambda path, seen: write_trc(path, seen[:60], fps="nan"), "frame rate nan; expected"),
        (lambda path, seen: write_trc(path, seen[:60, :20], MARKERS[:20]), r"missing markers RWRA, .* and \d+ more;"),
        (lambda path, seen: write_trc(path, np.full_like(seen[:60], np.nan)), "no frame contains head and ankles"),
        (lambda path, seen: write_trc(path, 0 * seen[:60] + 1), "the distance of LASI and LANK is 0 m"),
        (lambda path, seen: write_trc(path, 1e30 * seen[:60]), "from the origin"),
        (lambda path, seen: path.write_text(TINY + "1\t0\t1\tx\t2"), "line 6: could not"),
        (lambda path, seen: path.write_text(TINY + "1 0 1 2"), "line 6: 2 coordinates; expected 3"),
    ],
)  # fmt: skip
def test_invalid_trc_gives_a_one_line_error(seen, tmp_path, make, message):
    path = tmp_path / "a.trc"
    make(path, seen)
    with pytest.raises(PoseError, match=message) as error:
        marker_files.load_markers(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_invalid_c3d_gives_a_one_line_error(seen, tmp_path):
    path = tmp_path / "a.c3d"
    write_c3d(path, seen[:60])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", b"no C3D" * 200, whole[:512], whole[:1000], whole[: len(whole) // 2]]
    for _ in range(20):
        start = int(rng.integers(0, 1500))
        damaged.append(whole[:start] + rng.bytes(40) + whole[start + 40 :])
    for content in damaged:
        path.write_bytes(content)
        try:
            recording = marker_files.read_c3d(path)
        except PoseError as error:
            assert str(path) in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert recording.positions.shape[1:] == (len(recording.names), 3)
    for content in damaged[:5]:
        path.write_bytes(content)
        with pytest.raises(PoseError, match=r"a\.c3d: "):
            marker_files.read_c3d(path)


def test_pose_prepare_writes_clips_and_their_quality(seen, tmp_path, capsys):
    write_trc(tmp_path / "walk.trc", seen)
    prepare.main(["markers", "--source", str(tmp_path / "walk.trc"), "--out", str(tmp_path / "clips.npz")])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("markers-walk, 1 recordings: bones vary by (mm) thigh ")
    assert said[1].endswith("clips.npz: 1 clips, 1 subjects, 0.0 minutes")
    assert [clip.subject for clip in mocap.load_clips(tmp_path / "clips.npz")] == ["markers-walk"]


def test_folder_without_marker_files_is_rejected(tmp_path):
    with pytest.raises(PoseError, match=r"no \.c3d or \.trc file"):
        marker_files.load_markers(tmp_path)


def test_same_recording_in_both_formats(seen, tmp_path):
    write_trc(tmp_path / "a.trc", seen[:60])
    write_c3d(tmp_path / "a.c3d", seen[:60])
    with pytest.raises(PoseError, match="exists in another format"):
        marker_files.load_markers(tmp_path)


def test_recording_without_standing_is_rejected(seen, tmp_path):
    lying = seen - seen[:, :1] + 1.0
    turned = np.concatenate([lying[..., [0, 1, 2]], lying[..., [1, 0, 2]]])
    write_trc(tmp_path / "a.trc", turned)
    with pytest.raises(PoseError, match="cannot determine the vertical axis"):
        marker_files.load_markers(tmp_path)


def errors(found, truth):
    """Point -> mean distance, mm."""
    return dict(zip(POINTS, 1000 * np.linalg.norm(found - truth, axis=-1).mean(axis=0), strict=True))


def test_known_joints_are_recovered_from_markers():
    seen, truth = marker_person()
    wrong = errors(markers.joint_centres(seen), truth)
    assert max(wrong.values()) < 12
    assert max(wrong[p] for p in ("pelvis", "left_hip", "right_hip", "thorax", "spine", "nose", "ears", "head")) < 6


def test_motion_moves_a_hip_that_the_regression_misses_and_no_farther_than_anatomy_allows():
    seen, truth = marker_person(hip_off=(0.0, -0.03, 0.0))
    wrong = errors(markers.joint_centres(seen), truth)
    assert 10 < wrong["left_hip"] < 24
    assert wrong["left_hip"] == pytest.approx(wrong["right_hip"], abs=0.5)


@pytest.mark.parametrize("rigid", [True, False])
def test_bone_lengths_are_constant_only_where_asked(rigid):
    seen, _ = marker_person()
    rng = np.random.default_rng(1)
    points = markers.joint_centres(seen + rng.normal(0, 0.003, seen.shape), rigid=rigid)
    for near, far in (("hip", "knee"), ("knee", "ankle"), ("shoulder", "elbow"), ("elbow", "wrist")):
        lengths = [
            np.linalg.norm(points[:, POINTS.index(f"{s}_{far}")] - points[:, POINTS.index(f"{s}_{near}")], axis=-1)
            for s in ("left", "right")
        ]
        assert (np.std(lengths) < 1e-9) == rigid
        assert np.std(lengths) < 0.01


def test_lost_marker_invalidates_only_its_frames():
    seen, _ = marker_person()
    broken = seen.copy()
    broken[100:120, markers.MARKERS.index("LKNE")] = np.nan
    broken[200:220, markers.MARKERS.index("LFIN")] = np.nan  # no joint needs it
    points = markers.joint_centres(broken)
    assert np.isnan(points[100:120]).all()
    kept = np.r_[0:100, 120 : len(seen)]
    np.testing.assert_allclose(points[kept], markers.joint_centres(seen)[kept], atol=2e-3)


def test_known_marker_deviations_are_found():
    seen, truth = marker_person(hip_off=(0.0, -0.02, 0.0))
    truth = truth.copy()
    shin = POINTS.index("left_ankle"), POINTS.index("left_knee")
    direction = (truth[:, shin[0]] - truth[:, shin[1]]) / 0.4
    longer = np.where(np.arange(len(truth)) % 2, 0.03, 0.01)  # 20 ± 10 mm
    truth[:, shin[0]] += longer[:, None] * direction
    truth[::7] = np.nan
    found = plausibility(seen, truth)
    assert found.bones["shin"] == pytest.approx(0.01, abs=1e-4)
    assert found.bones["thigh"] == pytest.approx(0, abs=1e-9)
    assert found.sides == pytest.approx(0.02 / 0.41, rel=0.3)
    leg = markers._leg_length({name: seen[:, i] for i, name in enumerate(markers.MARKERS)})
    expected = np.linalg.norm(markers.hip_regression(LEG) + np.array([0, -0.02, 0]) - markers.hip_regression(leg))
    assert found.hips == pytest.approx(expected, abs=1e-3)
    assert str(found).startswith("bones vary by (mm) thigh 0, shin 10, ")
