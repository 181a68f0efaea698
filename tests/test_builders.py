"""Stages by name: what is built, with which weights, and what is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from pose.config import (
    PipelineConfig,
    choose_available,
    choose_networks,
    is_one_pass,
    load_preset,
    model_files,
    with_networks_of,
)
from pose.errors import PoseError, UsageError
from pose.registry import DETECTORS, ESTIMATORS, ONE_PASS, build
from pose.session import people_stages
from pose.utils.presets import presets_folder
from pose.utils.progress import StageTimes

pytestmark = pytest.mark.usefixtures("at_hand")

YOLO, YOLO_POSE = "yolo26n-person-320-int8.onnx", "yolo26n-pose-256-int8.onnx"


def config(**changes):
    return PipelineConfig(threads=1, device="cpu", **changes)


def picture(seed=0):
    return np.random.default_rng(seed).integers(0, 255, (96, 128, 3), np.uint8)


@pytest.mark.parametrize("name", ["blazepose", "rtmdet", "yolox", "mobilenet", "full-frame"])
def test_detectors_are_built_by_name_with_default_weights(name):
    detector = build(DETECTORS, name, config(detector=name).stage_options)
    assert detector.name == name
    assert len(detector.detect([picture()])) == 1


@pytest.mark.parametrize("name", ["blazepose", "blazepose-lite", "movenet", "movenet-thunder"])
def test_estimators_are_built_by_name_with_default_weights(name):
    estimator = build(ESTIMATORS, name, config().stage_options)
    boxes = build(DETECTORS, "full-frame", config().stage_options).detect([picture()])
    keypoints = estimator.estimate([picture()], [estimator.regions(boxes[0])])[0]
    assert keypoints.xy.shape == (1, len(estimator.skeleton), 2)


@pytest.mark.parametrize(("name", "file"), [("yolo", YOLO), ("yolo-pose", YOLO_POSE)])
def test_own_weight_files_are_used(name, file, weights_dir, tmp_path):
    own = shutil.copy(weights_dir / file, tmp_path / "mine.onnx")
    assert build(DETECTORS, name, config(detector=name).stage_options, str(own)).name == name


def test_equal_detector_and_estimator_names_run_in_one_pass(weights_dir):
    pose = str(weights_dir / YOLO_POSE)
    both = {"detector": "yolo-pose", "estimator": "yolo-pose"}
    assert is_one_pass(config(**both, detector_model=pose))
    assert is_one_pass(config(**both, estimator_model=pose, detector_model=pose))
    assert not is_one_pass(config(**both, estimator_model=pose, detector_model="yolo11n-pose"))
    assert not is_one_pass(config(detector="yolo", estimator="yolo-pose"))
    assert not is_one_pass(config())
    times = StageTimes()
    skeleton, make = people_stages(config(**both, estimator_model=pose), times)
    people = make().step(picture(), 0, 0.0)
    assert people.scores.shape[1] == len(skeleton) == 17
    assert list(times.seconds) == ["people and keypoints"]
    assert [(role, file.name) for role, _, file in model_files(config(**both, estimator_model=pose))] == [
        ("detector", YOLO_POSE),
        ("estimator", YOLO_POSE),
    ]


@pytest.mark.parametrize("name", ["blazepose", "mobilenet", "movenet-multipose"])
def test_cpu_only_networks_reject_cuda_and_precision(name):
    with pytest.raises(PoseError, match=f"device: {name} runs on the CPU only"):
        build(DETECTORS, name, PipelineConfig(device="cuda").stage_options)
    with pytest.raises(PoseError, match=f"precision: {name} supports only the precision of its weight file"):
        build(DETECTORS, name, PipelineConfig(precision="float16").stage_options)


def test_unknown_models_are_named():
    with pytest.raises(UsageError, match=r"nowhere\.onnx is neither a file nor a name"):
        build(DETECTORS, "yolo", config().stage_options, "nowhere.onnx")
    with pytest.raises(UsageError, match="has no effect, because this stage has no network"):
        build(DETECTORS, "full-frame", config().stage_options, YOLO)


def test_options_reach_the_network():
    assert len(build(DETECTORS, "mobilenet", config(detection_score=0.0).stage_options).detect([picture()])[0]) >= 1
    assert len(build(DETECTORS, "mobilenet", config(detection_score=1.0).stage_options).detect([picture()])[0]) == 0
    with pytest.raises(UsageError, match="100 is not a positive multiple of 32"):
        build(DETECTORS, "rtmdet", config(detector="rtmdet", detector_size=100).stage_options)
    with pytest.raises(UsageError, match="detector_size: mobilenet has a fixed input size"):
        config(detector="mobilenet", detector_size=320)
    with pytest.raises(UsageError, match=r"detect_every: inf is not a finite number"):
        PipelineConfig(detect_every=float("inf"))  # no JSON file can hold it
    with pytest.raises(UsageError, match=r"detection_score: 1.5 is out of range"):
        config(detection_score=1.5)


@pytest.mark.parametrize("key", ["detector_model", "estimator_model"])
def test_missing_model_names_its_option(key):
    one_pass = config(detector="yolo-pose", estimator="yolo-pose", **{key: "nope.pt"})
    for chosen in (one_pass, config(**{key: "nope.pt"})):
        for use in (
            model_files,
            lambda chosen: people_stages(choose_available(choose_networks(chosen))[0], StageTimes()),
        ):
            with pytest.raises(UsageError, match=f"^{key}: nope.pt is neither a file nor a name"):
                use(chosen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"detector": "yolo-pose", "estimator": "yolo-pose", "detect_every": 1.0}, "detect_every: yolo-pose finds"),
        ({"detector": "yolo-pose", "estimator": "yolo-pose", "presence_score": 0.4}, "presence_score: yolo-pose finds"),
        ({"detector": "full-frame", "detection_score": 0.4}, "detection_score: full-frame has no network"),
    ],
)
def test_options_unused_by_the_networks_are_rejected(changes, message):
    with pytest.raises(UsageError, match=message):
        config(**changes)


def test_preset_change_replaces_only_the_networks():
    before = config(
        tracker="botsort", repair=False, precision="float16", detect_every=1.0, detection_score=0.3, max_people=3
    )
    after = with_networks_of(before, "permissive")
    networks = load_preset("permissive")
    assert (after.detector, after.estimator) == (networks.detector, networks.estimator)
    assert after.detection_score is None  # a score of another network's
    assert after == replace(before, detector=after.detector, estimator=after.estimator, detection_score=None)
    one_pass = with_networks_of(before, "balanced")
    assert one_pass.detect_every == PipelineConfig().detect_every  # which it makes no use of
    assert not one_pass.repair


@pytest.mark.parametrize(
    ("name", "score", "used"), [("movenet", None, 0.45), ("movenet", 0.6, 0.6), ("blazepose", None, 0.5)]
)
def test_presence_threshold_is_the_users_or_the_estimators(name, score, used):
    _, make = people_stages(config(detector="full-frame", estimator=name, presence_score=score), StageTimes())
    assert make()._config.min_presence == used


def onnx_of(path, shape, kind="FLOAT"):
    """A network that answers with its input."""
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.mark.parametrize(
    ("table", "name"),
    [(DETECTORS, "rtmdet"), (DETECTORS, "yolox"), (DETECTORS, "mobilenet"), (DETECTORS, "blazepose"),
     (DETECTORS, "yolo"), (ESTIMATORS, "blazepose"), (ESTIMATORS, "movenet"), (ESTIMATORS, "rtmpose-t"),
     (ESTIMATORS, "yolo-pose"), (ONE_PASS, "yolo-pose")],
)  # fmt: skip
def test_unrelated_network_file_names_its_option(table, name, weights_dir, tmp_path, capfd):
    onnx_of(tmp_path / "picture.onnx", [1, 3, 320, 320])
    onnx_of(tmp_path / "whole.onnx", [1, 3, 8, 8], "INT64")
    onnx_of(tmp_path / "scalar.onnx", [])
    onnx_of(tmp_path / "large.onnx", [10**9, 3, 32, 32])
    (tmp_path / "none.tflite").write_bytes(bytes(1000))
    others = [weights_dir / "ssd-mobilenet-v1-coco-300-int8.tflite", weights_dir / "blazepose-landmark-lite.tflite"]
    others += [weights_dir / "yolox-nano-coco-416.onnx", presets_folder().parent / "pose" / "models" / "offline.onnx"]
    for file in (*tmp_path.iterdir(), *others):
        if file.stem.startswith({"mobilenet": "ssd-mobilenet"}.get(name, name)) and table is not ONE_PASS:
            continue  # its own kind, or of its family
        with pytest.raises(PoseError) as error:
            build(table, name, config().stage_options, str(file), "the_option")
        assert str(error.value).startswith((f"the_option: {file}", f"the_option: {file.name}"))
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 500
    assert capfd.readouterr() == ("", "")
