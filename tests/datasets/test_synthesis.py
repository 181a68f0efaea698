"""Batches: repeatable, consistent between 2D and 3D, varied; evaluation sets fixed and complete."""

from dataclasses import fields, replace

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets.bodies import BodyConfig
from pose_datasets.filming import CANONICAL, FilmConfig, project_batch
from pose_datasets.limbs import ARMS, LEGS, flexion
from pose_datasets.poses import PoseConfig
from pose_datasets.postures import PostureConfig
from pose_datasets.sampling import clip_weights, random_times, resample
from pose_datasets.synthesis import CONDITIONS, Synthesis, SynthesisConfig, evaluation_batches, hard_batches

from pose.structures.sequences import LiftBatch

CLEAN = SynthesisConfig(film=FilmConfig(exact=1.0, derived=0.0))


@pytest.fixture(scope="module")
def batch(clips) -> LiftBatch:
    return Synthesis(clips, config=SynthesisConfig(), seed=4).batch(256, 41, 0)


def same(a: LiftBatch, b: LiftBatch) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(LiftBatch))


def test_batch_has_documented_shapes_and_types(batch):
    assert batch.keypoints.shape == (256, 41, 17, 2)
    assert batch.scores.shape == (256, 41, 17)
    assert batch.joints.shape == (256, 41, 17, 3)
    assert batch.root.shape == (256, 41, 3)
    assert batch.times.shape == batch.valid.shape == (256, 41)
    for name in ("keypoints", "scores", "joints", "root", "image_size"):
        assert getattr(batch, name).dtype == np.float32
        assert np.isfinite(getattr(batch, name)).all()
    assert batch.times.dtype == batch.intrinsics.dtype == np.float64
    assert (np.diff(batch.times, axis=1) > 0).all()
    assert (batch.joints[:, :, 0] == 0).all()
    assert (batch.root[..., 2] > 0.1).all()
    assert ((batch.scores >= 0) & (batch.scores <= 1)).all()
    assert (batch.scores[~batch.valid] == 0).all()


def test_a_batch_depends_on_seed_and_step_only(clips):
    first, second = (Synthesis(clips, config=SynthesisConfig(), seed=4) for _ in range(2))
    for step in range(3):
        first.batch(8, 9, step)
    assert same(first.batch(8, 9, 2), second.batch(8, 9, 2))
    assert not same(first.batch(8, 9, 2), first.batch(8, 9, 3))
    assert not same(first.batch(8, 9, 2), Synthesis(clips, config=SynthesisConfig(), seed=5).batch(8, 9, 2))


def test_clean_2d_is_the_projection_of_the_target(clips):
    """To 1e-3 px, through the intrinsics the model is told where they are known."""
    batch = Synthesis(clips, config=CLEAN, seed=1).batch(128, 21, 0)
    points = batch.joints.astype(np.float64) + batch.root[:, :, None]
    pixels = project_batch(points, batch.intrinsics)
    known = batch.intrinsics_known
    assert 0.4 < known.mean() < 0.8
    error = np.abs(pixels - batch.keypoints)[known]
    assert np.percentile(error, 99.9) < 1e-3
    assert (batch.scores[batch.valid] == 1).all()


def test_assumed_intrinsics_keep_the_root_pixels(clips):
    batch = Synthesis(clips, config=CLEAN, seed=2).batch(128, 21, 0)
    unknown = ~batch.intrinsics_known
    assert unknown.sum() > 20
    pelvis = project_batch(batch.root[:, :, None].astype(np.float64), batch.intrinsics)[:, :, 0]
    np.testing.assert_allclose(pelvis[unknown], batch.keypoints[unknown][:, :, 0], atol=2e-2)
    # Told 55 degrees for the longer side, and the person about as large in the image as it is.
    half = batch.image_size.max(axis=1) / 2
    angle = np.degrees(2 * np.arctan(half / batch.intrinsics[:, 0, 0]))
    np.testing.assert_allclose(angle[unknown], 55, atol=1e-3)
    height = np.linalg.norm(batch.joints[:, :, 8] - batch.joints[:, :, 0], axis=-1)
    seen = np.linalg.norm(batch.keypoints[:, :, 8] - batch.keypoints[:, :, 0], axis=-1)
    assert (seen <= 1.6 * height / batch.root[..., 2] * batch.intrinsics[:, :1, 0])[unknown].mean() > 0.97


def test_configured_shares_are_drawn(batch):
    assert 0.3 < batch.derived.mean() < 0.5
    assert 0.5 < batch.intrinsics_known.mean() < 0.7
    rate = (batch.times.shape[1] - 1) / batch.times[:, -1]
    assert rate.min() > 9
    assert rate.max() < 140
    assert (np.abs(rate - 30) < 0.1).mean() > 0.25
    assert (rate < 20).any()
    assert (rate > 70).any()


