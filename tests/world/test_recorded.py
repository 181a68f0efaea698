"""What the steps must not do, on recorded people: a jump stays a jump, a slow slide stays a slide, left stays left."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from pose_datasets.mocap import load_source
from pose_datasets.sampling import resample
from walker import FPS, filmed, seen_person

from pose.structures.sequences import mirror_poses
from pose.structures.skeletons import H36M17
from pose.world.clean import clean
from pose.world.gravity import ANKLES
from pose.world.person import Person

CAMERA = {"pitch": -8.0, "distance": 6.0, "height": 1.5}


@pytest.fixture(scope="module")
def jump(shared, tmp_path_factory):
    """World joints (T, 17, 3) m, y up, of one recorded leap forwards, along z."""
    folder = tmp_path_factory.mktemp("mocap") / "13"
    folder.mkdir()
    with zipfile.ZipFile(shared / "mocap" / "cmu" / "13.zip") as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("13_13.bvh"))
        (folder / "13_13.bvh").write_bytes(archive.read(name))
    (clip,) = load_source(folder.parent)
    joints = resample(clip, FPS)[0][:, :17].astype(np.float64)
    way = joints[-1, 0] - joints[0, 0]
    turn = np.arctan2(way[0], way[2])
    c, s = np.cos(turn), np.sin(turn)
    joints = (joints - joints[0, 0] * [1, 0, 1]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    joints[..., 1] -= np.percentile(joints[:, ANKLES, 1], 10) - 0.08
    return joints


def with_errors(person, rng, size=0.008):
    """As lifted people err: joints by themselves, the distance of the whole body much."""
    noise = size * rng.standard_normal(person.joints.shape) * (np.arange(17) > 0)[:, None]
    root = person.root * (1 + 0.02 * rng.standard_normal((len(person), 1)))
    return replace(person, joints=person.joints + noise, root=root)


def test_the_recording_is_a_jump(jump):
    feet = jump[:, ANKLES, 1].min(axis=1) - 0.08
    assert feet.max() > 0.2
    assert jump[-1, 0, 2] - jump[0, 0, 2] > 0.8


@pytest.mark.parametrize("turn", [0, 90, 180])
def test_a_recorded_jump_stays_a_jump(jump, rng, turn):
    """Towards the camera, across the view, and away: as high and as far as it was, and no foot is held in the air."""
    person = with_errors(seen_person(jump - [0, 0, jump[:, 0, 2].mean()], turn=turn, **CAMERA), rng)
    one = clean({1: person}, person.times)[1][1]
    flying = jump[:, ANKLES, 1].min(axis=1) > 0.08 + 0.12
    assert not one.feet_held[flying].any()
    rise, true = (np.ptp(path[:, 0, 1]) for path in (one.placed, jump))
    assert rise == pytest.approx(true, rel=0.1)
    foot, true = ((path[:, ANKLES, 1].min(axis=1)).max() for path in (one.placed, jump))
    assert foot == pytest.approx(true, abs=0.06)
    far, true = (np.linalg.norm(np.ptp(path[:, 0][:, [0, 2]], axis=0)) for path in (one.placed, jump))
    assert far == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize("along", [(1, 0), (0, 1)], ids=["across", "towards"])
def test_a_slow_slide_stays_a_slide(jump, rng, along):
    """The recorded person before the leap, gliding over the floor at 0.4 m/s with both feet on it."""
    world = np.repeat(jump[:1], 150, axis=0)
    world[..., [0, 2]] += (0.4 * np.arange(150) / FPS)[:, None, None] * np.array(along)
    person = with_errors(seen_person(world - [0, 0, world[:, 0, 2].mean()], **CAMERA), rng)
    one = clean({1: person}, person.times)[1][1]
    gone = np.linalg.norm(np.ptp(one.placed[15:-15, ANKLES][..., [0, 2]], axis=0), axis=-1)
    assert gone == pytest.approx(0.4 * 119 / FPS, rel=0.12)
    assert np.ptp(one.placed[15:-15, 0, 0 if along[0] else 2]) == pytest.approx(0.4 * 119 / FPS, rel=0.12)


def test_a_mirrored_recording_gives_mirrored_people(jump, rng):
    lifted = with_errors(seen_person(jump, turn=30, **CAMERA), rng)
    side, flip = np.array([-1, 1, 1]), list(H36M17.flip_order)
    mirrored = Person(
        mirror_poses(lifted.joints).astype(float), lifted.root * side, lifted.sigma[:, flip], lifted.times,
        lifted.rays[:, flip] * side[:2], lifted.scores[:, flip],
    )  # fmt: skip
    (world, one), (other_world, other) = (clean({1: person}, lifted.times) for person in (lifted, mirrored))
    np.testing.assert_allclose(other_world.up, world.up * side, atol=1e-6)
    np.testing.assert_allclose(other[1].placed, mirror_poses(one[1].placed), atol=1e-5)
    np.testing.assert_allclose(other[1].root_sigma, one[1].root_sigma, rtol=1e-6)
    np.testing.assert_array_equal(other[1].feet_held, one[1].feet_held[:, ::-1])


def test_exact_people_hardly_change(jump):
    lifted, _, _ = filmed(jump, turn=90, **CAMERA)
    person = seen_person(jump, turn=90, **CAMERA)
    one = clean({1: person}, person.times)[1][1]
    off = np.linalg.norm(one.joints - lifted.joints, axis=-1)
    assert off.mean() < 0.012
