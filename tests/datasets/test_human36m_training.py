"""What training on Human3.6M sees: the right subjects, the right 2D under every pose, mirrors, and filled-up ends."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from benchmark_files import write_protocol_m, write_protocol_v
from pose_datasets.human36m import load_cameras
from pose_datasets.human36m_training import Human36mConfig, Human36mSource, collate, window

from pose.lifting.config import LifterConfig

RECIPES = Path(__file__).resolve().parents[2] / "configs" / "train"

TAKES = {subject: {"Walking": 40, "Photo 1": 9} for subject in ("S1", "S5", "S6", "S7", "S8", "S9", "S11")}
CENTRES = {camera.centre[0] for camera in load_cameras()["S1"]}
M_TRAIN = [("S1", "Walking", 1, 0, 40), ("S8", "Eating", 1, 1, 30), ("S5", "Eating", 2, 2, 30)]
M_TEST = [("S9", "Greeting", 1, 0, 20), ("S9", "Greeting", 2, 0, 20), ("S11", "Walking", 1, 2, 20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_protocol_v(tmp_path_factory.mktemp("h36m"), TAKES)
    return str(write_protocol_m(path, M_TEST, M_TRAIN, noise=0))


def source(folder, **changes):
    return Human36mSource(Human36mConfig(folder=folder, frames=(20,), batch_frames=80, **changes), seed=3)


def projected(batch):
    points = batch.joints + batch.root[:, :, None]
    pixels = np.einsum("bij,btkj->btki", batch.intrinsics, points)
    return pixels[..., :2] / pixels[..., 2:]


@pytest.mark.parametrize("options", [{"input_2d": "gt"}, {"protocol": "M"}], ids=["V", "M"])
def test_keypoints_are_the_projected_pose_mirrored_or_not(folder, options):
    batches = [source(folder, **options).batch(step) for step in range(4)]
    for batch in batches:
        error = np.abs(projected(batch) - batch.keypoints)[batch.valid]
        assert error.max() < 5e-3
        assert batch.keypoints.shape == (4, 20, 17, 2)
    mirrored = [lens[0, 2] not in CENTRES for batch in batches for lens in batch.intrinsics]
    assert 0 < sum(mirrored) < len(mirrored)


def test_held_out_subject_is_excluded_from_training(folder):
    held_out, all_five = source(folder), source(folder, held_out="")
    assert {one.subject for one in held_out._training} == {"S1", "S5", "S6", "S7"}
    assert {one.subject for one in held_out._validation} == {"S8"}
    assert {one.subject for one in all_five._training} == {"S1", "S5", "S6", "S7", "S8"}


def test_sigma_is_not_calibrated_on_training_subjects(folder):
    assert len(source(folder).calibration()) == 1
    assert source(folder, held_out="").calibration() == []


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("human36m_*.yaml")), ids=lambda path: path.stem)
def test_recipes_evaluate_in_windows_of_the_longest_training_sequence(recipe):
    stored = yaml.safe_load(recipe.read_text())
    windows = LifterConfig.from_dict(stored["train"]["model"]).windows
    assert windows.at_rate_of(np.arange(500) / 50).size == max(stored["human36m"]["frames"])


@pytest.mark.parametrize(("options", "name"), [({"input_2d": "cpn"}, "cpn"), ({"protocol": "M"}, "sh")])
def test_evaluation_covers_every_held_out_frame_once(folder, options, name):
    for part, frames in (
        ("validation", 4 * 49 if name == "cpn" else 30),
        ("test", 2 * 4 * 49 if name == "cpn" else 40),
    ):
        conditions = source(folder, **options).evaluation(part)
        assert list(conditions) == [name]
        assert sum(int(batch.valid.sum()) for batch in conditions[name]) == frames


def test_short_sequences_are_padded_with_invalid_frames(folder):
    short = next(one for one in source(folder)._training if len(one) == 9)
    batch = collate([window(short, slice(0, 20), mirror=False)], 20)
    assert batch.valid[0].tolist() == [True] * 9 + [False] * 11
    assert not batch.scores[0, 9:].any()
    assert (batch.root[0, :, 2] > 1).all()
    assert np.allclose(np.diff(batch.times), 1 / 50)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "X"}, "human36m.protocol: 'X' is not one of V, M"),
        ({"input_2d": "sh"}, "human36m.input_2d: 'sh' is not one of gt, cpn"),
        ({"held_out": "S9"}, "human36m.held_out: 'S9' is not one of"),
        ({"frames": (2,)}, "human36m.frames: must be from 3 to batch_frames"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        Human36mConfig(**options)
