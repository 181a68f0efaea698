"""Files of depth cameras and suits: each layout that is read, and damaged ones."""

import numpy as np
import pytest
import sensor_files as files
from pose_apps.support.sensors import is_sensor_file, read_sensors
from pose_datasets.rotations import intrinsic

from pose.body.sensors import kinect
from pose.errors import PoseError
from pose.structures.skeletons import H36M17

HEAD, NECK = H36M17.index("head"), H36M17.index("neck")


def write_kinect(path):
    files.write_kinect(path)


WRITERS = {
    "m01_s01_e01_positions.txt": write_kinect,
    "bodies.json": lambda path: files.write_azure(path, {3: files.body(), 7: files.body(1)}),
    "bodies.bag": lambda path: files.write_bag(path, {3: files.body(), 7: files.body(1)}),
    "suit.mvnx": lambda path: files.write_mvnx(path, files.body()),
    "suit.bvh": lambda path: files.write_bvh(path, files.body()),
}


@pytest.mark.parametrize("name", ["bodies.json", "bodies.bag"])
def test_bodies_of_azure_kinect_keep_ids_times_and_joints(name, tmp_path):
    WRITERS[name](tmp_path / name)
    assert is_sensor_file(tmp_path / name)
    people = read_sensors(tmp_path / name)
    assert list(people) == [3, 7]
    for number, seed in ((3, 0), (7, 1)):
        np.testing.assert_allclose(people[number].times, files.TIMES, atol=2e-6)
        np.testing.assert_allclose(people[number].joints, files.body(seed), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "free"), [("suit.mvnx", {"pelvis", "head"}), ("suit.bvh", {"pelvis", "neck", "head"})]
)
def test_suit_keeps_times_and_joints(name, free, tmp_path):
    WRITERS[name](tmp_path / name)
    assert is_sensor_file(tmp_path / name)
    skeleton = read_sensors(tmp_path / name)[1]
    truth = files.body()
    np.testing.assert_allclose(skeleton.times, files.TIMES, atol=1e-4)
    same = [at for at, joint in enumerate(H36M17.names) if joint not in free]
    np.testing.assert_allclose(skeleton.joints[:, same], truth[:, same], atol=1e-5)
    # The head's own points are above the neck, the pelvis is between the hips.
    assert 0.1 <= np.linalg.norm(skeleton.joints[:, HEAD] - truth[:, NECK], axis=-1).min() <= 0.15
    np.testing.assert_allclose(skeleton.joints[:, 0], (truth[:, 1] + truth[:, 4]) / 2, atol=1e-5)


def test_kinect_v2_follows_the_chain_of_its_joints(tmp_path):
    path = tmp_path / "m01_s01_e01_positions.txt"
    offsets, degrees = files.write_kinect(path)
    local = intrinsic("zxy", np.radians(degrees[..., [2, 0, 1]]))
    shank = kinect.NAMES.index("left_lower_leg")
    chain = [0, kinect.NAMES.index("left_upper_leg"), shank, kinect.NAMES.index("left_foot")]
    expected, turned = offsets[:, 0].copy(), local[:, 0]
    for joint in chain[1:]:
        expected += np.einsum("tij,tj->ti", turned, offsets[:, joint])
        turned = turned @ local[:, joint]
    found = read_sensors(path)[1].joints[:, H36M17.index("left_ankle")]
    np.testing.assert_allclose(found, expected / 100, atol=1e-6)


def test_feet_of_a_real_kinect_recording_stand_still(shared, tmp_path):
    import zipfile

    with zipfile.ZipFile(shared / "mocap/ui-prmd/kinect-s06.zip") as archive:
        for kind in ("positions", "angles"):
            name = f"m07_s06_e02_{kind}.txt"
            (tmp_path / name).write_bytes(archive.read(name))
    skeleton = read_sensors(tmp_path / "m07_s06_e02_positions.txt")[1]
    spread = skeleton.joints.std(axis=0).max(axis=-1)
    assert spread[[H36M17.index("left_ankle"), H36M17.index("right_ankle")]].max() < 0.02
    assert spread[[H36M17.index("left_wrist"), H36M17.index("right_wrist")]].max() > 0.2


def damaged(content, seed):
    """Return the bytes with one of ten kinds of damage."""
    random = np.random.default_rng(seed)
    at = int(random.integers(len(content)))
    kinds = (
        lambda: content[:at],
        lambda: content[:at] + random.bytes(400) + content[at + 400 :],
        lambda: b"",
        lambda: content.replace(b"0.", b"nan,", 50),
        lambda: content.replace(b",", b";"),
        lambda: content[at:] + content[:at],
        lambda: content.replace(b"1", b"1e300"),
        lambda: content.replace(b"-", b""),
        lambda: content[: at // 2] + content[at:],
        lambda: content.replace(b"0", b"9", at),
    )
    return kinds[seed % len(kinds)]()


@pytest.mark.parametrize("name", WRITERS)
def test_sixty_damaged_files_are_read_or_refused_in_one_line(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    content, refused = path.read_bytes(), 0
    for seed in range(60):
        path.write_bytes(damaged(content, seed))
        message = ""
        try:
            for skeleton in read_sensors(path).values():
                seen = skeleton.scores > 0
                assert np.isfinite(skeleton.joints[seen]).all()
                assert (np.diff(skeleton.times) > 0).all()
        except PoseError as error:
            message = str(error)
        refused += bool(message)
        assert "\n" not in message, seed
        assert not message or str(tmp_path) in message, seed
    assert refused > 10
