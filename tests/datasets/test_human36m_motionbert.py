"""Protocol M: its clips, its left-out takes, and its 2.5D space, whose geometry is known."""

import pickle

import numpy as np
import pytest
from benchmark_files import CAMERA_DATA, slow_camera_point, walker, write_protocol_m
from pose_datasets import human36m_motionbert as protocol_m

from pose.errors import PoseError, UsageError
from pose.training.evaluation import metrics

VIDEOS = [
    ("S9", "Greeting", 1, 0, 50),
    ("S9", "Greeting", 2, 1, 40),
    ("S11", "Walking", 1, 2, 30),
    ("S9", "Phoning", 2, 3, 7),
]
PICKLE = "h36m_sh_conf_cam_source_final.pkl"


@pytest.fixture
def folder(tmp_path):
    return write_protocol_m(tmp_path / "m", VIDEOS)


def camera_truth(subject, index, frames):
    place = CAMERA_DATA["extrinsics"][subject][index]
    return np.array([[slow_camera_point(point, place) for point in pose] for pose in walker(frames)])


def test_test_videos_are_cut_into_clips(folder):
    sequences = protocol_m.load_test(folder, clip_frames=15)
    assert [(s.key, s.action, s.camera, len(s)) for s in sequences] == [
        ("s_09_act_05_subact_01_ca_01", "Greeting", "54138969", 50),
        # s_09_act_05_subact_02 is one of the takes that are left out
        ("s_11_act_14_subact_01_ca_03", "Walking", "58860488", 30),
        ("s_09_act_06_subact_02_ca_04", "Phoning", "60457274", 7),
    ]
    assert [s.clips for s in sequences] == [
        (slice(0, 15), slice(15, 30), slice(30, 45)),
        (slice(0, 15), slice(15, 30)),
        (slice(0, 7),),
    ]
    assert [int(s.counted.sum()) for s in sequences] == [45, 30, 7]
    assert sequences[0].counted[:45].all()


def test_perfect_lifter_has_zero_error_at_any_scale(folder):
    for sequence, (subject, index) in zip(
        protocol_m.load_test(folder), [("S9", 0), ("S11", 2), ("S9", 3)], strict=True
    ):
        camera_frame = camera_truth(subject, index, len(sequence))
        for size in (1.0, 1.3):
            found = sequence.image_space.from_camera(size * camera_frame)
            relative = metrics.root_relative(found), metrics.root_relative(sequence.truth)
            # The label's ratio has a term that does not grow with the person: 0.05 % of the depth.
            assert metrics.mpjpe(*relative) < (1e-3 if size == 1 else 0.3)


def test_training_videos_become_camera_poses_of_one_size(folder):
    sequence = protocol_m.load_poses(folder, "train")[0]
    true = camera_truth("S1", 0, 30)
    ratio = sequence.truth / true
    assert sequence.key == "s_01_act_14_subact_01_ca_01"
    assert np.ptp(ratio, axis=(1, 2)).max() < 1e-5  # each frame's own: the stick figure's bones stretch a little
    bones = [np.linalg.norm(sequence.truth[:, a] - sequence.truth[:, b], axis=-1) for a, b in BONES]
    assert np.allclose(np.sum(bones, axis=0), protocol_m.BONE_SUM, rtol=1e-5)


BONES = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6), (0, 7), (7, 8), (8, 9), (9, 10), (8, 11), (11, 12), (12, 13),
         (8, 14), (14, 15), (15, 16)]  # fmt: skip


def test_observed_2d_contains_detector_confidence(tmp_path):
    folder = write_protocol_m(tmp_path, VIDEOS[2:3], noise=0)
    observed = protocol_m.load_test(folder)[0].observed
    true = camera_truth("S11", 2, 30)
    lens = observed.camera.matrix
    ideal = true @ lens.T
    assert np.abs(ideal[..., :2] / ideal[..., 2:] - observed.keypoints).max() < 2e-3
    assert observed.scores.shape == (30, 17)
    assert observed.scores.min() > 0.4
    assert observed.camera.size == (1000, 1000)


def damage(folder, part, change):
    path = folder / PICKLE
    data = pickle.loads(path.read_bytes())
    change(data[part])
    path.write_bytes(pickle.dumps(data))


def assign(name, make):
    def change(half):
        half[name] = make(half[name])

    return change


def with_nan(array):
    array[5, 3, 0] = np.nan
    return array


BAD_FILES = {
    "nan": (assign("joint_2d", with_nan), "test: joint_2d contains NaN"),
    "joints": (assign("joint_2d", lambda x: x[:, :16]), r"expected joint_2d \(N, 17, 2\), got \(127, 16, 2\)"),
    "length": (assign("joint_2d", lambda x: x[:-2]), "arrays differ in length.*'joint_2d': 125"),
    "confidence": (assign("confidence", lambda x: x[:, :5]), r"expected confidence \(N, 17\), got \(127, 5\)"),
    "metres": (
        assign("joints_2.5d_image", lambda x: x / 1000),
        r"joints_2\.5d_image \(as millimetres\): expected metres",
    ),
    "missing": (lambda half: half.pop("2.5d_factor"), r"test: 2\.5d_factor is missing"),
    "subject": (
        assign("source", lambda x: np.char.replace(x, "s_09", "s_19")),
        "unknown subject in source 's_19_act_05",
    ),
    "action": (assign("action", lambda x: np.full(x.shape, "Juggling")), "unknown action 'Juggling'; known: Dir"),
    "camera": (assign("camera_name", lambda x: np.full(x.shape, "1")), "subact_01_ca_01: unknown camera '1'"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_invalid_files_are_rejected(folder, case):
    change, message = BAD_FILES[case]
    damage(folder, "test", change)
    with pytest.raises(PoseError, match=message):
        protocol_m.load_test(folder)


def test_missing_file_and_missing_split_are_rejected(folder):
    (folder / PICKLE).write_bytes(pickle.dumps({"train": {}}))
    with pytest.raises(PoseError, match="expected a dictionary with 'test'"):
        protocol_m.load_test(folder)
    (folder / PICKLE).unlink()
    with pytest.raises(UsageError, match=rf"{PICKLE} is missing: MotionBERT publishes it; put it there"):
        protocol_m.load_test(folder)
