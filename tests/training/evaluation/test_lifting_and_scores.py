"""From a lifter to the averages: flip augmentation, clips, and every mean against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from benchmark_files import walker, write_protocol_m
from evaluation_fakes import DepthLifter

from pose.structures.camera import Camera
from pose.structures.labelled import LabelledSequence, check_metres
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.training.evaluation import calibration, lifting, metrics
from pose.training.evaluation.lifting import FLIPPED, PLAIN, evaluate_lifter, evaluate_predictions
from pose.training.evaluation.scores import MEASURES, PCK_JOINTS, score, summarize

LENS = np.array([[1100.0, 0, 510], [0, 1100, 505], [0, 0, 1]])


def labelled(rng, key, action, camera, frames, missing=()):
    """A sequence seen by an ideal camera; the truth of `missing` frames is not known."""
    truth = (walker(frames)[..., [0, 2, 1]] * [1, -1, 1] + [0, 1, 5]).astype(np.float32)
    pixels = truth @ LENS.T.astype(np.float32)
    counted = np.ones(frames, bool)
    counted[list(missing)] = False
    truth[~counted] = np.nan
    observed = Sequence2D(
        np.nan_to_num(pixels[..., :2] / pixels[..., 2:]) + rng.normal(size=(frames, 17, 2)).astype(np.float32),
        np.ones((frames, 17), np.float32),
        np.arange(frames) / 50,
        Camera.of((1000, 1002), LENS),
        H36M17.name,
    )
    return LabelledSequence(key, key.split("/")[0], action, camera, observed, truth, counted)


@pytest.fixture
def sequences(rng):
    return [
        labelled(rng, "S9/Walking/1", "Walking", "1", 12),
        labelled(rng, "S9/Walking/2", "Walking", "2", 30, missing=(0, 4, 5, 17)),
        labelled(rng, "S11/Sitting/1", "Sitting", "1", 7),
        labelled(rng, "S11/Sitting/2", "Sitting", "2", 5, missing=range(5)),
    ]


@pytest.fixture
def predictions(rng, sequences):
    return {
        one.key: (np.nan_to_num(one.truth) + 0.05 * rng.normal(size=one.truth.shape)).astype(np.float32)
        for one in sequences
    }


def slow_errors(name, sequence, poses):
    """All errors of one measure in one sequence, as (frame, joint, mm), one frame at a time."""
    needed, measure, *_ = MEASURES[name]
    pred, true = (metrics.root_relative(np.asarray(x, np.float64)) for x in (poses, sequence.truth))
    rows = []
    for stop in range(needed, len(sequence) + 1):
        window = slice(stop - needed, stop)
        if sequence.counted[window].all():
            rows += [(stop, joint, error) for joint, error in enumerate(measure(pred[window], true[window])[0])]
    return rows


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("averaging", ["actions", "frames"])
def test_averages_agree_with_plain_loops(sequences, predictions, name, averaging):
    found = summarize([score(one, predictions[one.key]) for one in sequences], averaging)
    errors = {one.key: slow_errors(name, one, predictions[one.key]) for one in sequences}

    def mean(keys, joint=None):
        values = [e for key in keys for _, j, e in errors[key] if joint in (None, j)]
        return sum(values) / len(values) if values else None

    def by_protocol(keys, joint=None):
        if averaging == "frames":
            return mean(keys, joint)
        groups = [[k for k in keys if f"/{action}/" in k] for action in ("Walking", "Sitting")]
        parts = [mean(group, joint) for group in groups if mean(group, joint) is not None]
        return sum(parts) / len(parts)

    keys = list(errors)
    assert found["average"][name] == pytest.approx(by_protocol(keys), abs=1e-9)
    assert found["actions"]["Walking"][name] == pytest.approx(mean(keys[:2]), abs=1e-9)
    assert found["cameras"]["1"][name] == pytest.approx(by_protocol([keys[0], keys[2]]), abs=1e-9)
    assert found["subjects"]["S9"][name] == pytest.approx(by_protocol(keys[:2]), abs=1e-9)
    for index, joint in enumerate(H36M17.names):
        assert found["joints"][joint][name] == pytest.approx(by_protocol(keys, index), abs=1e-9)


def test_pck_and_auc_use_all_errors(sequences, predictions):
    found = summarize([score(one, 1.25 * predictions[one.key]) for one in sequences], "frames")["average"]
    rows = [row for one in sequences for row in slow_errors("mpjpe", one, 1.25 * predictions[one.key])]
    errors = np.array([error for _, joint, error in rows if joint in PCK_JOINTS])
    assert [H36M17.names[joint] for joint in range(17) if joint not in PCK_JOINTS] == ["pelvis", "spine", "neck"]
    assert found["pck"] == pytest.approx(100 * np.mean(errors < 150), abs=1e-9)
    assert found["auc"] == pytest.approx(np.mean([100 * np.mean(errors < t) for t in range(0, 151, 5)]), abs=1e-9)
    assert 5 < found["auc"] < found["pck"] < 95


def test_nothing_measured_gives_none(sequences, predictions):
    empty = [score(sequences[3], predictions[sequences[3].key])]
    found = summarize(empty, "actions")
    assert found["frames"] == 0
    assert set(found["average"].values()) == {None}
    assert found["joints"]["head"]["mpjpe"] is None


def test_error_over_time_has_gaps_where_truth_has(sequences, predictions):
    one = sequences[1]
    over_time = score(one, predictions[one.key]).over_time
    assert np.flatnonzero(np.isnan(over_time)).tolist() == [0, 4, 5, 17]
    assert np.nanmean(over_time) == pytest.approx(
        metrics.mpjpe(*map(metrics.root_relative, (predictions[one.key], one.truth)))
    )


def test_flip_augmentation_is_neutral_for_an_equivariant_lifter(sequences):
    scores = evaluate_lifter(sequences, DepthLifter(np.zeros((17, 3)))).scores
    plain, flipped = (summarize(scores[variant], "actions")["average"] for variant in (PLAIN, FLIPPED))
    assert plain["mpjpe"] > 20
    for name, value in plain.items():
        assert flipped[name] == pytest.approx(value, rel=1e-4)


def test_batch_size_does_not_change_the_metrics(sequences, monkeypatch):
    whole = evaluate_lifter(sequences, DepthLifter(np.zeros((17, 3))))
    monkeypatch.setattr(lifting, "FRAMES_PER_CALL", 10)
    parts = evaluate_lifter(sequences, DepthLifter(np.zeros((17, 3))))
    assert summarize(whole.scores[FLIPPED], "actions") == summarize(parts.scores[FLIPPED], "actions")


def test_protocol_m_shows_a_lifter_one_clip_at_a_time(tmp_path):
    from pose_datasets.human36m_motionbert import load_test

    folder = write_protocol_m(tmp_path, [("S9", "Greeting", 1, 0, 50), ("S11", "Walking", 1, 2, 30)], noise=0)
    lifter = DepthLifter(np.zeros((17, 3)))
    sequences = load_test(folder, clip_frames=20)
    evaluation = evaluate_lifter(sequences, lifter, flip=False)
    assert lifter.asked == [(20, 0), (20, 0), (10, 0), (20, 0), (10, 0)]
    assert [one.frames for one in evaluation.scores[PLAIN]] == [40, 20]
    assert [len(poses) for poses in evaluation.predictions.values()] == [50, 30]
    # Rays at one depth have the image space's x and y, and no depth: what is left is the truth's depth alone.
    depth = np.abs(metrics.root_relative(sequences[0].truth)[:40, :, 2]).mean() * 1000
    assert summarize(evaluation.scores[PLAIN][:1], "actions")["average"]["mpjpe"] == pytest.approx(depth, rel=1e-3)


def test_given_predictions_are_measured_unchanged(sequences, predictions):
    evaluation = evaluate_predictions(sequences, predictions)
    assert list(evaluation.scores) == ["as given"]
    assert evaluation.frames_lifted == 0


def test_calibration_is_exact_for_gaussian_errors(rng):
    """Errors of a 3D Gaussian whose 68 % radius is sigma are calibrated; half the sigma is over-confident."""
    sigma = rng.uniform(5, 100, 200_000)
    radius_68 = 1.872  # of a standard normal in three dimensions
    errors = np.linalg.norm(rng.normal(size=(200_000, 3)), axis=1) * sigma / radius_68
    found = calibration.summarize(calibration.count(errors, sigma))
    assert found["inside_one_sigma"] == pytest.approx(0.68, abs=0.01)
    middle = [row for row in found["by_sigma"] if row["joints"] > 5000]
    assert len(middle) > 5
    assert all(row["error_68"] == pytest.approx(row["sigma"], rel=0.15) for row in middle)
    sure = calibration.summarize(calibration.count(errors, sigma / 2))
    assert sure["inside_one_sigma"] == pytest.approx(np.mean(errors < sigma / 2), abs=0.01)
    assert found["inside"][-1] == pytest.approx(1, abs=1e-3)
    assert len(found["inside"]) == len(found["multiples_of_sigma"])


@pytest.mark.parametrize(
    ("scale", "message"), [(1000, "look like millimetres"), (100, "expected metres"), (0.001, "expected metres")]
)
def test_units_are_recognised_by_body_size(scale, message):
    with pytest.raises(ValueError, match=f"here: .*{message}"):
        check_metres(scale * walker(5), "here")


def test_inconsistent_sequences_are_rejected(sequences):
    one = sequences[0]
    with pytest.raises(
        ValueError, match=r"S9/Walking/1: 12 frames of 2D need ground truth \(12, 17, 3\), got \(11, 17, 3\)"
    ):
        replace(one, truth=one.truth[1:])
