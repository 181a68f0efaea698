import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pose.networks.crops import box_iou
from pose.networks.letterbox import GREY, letterbox, suppress


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("width", "height"), [(64, 64), (100, 30), (31, 97), (7, 200), (1, 1)])
def test_letterbox_round_trips_the_corners(width, height, centred):
    image = np.full((height, width, 3), 7, np.uint8)
    canvas, fit = letterbox(image, (64, 64), centred=centred)
    assert canvas.shape == (64, 64, 3)
    rows, columns = np.nonzero((canvas == 7).all(axis=2))
    inside = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], np.float32)
    np.testing.assert_allclose(fit.boxes_to_image(inside[None])[0], [0, 0, width, height], atol=1e-3)
    assert max(inside[2] - inside[0], inside[3] - inside[1]) == 64
    outside = np.ones((64, 64), bool)
    outside[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = False
    assert (canvas[outside] == GREY).all()
    if not centred:
        assert inside[:2].tolist() == [0, 0]
    else:
        left_over = np.array([inside[0], 64 - inside[2], inside[1], 64 - inside[3]]).reshape(2, 2)
        assert np.isin(left_over[:, 1] - left_over[:, 0], [0, 1]).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_nms_keeps_the_best_of_overlapping_boxes(seed, overlap):
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 20, size=(30, 2))
    xyxy = np.concatenate([corners, corners + random.uniform(1, 15, size=(30, 2))], axis=1).astype(np.float32)
    scores = random.permutation(30).astype(np.float32) / 30
    kept = suppress(xyxy, scores, overlap)
    assert (np.diff(scores[kept]) < 0).all()
    among = box_iou(xyxy[kept], xyxy[kept]) - np.eye(len(kept))
    assert (among <= overlap).all()
    for gone in set(range(30)) - set(kept.tolist()):
        better = kept[scores[kept] > scores[gone]]
        assert (box_iou(xyxy[better], xyxy[[gone]]) > overlap).any()
