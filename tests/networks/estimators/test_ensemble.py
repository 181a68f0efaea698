"""Several 2D networks together: joints by name, robust means, mirrored crops. The networks are simulated."""

import numpy as np
import pytest

from pose.config import PipelineConfig, model_files
from pose.errors import UsageError
from pose.networks import crops
from pose.networks.estimators.ensemble import Ensemble, combine
from pose.structures.skeletons import BLAZEPOSE33, COCO17
from pose.structures.types import Boxes, Keypoints2D, Regions

IMAGE = np.zeros((300, 401, 3), np.uint8)
BOX = Boxes(np.array([[100, 50, 200, 250]], np.float32), np.ones(1, np.float32))
BODY = np.random.default_rng(0).uniform((100, 50), (200, 250), (33, 2)).astype(np.float32)
KNEE, ELBOW, FOOT = (BLAZEPOSE33.index(f"left_{name}") for name in ("knee", "elbow", "heel"))


class Network:
    """Finds a body in the image, moved by an error, or in a mirrored image its mirror image."""

    def __init__(self, skeleton, error=(0, 0), score=0.9):
        self.name, self.skeleton, self.error, self.score = skeleton.name, skeleton, np.array(error, np.float32), score
        self.seen = []

    def regions(self, boxes):
        return crops.square_regions(boxes.xyxy, 1.25)

    def estimate(self, images, regions):
        self.seen += [(bool(image[0, -1].any()), rows) for image, rows in zip(images, regions, strict=True)]
        mirrored = self.seen[-1][0]
        xy = BODY[[BLAZEPOSE33.index(name) for name in self.skeleton.names]]
        if mirrored:
            xy = np.array([IMAGE.shape[1] - 1, 0]) + xy[list(self.skeleton.flip_order)] * [-1, 1]
        xy = (xy + self.error).astype(np.float32)[None]
        scores = np.full(xy.shape[:2], self.score, np.float32)
        return [Keypoints2D(xy, scores, np.ones(1, np.float32), regions[0])]


def image():
    """An image whose top left corner shows whether it is mirrored."""
    marked = IMAGE.copy()
    marked[0, 0] = 255
    return marked


def estimate(*networks, mirror=False):
    ensemble = Ensemble(networks, mirror=mirror)
    (found,) = ensemble.estimate([image()], [ensemble.regions(BOX)])
    return found


def test_joints_are_averaged_by_name_and_others_are_those_of_the_first():
    found = estimate(Network(BLAZEPOSE33, (2, 0)), Network(COCO17, (-2, 0)))
    shared = [name in COCO17.names for name in BLAZEPOSE33.names]
    np.testing.assert_allclose(found.xy[0, shared], BODY[shared], atol=1e-3)
    np.testing.assert_allclose(found.xy[0, FOOT], BODY[FOOT] + [2, 0], atol=1e-3)


def test_disagreement_lowers_the_score_of_a_joint():
    together, near, far = (estimate(Network(BLAZEPOSE33), Network(COCO17, (away, 0))) for away in (0, 4, 28))
    assert together.scores[0, KNEE] == pytest.approx(0.9)
    assert 0.8 < near.scores[0, KNEE] < 0.9
    assert far.scores[0, KNEE] < 0.6
    assert far.scores[0, FOOT] == pytest.approx(0.9)


def test_far_apart_the_more_certain_network_counts():
    found = estimate(Network(BLAZEPOSE33, score=0.9), Network(COCO17, (28, 0), score=0.2))
    assert np.linalg.norm(found.xy[0, KNEE] - BODY[KNEE]) < 2


def test_a_network_that_shows_another_person_is_ignored():
    found = estimate(Network(BLAZEPOSE33, score=0.3), Network(COCO17, (100, 0), score=0.9))
    np.testing.assert_allclose(found.xy[0, KNEE], BODY[KNEE], atol=1e-3)
    assert found.scores[0, KNEE] == pytest.approx(0.3)


def test_the_majority_of_three_networks_counts():
    right = Network(BLAZEPOSE33), Network(COCO17, (1, 0), score=0.6)
    found = estimate(*right, Network(COCO17, (100, 0)))
    assert np.linalg.norm(found.xy[0, KNEE] - BODY[KNEE]) < 5


def test_joints_that_one_network_does_not_see_are_those_of_the_other():
    region = crops.square_regions(BOX.xyxy, 1.25)
    other = Network(COCO17, (20, 0), score=0.6).estimate([IMAGE], [region])[0]
    first = Network(BLAZEPOSE33).estimate([IMAGE], [region])[0]
    other.scores[:, COCO17.index("left_knee")] = 0
    first.scores[:, ELBOW] = 0
    found = combine(BLAZEPOSE33, first, [(COCO17, other)])
    np.testing.assert_allclose(found.xy[0, KNEE], BODY[KNEE], atol=1e-4)
    np.testing.assert_allclose(found.xy[0, ELBOW], BODY[ELBOW] + [20, 0], atol=1e-4)
    assert found.scores[0, [KNEE, ELBOW]] == pytest.approx([0.9, 0.6])


def test_errors_that_do_not_mirror_cancel_with_mirrored_crops():
    network = Network(BLAZEPOSE33, (3, 0))
    found = estimate(network, mirror=True)
    np.testing.assert_allclose(found.xy[0], BODY, atol=1e-3)
    (plain, regions), (mirrored, turned) = network.seen
    assert (plain, mirrored) == (False, True)
    assert turned.centers[0, 0] == IMAGE.shape[1] - 1 - regions.centers[0, 0]


def test_the_second_network_gets_a_region_around_the_joints_of_the_first():
    second = Network(COCO17)
    estimate(Network(BLAZEPOSE33), second)
    (box,) = crops.region_boxes(second.seen[0][1])
    assert (box[:2] < BODY.min(axis=0)).all()
    assert (box[2:] > BODY.max(axis=0)).all()
    assert (box[2:] - box[:2]).max() == pytest.approx(1.35 * np.ptp(BODY, axis=0).max(), rel=1e-3)


def test_nobody_gives_nobody():
    ensemble = Ensemble([Network(BLAZEPOSE33), Network(COCO17)])
    none = Keypoints2D(
        np.zeros((0, 33, 2), np.float32), np.zeros((0, 33), np.float32), np.zeros(0, np.float32), Regions.empty()
    )
    assert len(combine(ensemble.skeleton, none, [])) == 0


@pytest.mark.usefixtures("at_hand")
def test_the_weights_of_all_networks_are_named():
    config = PipelineConfig(detector="blazepose", estimator="blazepose", ensemble="movenet-thunder+movenet")
    names = [file.name for _, _, file in model_files(config)]
    assert names[1:] == ["blazepose-landmark-full.tflite", "movenet-thunder.bin", "movenet-lightning-int8.tflite"]


@pytest.mark.parametrize("names", ["thunder", "movenet-thunder+", "mmpose"])
def test_unknown_networks_are_a_usage_error(names):
    with pytest.raises(UsageError, match=r"ensemble: '\w*' is unknown; known: blazepose, "):
        PipelineConfig(ensemble=names)
