"""Motions to forecast: what is written is what was lifted; a moment's past ends before its future begins."""

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets.forecasting import FRAMES, MotionConfig, MotionSamples, load_motions, prepare_motions

from pose.errors import PoseError
from pose.lifting.forecast.config import HORIZONS, STEP
from pose.lifting.forecast.features import describe, restore

SHIFT = np.array([0.1, 0.0, 0.5], np.float32)


def a_lifter(batch):
    """Off by 20 mm in every joint, and always by the same in the pelvis' place."""
    off = np.full((17, 3), 0.02, np.float32)
    off[0] = 0
    return batch.joints + off, batch.root + SHIFT, np.full(batch.scores.shape, 30, np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("motions") / "motions.npz"
    clips = [waving_clip(subject, seconds=5.0) for subject in ("01", "02", "39", "08")]
    prepare_motions(clips, out, a_lifter, count=40)
    return out


def test_written_motions_are_split_by_part(path):
    train, test = load_motions(path, "train"), load_motions(path, "test")
    assert train.times.shape == (64, FRAMES)
    assert len(test) == 1
    assert len(load_motions(path, "calibration")) == 64
    assert np.allclose(np.diff(test.times), 1 / 60)
    assert (test.stride == 2).all()
    assert not test.seen[:, 1::2].any()
    pictures = test.seen[..., None]
    assert np.allclose(np.where(pictures, test.lifted_root - test.root, SHIFT), SHIFT, atol=1e-5)
    assert set(train.stride.tolist()) > {2}  # several frame rates


@pytest.mark.parametrize("lifted", [False, True])
def test_forecast_truth_starts_at_the_last_past_frame(path, lifted):
    samples = MotionSamples(load_motions(path, "test"), 1.0)
    some = samples.at_interval(0.25)
    past, true = samples.past(some, np.full(len(some[0]), lifted))
    batch = samples.batch(some, past, true, np.tile(HORIZONS, (len(some[0]), 1)))
    view = describe(past)[1]
    joints, root = restore(view, batch.truth, batch.ahead)
    m = samples.motions
    for person, row in enumerate(some[0]):
        for q, ahead in enumerate(HORIZONS):
            at = (view.time[person] + ahead) * 60
            if abs(at - round(at)) < 1e-6:  # a recorded frame
                assert np.allclose(joints[person, q], m.joints[row, round(at)], atol=1e-4)
                assert np.allclose(root[person, q], m.root[row, round(at)] + SHIFT * lifted, atol=1e-4)
    assert np.allclose(batch.steps[:, [1, 3, 9]], batch.truth[:, [0, 1, 3]], atol=1e-5)
    assert np.isclose(2 * STEP, HORIZONS[0])


def test_past_is_one_second_of_observed_frames(path):
    motions = load_motions(path, "train")
    samples = MotionSamples(motions, 0.25)
    some = samples.draw(np.random.default_rng(0), 50)
    past, true = samples.past(some, np.ones(50, bool))
    row, frame = some
    newest = past.times[np.arange(50), past.last()]
    assert (newest <= motions.times[row, frame] + 1e-9).all()
    span = motions.times[row, frame][:, None] - past.times
    assert (span[past.valid] <= 1 + 1e-5).all()
    assert np.allclose((past.joints - true.joints)[past.valid][:, 1:], 0.02, atol=1e-5)


def test_file_of_another_format_is_rejected(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(PoseError, match="pose-prepare forecast"):
        load_motions(tmp_path / "other.npz", "train")


def test_missing_test_subjects_are_rejected(tmp_path):
    with pytest.raises(PoseError, match="validation"):
        prepare_motions([waving_clip("01", seconds=5.0)], tmp_path / "motions.npz", a_lifter, count=1)


@pytest.mark.parametrize("mistake", [{"batch": 0}, {"lifted": 1.5}, {"gaps": -0.1}])
def test_invalid_configurations_are_rejected(mistake):
    with pytest.raises(ValueError, match=f"data.{next(iter(mistake))}"):
        MotionConfig(**mistake)
