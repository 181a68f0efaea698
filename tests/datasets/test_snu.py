"""The motion of the laboratory in Seoul on our points: plausible people, one name for each group."""

from itertools import islice

import numpy as np
import pytest
from pose_datasets import bvh, mocap, snu
from pose_datasets.bodies import PARENTS, pelvis_frame, to_bones
from pose_datasets.limbs import LEGS, flexion

from pose.errors import PoseError

LIMBS = [0, 1, 2, 3, 4, 5, 11, 12, 14, 15]


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "mocap" / "snu"


@pytest.fixture(scope="module")
def trials(folder):
    """Group -> points (T, 19, 3) m of its first two files."""
    return {
        name: [points for _, _, points, _ in islice(snu.read_group(folder / f"{name}.zip", group), 2)]
        for name, group in snu.GROUPS.items()
    }


@pytest.mark.parametrize("name", snu.GROUPS)
class TestEveryGroup:
    def test_bones_are_constant_and_alike_on_both_sides(self, trials, name):
        for points in trials[name]:
            bones = np.linalg.norm(points[:, 1:] - points[:, PARENTS[1:]], axis=-1)
            assert bones[:, LIMBS].std(axis=0).max() < 1e-4
            assert bones.std(axis=0).max() < 0.015  # the trunk bends at joints between its points
            left, right = bones.mean(axis=0)[[3, 4, 5, 11, 12]], bones.mean(axis=0)[[0, 1, 2, 14, 15]]
            np.testing.assert_allclose(left, right, atol=0.004)

    def test_sizes_are_human(self, trials, name):
        bones = np.linalg.norm(to_bones(trials[name][0]), axis=-1).mean(axis=0)
        hip, thigh, shin, trunk, arm, forearm = *bones[1:4], bones[7] + bones[8], *bones[15:17]
        assert 0.06 < hip < 0.12
        assert 0.38 < thigh < 0.48
        assert 0.38 < shin < 0.48
        assert 0.40 < trunk < 0.60
        assert 0.24 < arm < 0.32
        assert 0.20 < forearm < 0.30

    def test_legs_straighten_and_knees_bend_forwards(self, trials, name):
        points = np.concatenate(trials[name])
        for joints in LEGS.joints:
            assert np.percentile(flexion(points, joints), 5) < 28
            forward = pelvis_frame(to_bones(points))[..., 2]
            bend = points[:, joints[1]] - (points[:, joints[0]] + points[:, joints[2]]) / 2
            assert (bend * forward).sum(axis=-1).mean() > 0


def test_inches_and_centimetres_give_the_same_actor(folder, trials):
    with_inches = next(
        points
        for _, name, points, _ in snu.read_group(folder / "woody.zip", snu.GROUPS["woody"])
        if name.endswith("wd2_pose1")
    )
    lengths = [np.linalg.norm(to_bones(points), axis=-1).mean(axis=0) for points in (with_inches, trials["woody"][0])]
    np.testing.assert_allclose(lengths[0][1:7], lengths[1][1:7], atol=0.005)


def test_the_other_person_has_another_name(tmp_path, folder):
    names = {"s_008_1_1.bvh": "snu-woody", "wd2_pose.bvh": "snu-woody", "boxing_round_round_girl1.bvh": "snu-girl"}
    (tmp_path / "woody").mkdir()
    with mocap.open_archive(folder / "cmu-69.zip") as archive:
        text = archive.read("69_01_1.bvh")
    for name in names:
        (tmp_path / "woody" / name).write_bytes(text)
    read = {
        name.split("/")[-1]: subject for subject, name, *_ in snu.read_group(tmp_path / "woody", snu.GROUPS["woody"])
    }
    assert read == {name.removesuffix(".bvh"): subject for name, subject in names.items()}


def test_a_folder_without_a_group_is_refused(tmp_path):
    with pytest.raises(PoseError, match=r"none of vsports\.zip, cmu-69\.zip, woody\.zip, woody-walks\.zip"):
        snu.load_snu(tmp_path)


def test_other_skeletons_are_rejected():
    motion = bvh.BvhMotion(("a",), (-1,), np.zeros((1, 3)), ((),), np.zeros((2, 0)), 30.0)
    with pytest.raises(PoseError, match=r"x\.bvh: the skeleton has no 'leftleg'"):
        snu.snu_points(motion, snu.GROUPS["woody"], "x.bvh")