def test_varied_poses_are_diverse(clips):
    batch = Synthesis(clips, config=SynthesisConfig(natural=0.0), seed=4).batch(256, 41, 0)
    up = batch.joints[:, 20, 10, 1] < -0.3  # the camera's y points down
    raised = (batch.joints[:, 20, 13, 1] < batch.joints[:, 20, 11, 1])[up]
    assert 0.15 < raised.mean() < 0.6
    assert (batch.joints[:, 20, 10, 1] > 0.2).mean() > 0.01  # head below the pelvis
    thigh = batch.joints[:, 20, 2] - batch.joints[:, 20, 1]
    shin = batch.joints[:, 20, 3] - batch.joints[:, 20, 2]
    cosine = (thigh * shin).sum(-1) / np.linalg.norm(thigh, axis=-1) / np.linalg.norm(shin, axis=-1)
    assert (cosine < 0).mean() > 0.05  # knees bent beyond a right angle
    assert (cosine > np.cos(np.radians(8))).mean() > 0.1  # straight ones


def test_windows_follow_the_clip_between_its_frames(rng):
    clip = waving_clip(rate=120)
    slow, times = resample(clip, 25.0)
    assert times[1] == pytest.approx(0.04)
    exact = waving_clip(rate=25).points
    assert np.abs(slow - exact).max() < 1e-3


def test_long_clips_and_big_subjects_do_not_dominate():
    clips = [waving_clip("01", 40.0), waving_clip("02", 4.0), waving_clip("03", 4.0, speed=0.0)]
    weight = clip_weights(clips)
    assert weight.sum() == pytest.approx(1)
    assert weight[0] < 3 * weight[1]  # ten times as long
    assert weight[2] < weight[1]  # standing still


def test_laboratories_can_have_equal_shares():
    clips = [waving_clip(subject, 4.0) for subject in ("01", "02", "03", "snu-woody", "uiprmd-s01", "uiprmd-s02")]
    weight = clip_weights(clips, equal_laboratories=True)
    assert [weight[:3].sum(), weight[3], weight[4:].sum()] == pytest.approx([1 / 3] * 3)
    assert clip_weights(clips)[3] < 0.25


def test_frame_rates(rng):
    times = random_times(rng, 2000, 50, variable=0.1)
    steps = np.diff(times, axis=1)
    assert (steps > 0).all()
    uneven = np.ptp(steps, axis=1) > 1e-6
    assert 0.06 < uneven.mean() < 0.14
    slow = np.diff(random_times(rng, 2000, 50, variable=0.0, fastest=60.0), axis=1)
    assert 1 / 60 - 1e-9 < slow.min() < 1 / 59 < 1 / 11 < slow.max() < 0.1 + 1e-9


@pytest.mark.parametrize("condition", CONDITIONS)
def test_evaluation_covers_every_frame_with_fixed_cameras(clips, condition):
    first, second = (list(evaluation_batches(clips, condition=condition, frames=100)) for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, second, strict=True))
    frames = sum(int(batch.valid.sum()) for batch in first)
    assert frames == sum(len(resample(clip, 30.0)[1]) for clip in clips)
    for batch in first:
        assert batch.valid.shape[1] <= 100
        assert batch.intrinsics_known.all()
        assert (batch.derived == (condition == "detector")).all()
        exact = np.abs(project_batch(batch.joints + batch.root[:, :, None], batch.intrinsics) - batch.keypoints)
        assert (np.percentile(exact[batch.valid], 99) < 1e-2) == (condition == "gt")


def test_hard_set_is_fixed_and_unusual(clips):
    first, second = (list(hard_batches(clips, condition="gt", frames=30, count=3)) for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, second, strict=True))
    joints = np.concatenate([batch.joints for batch in first])
    easy = next(evaluation_batches(clips, condition="gt")).joints
    assert joints[:, 0].std(axis=0).mean() > 1.1 * easy[:, 0].std(axis=0).mean()


def test_invalid_configurations_are_rejected(clips):
    with pytest.raises(ValueError, match="condition: expected one of gt, noisy, detector, got 'real'"):
        next(evaluation_batches(clips, condition="real"))
    with pytest.raises(ValueError, match="clips: must not be empty"):
        Synthesis([], config=SynthesisConfig(), seed=0)


@pytest.mark.parametrize("batches", [evaluation_batches, hard_batches])
def test_training_augmentation_is_not_in_evaluation_sets(clips, batches):
    """Whatever the recipe says of poses, bodies and cameras: figures of two recipes are about the same sequences."""
    other = SynthesisConfig(
        natural=0.1, bodies=BodyConfig(unlike=1.0), poses=PoseConfig(straight=0.5, bent=0.5),
        postures=PostureConfig(held=1.0), film=FilmConfig(steep=1.0),
    )  # fmt: skip
    first, second = (next(iter(batches(clips, condition="gt", config=config))) for config in (None, other))
    assert same(first, second)


def test_training_holds_straight_and_folded_limbs_in_recorded_poses_too(clips):
    def flexions(poses: PoseConfig) -> np.ndarray:
        config = replace(CLEAN, natural=1.0, poses=poses, film=replace(CLEAN.film, definitions=CANONICAL))
        joints = Synthesis(clips, config=config, seed=4).batch(300, 21, 0).joints[:, 10].astype(np.float64)
        return np.concatenate([flexion(joints, limb) for limb in (*LEGS.joints, *ARMS.joints)])

    recorded = flexions(PoseConfig(straight=0, bent=0))
    assert (flexions(PoseConfig(bent=0)) < 8).mean() > 2 * (recorded < 8).mean()
    assert (flexions(PoseConfig(straight=0, bent=1)) > 90).mean() > 1.4 * (recorded > 90).mean()
    assert (recorded > 90).any()
