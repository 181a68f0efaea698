"""`pose-run --hands` from a video to files."""

import pytest
from pose_apps.run import main

import pose
from pose.networks.hands import WEIGHTS
from pose.networks.weights import FetchError, locate


@pytest.fixture(scope="module")
def hand_weights():
    try:
        for name in WEIGHTS:
            locate(name)
    except FetchError as error:
        pytest.skip(str(error))


def test_run_writes_hands_and_the_cache_restores_them(videos, at_hand, hand_weights, tmp_path, capsys):
    clip = videos / "dance.mp4"
    cached = ["--hands", "--cache", str(tmp_path / "cache"), "--formats", "npz", "--end", "0.2", "--quiet"]
    for out in ("first", "second"):
        assert main([str(clip), "--out", str(tmp_path / out), *cached]) == 0
    one, other = (pose.load(tmp_path / out / "poses.npz") for out in ("first", "second"))
    assert (one.hand_scores() > 0.8).all()
    assert (one.table.hand_keypoints == other.table.hand_keypoints).all()
    assert {model.name for model in one.table.run.models if model.role == "hands"} == set(WEIGHTS)
    body, hands = one.table.keypoints[:, [15, 16]], one.table.hand_keypoints[:, :, 0]
    assert abs(body - hands).max() < 20  # px: each hand hangs on its own wrist
