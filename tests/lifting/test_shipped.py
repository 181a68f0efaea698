"""The shipped weights do what the model cards say, on people who were in no training batch."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pose_datasets.errors import person_size
from pose_datasets.mocap import load_source, split
from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import CHANGES, apply_dialect_to_batches

from pose.lifting.load import load_lifter
from pose.lifting.predict import checkpoint_path
from pose.lifting.torch_lifter import TorchLifter
from pose.networks.weights import sha256_of
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.training.measure import lift_batch, measure

# mm. What a mean pose makes of these clips is about 200; the cards report all test clips, these are a few.
WORST = {("offline", 0): 40.0, ("stream", 0): 45.0, ("stream", 4): 45.0}


@pytest.fixture(scope="module")
def held_out_clips(shared, tmp_path_factory):
    """Some clips of two test subjects, read from the motion capture itself."""
    folder = tmp_path_factory.mktemp("cmu")
    for subject in ("08", "35"):
        (folder / f"{subject}.zip").symlink_to((shared / "mocap" / "cmu" / f"{subject}.zip").resolve())
    return split(load_source(folder), "test")[::6]


def card(name: str) -> dict:
    return json.loads(checkpoint_path(name).with_suffix(".json").read_text())


@pytest.mark.parametrize("name", ["offline", "stream"])
def test_model_card_matches_its_file(name):
    path = checkpoint_path(name)
    assert card(name)["sha256"] == sha256_of(path)
    assert path.stat().st_size < 20_000_000


@pytest.mark.parametrize(("name", "lookahead"), WORST)
def test_shipped_lifter_reaches_its_accuracy(held_out_clips, name, lookahead):
    network = TorchLifter.load(name).network
    figures = measure(network, evaluation_batches(held_out_clips, condition="gt", frames=81), lookahead)
    assert figures.mpjpe < WORST[name, lookahead]
    assert figures.p_mpjpe < figures.mpjpe


@pytest.mark.parametrize(("name", "worst"), [("offline", 9.0), ("stream", 14.0)])
def test_input_jitter_is_suppressed(held_out_clips, rng, name, worst):
    """White noise of 1.5 % of the person's size, of which scores say nothing: 60 mm/frame^2 where it is let through."""
    batches = [
        replace(batch, keypoints=batch.keypoints + (noise * 0.015 * person_size(batch.keypoints)[..., None]))
        for batch in evaluation_batches(held_out_clips, condition="gt", frames=81)
        for noise in [rng.standard_normal(batch.keypoints.shape, dtype=np.float32)]
    ]
    assert measure(TorchLifter.load(name).network, batches).acceleration < worst


@pytest.mark.parametrize(
    "dialect",
    [
        *(pytest.param(f"level {level}", marks=pytest.mark.slow) for level in (0.95, 0.5, 0.4)),
        "level 0.9",
        "power 3.0",
        "3 steps",
    ],
)
@pytest.mark.parametrize("name", ["offline", "stream"])
def test_score_mapping_does_not_change_lifting_of_exact_2d(held_out_clips, name, dialect):
    """Before training knew dialects, a level of 0.9 moved joints by 100 mm (docs/studies/lifter.md has what they move
    now).
    """
    network = TorchLifter.load(name).network
    batches = list(evaluation_batches(held_out_clips, condition="gt", frames=81))
    for plain, said in zip(batches, apply_dialect_to_batches(iter(batches), CHANGES[dialect]), strict=True):
        usual, other = (lift_batch(network, batch).joints.numpy()[batch.valid] for batch in (plain, said))
        assert 1000 * np.linalg.norm(other - usual, axis=-1).mean() < 14


@pytest.mark.parametrize("name", ["offline", "stream"])
def test_uncertainty_is_calibrated(held_out_clips, name):
    network = TorchLifter.load(name).network
    batches = [b for condition in ("gt", "detector") for b in evaluation_batches(held_out_clips, condition=condition)]
    assert 0.60 < measure(network, batches).inside < 0.76


def test_the_frame_rate_does_not_change_the_motion(held_out_clips):
    """The same motion seen at 24 and 60 frames a second is lifted to the same poses."""
    lifter = load_lifter("offline")
    slow, fast = (
        next(iter(evaluation_batches(held_out_clips[:1], condition="gt", fps=f, seed=3))) for f in (24.0, 60.0)
    )
    lifted = {}
    for name, batch in (("slow", slow), ("fast", fast)):
        frames = int(batch.valid[0].sum())
        sequence = Sequence2D(
            batch.keypoints[0, :frames], batch.scores[0, :frames], batch.times[0, :frames],
            Camera.of((int(batch.image_size[0, 0]), int(batch.image_size[0, 1])), batch.intrinsics[0]), "h36m17",
        )  # fmt: skip
        lifted[name] = lifter.lift(sequence)
    common = np.linspace(0.1, min(lifted["slow"].times[-1], lifted["fast"].times[-1]) - 0.1, 20)
    at = {name: lift.joints[np.searchsorted(lift.times, common)] for name, lift in lifted.items()}
    difference = np.linalg.norm(at["slow"] - at["fast"], axis=-1).mean()
    assert difference < 0.05
