"""`pose-bench detectors` and `pose-bench estimators`: figures for what is here, a line for what is not."""

import json

import numpy as np
import pytest
from pose_apps.bench import networks
from pose_apps.bench.command import main
from pose_apps.bench.networks import (
    IMAGE_SIZE,
    PEOPLE,
    NetworkCase,
    NetworkMetrics,
    NetworkTable,
    as_table,
    detection,
    estimation,
    measure_in_process,
    one_pass,
    tiled,
)

from pose.config import PipelineConfig
from pose.registry import DETECTORS, ESTIMATORS, ONE_PASS

pytestmark = pytest.mark.usefixtures("at_hand")


def case(table, name, prepare, **changes):
    config = PipelineConfig(device="cpu", threads=1)
    usual = {"model": None, "video": None, "seconds": 0.0}
    return NetworkCase(table=NetworkTable(table, prepare), name=name, config=config, **(usual | changes))


def test_a_network_is_measured_in_a_process_of_its_own(tmp_path, capsys):
    """What has no weights here has a line that says how to get them; nothing is fetched."""
    out = tmp_path / "figures.json"
    names = ["--names", "mobilenet", "rtmpose-m", "yolo"]
    assert main(["detectors", "--device", "cpu", "--seconds", "0", "--names", "mobilenet", "yolo"]) == 0
    assert main(["estimators", "--device", "cpu", "--seconds", "0", "--names", "rtmpose-m", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| mobilenet | ssd-mobilenet-v1-coco-300-int8.tflite | cpu | " in printed
    assert "not measured: yolo: weights missing; run `pose-weights fetch yolo26n`" in printed
    document = json.loads(out.read_text())
    assert document["figures"] == []
    assert document["machine"]["gpu"] == "none"
    assert len(document["missing"]) == 1
    assert main(["detectors", *names]) == 2
    assert "no network 'rtmpose-m'; known: blazepose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "name", "prepare", "model"),
    [
        pytest.param(DETECTORS, "mobilenet", detection, None, marks=pytest.mark.slow),
        (ESTIMATORS, "movenet", estimation, None),
        pytest.param(ONE_PASS, "yolo-pose", one_pass, "yolo26n-pose-256-int8.onnx", marks=pytest.mark.slow),
    ],
)
def test_network_metrics_are_consistent(table, name, prepare, model, weights_dir, videos):
    file = model and str(weights_dir / model)
    figures = measure_in_process(case(table, name, prepare, model=file, video=str(videos / "dance.mp4")))
    assert [figure.people for figure in figures] == list(PEOPLE)
    for figure in figures:
        assert figure.milliseconds > 0
        np.testing.assert_allclose(figure.frames_per_second * figure.milliseconds, 1000)
        assert figure.megabytes is None or 0 < figure.megabytes < 1000
        assert figure.device == "cpu"
    assert figures[0].found == 1  # the dancer
    if table is ESTIMATORS:
        assert [figure.found for figure in figures] == list(PEOPLE)


@pytest.mark.parametrize("people", PEOPLE)
def test_tiled_image_has_one_box_per_person(people, rng):
    frame = rng.integers(1, 100, (400, 200, 3), np.uint8)
    image, boxes = tiled(frame, people)
    assert image.shape == (IMAGE_SIZE[1], IMAGE_SIZE[0], 3)
    assert len(boxes) == people
    shown = np.zeros(image.shape[:2], int)
    for x0, y0, x1, y1 in boxes.xyxy.astype(int):
        shown[y0:y1, x0:x1] += 1
        assert abs((x1 - x0) / (y1 - y0) - 0.5) < 0.02
    assert shown.max() == 1  # no two in one place
    assert (image[shown == 0] == 114).all()
    assert (image[shown == 1] != 114).all()


def test_benchmark_table_has_a_row_per_network():
    usual = {"network": "a", "weights": "a.onnx", "device": "cpu", "found": 1}
    figures = [
        NetworkMetrics(people=people, milliseconds=ms, frames_per_second=1000 / ms, megabytes=memory, **usual)
        for people, ms, memory in ((1, 2.0, 10.2), (4, 8.0, 12.0), (16, 40.0, None))
    ]
    lines = as_table(figures).splitlines()
    assert lines[0] == "| network | weights | device | 1 person | 4 people | 16 people |"
    assert lines[2:] == ["| a | a.onnx | cpu | 2.0 ms, 500/s, 10 MB | 8.0 ms, 125/s, 12 MB | 40.0 ms, 25.0/s |"]


def test_machine_description_names_the_gpu(monkeypatch):
    monkeypatch.setattr(networks, "resolve_device", lambda device: "cuda")
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "a GPU")
    assert networks.describe_machine("auto")["gpu"] == "a GPU"
