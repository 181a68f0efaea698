"""The presets: who gets which, what they promise, and the error when their weights are not available."""

import pytest
from command_errors import error_line
from pose_apps.run import main

from pose import config
from pose.config import (
    PipelineConfig,
    choose_available,
    choose_networks,
    default_preset,
    load_preset,
    model_files,
)
from pose.errors import PoseError
from pose.networks.weights import WEIGHTS
from pose.utils.presets import preset_names

USUAL = {"fast", "standard", "balanced", "accurate", "permissive", "best"}


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(config, "driver_present", lambda: True)
    monkeypatch.setattr(config, "onnx_has_cuda", lambda: True)


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A machine without any weight, and without a network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(tmp_path / "mine"))
    monkeypatch.setattr("pose.networks.weights.download._attempt", _no_network)
    return tmp_path / "pose-run" / "weights"


def _no_network(*arguments):
    raise TimeoutError


def test_documented_presets_exist():
    assert set(preset_names()) == USUAL


@pytest.mark.parametrize("name", ["fast", "standard", "accurate", "permissive", "best"])
def test_defaults_and_permissive_use_no_agpl(name):
    preset = load_preset(name)
    from pose.registry import ESTIMATORS, detector_choice

    used = [detector_choice(preset.detector).weight, ESTIMATORS[preset.estimator].weight]
    assert [WEIGHTS[weight].licence for weight in used] == ["Apache-2.0", "Apache-2.0"]


def test_cuda_gets_accurate_and_a_cpu_standard(cuda):
    assert [default_preset(device) for device in ("auto", "cuda", "cpu")] == ["accurate", "accurate", "standard"]


def test_cuda_driver_without_runtime_keeps_the_cpu_preset(cuda, monkeypatch):
    monkeypatch.setattr(config, "onnx_has_cuda", lambda: False)
    assert default_preset("auto") == "standard"


@pytest.mark.parametrize(
    ("arguments", "estimator"),
    [
        ([], "rtmpose-x"),
        (["--device=cuda"], "rtmpose-x"),
        (["--device", "cpu"], "blazepose"),
        (["--config", "permissive"], "rtmpose-m"),
        (["--config", "best"], "blazepose-heavy"),
        (["--estimator", "movenet"], "movenet"),
        (["--detector", "mobilenet"], "blazepose"),
    ],
)
def test_command_uses_the_chosen_or_device_preset(arguments, estimator, cuda, monkeypatch):
    asked = []
    monkeypatch.setattr("pose_apps.run.run", lambda run_config, pipeline_config, loaded: asked.append(pipeline_config))
    main(["clip.mp4", *arguments])
    (chosen,) = map(choose_networks, asked)
    assert chosen.estimator == estimator


def test_auto_preset_keeps_other_settings(cuda):
    asked = PipelineConfig(tracker="bytetrack", detector_size=640, max_people=2)
    assert choose_networks(asked) == load_preset(
        "accurate", tracker="bytetrack", detector_size=640, max_people=2, lifter="offline"
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("balanced", "movenet-multipose.bin"),
        ("accurate", "rtmpose-x-coco17-384x288.onnx"),
        ("permissive", "rtmpose-m-coco17-256x192.onnx"),
        ("best", "blazepose-landmark-heavy.tflite"),
    ],
)
def test_missing_weight_names_file_and_folder(name, file, offline, at_hand):
    with pytest.raises(PoseError) as error:
        model_files(load_preset(name))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"{file} could not be fetched")
    assert str(offline) in str(error.value)


@pytest.mark.parametrize("name", sorted(USUAL - {"fast", "standard"}))
def test_missing_weight_gives_a_one_line_error(name, offline, videos, tiny_lifter, tmp_path, capsys):
    video = ["--video", str(videos / "dance.mp4"), "--out", str(tmp_path / "out")]
    assert main([*video, "--config", name, "--lifter", str(tiny_lifter)]) == 1
    assert f"into {offline} or into a folder named in POSE_WEIGHTS_DIR" in error_line(capsys)


def test_the_default_uses_thunder_where_its_weights_are(at_hand):
    chosen, reason = choose_available(choose_networks(PipelineConfig(device="cpu")))
    assert (chosen.estimator, chosen.ensemble, reason) == ("blazepose", "movenet-thunder", None)
    assert [weight for _, weight, _ in model_files(chosen)] == ["rtmdet", "blazepose", "movenet-thunder"]


def test_the_default_without_thunder_is_blazepose_alone_and_says_so(offline):
    chosen, reason = choose_available(choose_networks(PipelineConfig(device="cpu", detector="auto")))
    alone = load_preset("fast", device="cpu", lifter="offline", keypoint_rate=PipelineConfig().keypoint_rate)
    assert chosen == choose_available(alone)[0]
    assert "\n" not in reason
    assert "The joints are those of blazepose alone" in reason
    assert "`pose-weights fetch movenet-thunder` tries again" in reason


def test_live_uses_one_network(at_hand):
    for settings in (PipelineConfig(device="cpu"), load_preset("standard", device="cpu")):
        assert choose_available(choose_networks(settings, live=True), live=True)[0].ensemble is None
