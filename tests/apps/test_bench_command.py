"""`pose-bench lifter`: figures for what there is, as tables and as JSON."""

import json
import sys

import pytest
from pose_apps.bench import lifter
from pose_apps.bench.attention_costs import Cost, table
from pose_apps.bench.command import main


@pytest.fixture
def tiny_stream(tmp_path):
    import torch

    from pose.lifting.checkpoint import save_checkpoint
    from pose.lifting.config import LifterConfig
    from pose.lifting.model import LifterNetwork

    torch.manual_seed(0)
    path = tmp_path / "stream.safetensors"
    options = {"attention": "local", "attention_options": {"window": 4}, "streaming": True}
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, **options)), path)
    return path


def test_lifter_benchmark_reports_times(tiny_lifter, tiny_stream, tmp_path, capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)  # of this process, which other tests share
    monkeypatch.setattr(lifter, "SEQUENCE_FRAMES", 100)
    out = tmp_path / "figures.json"
    lifters = ["--offline", str(tiny_lifter), "--stream", str(tiny_stream)]
    assert main(["lifter", *lifters, "--seconds", "0.1", "--no-attention", "--json", str(out)]) == 0
    figures, printed = json.loads(out.read_text()), capsys.readouterr().out
    assert [(step["backend"], step["people"]) for step in figures["stream"]] == [("torch", 1), ("torch", 4)]
    assert all(0 < step["p50"] <= step["p95"] for step in figures["stream"])
    assert figures["offline_frames_per_second"]["torch"] > 100
    assert "onnx not measured: " in printed  # no file of this checkpoint was exported
    assert "| torch | 4 |" in printed


def test_the_table_of_attention_gives_ratios_to_softmax():
    costs = {
        "softmax": {10: Cost(milliseconds=2.0, megabytes=4.0), 20: Cost(milliseconds=8.0, megabytes=16.0)},
        "local": {10: Cost(milliseconds=3.0, megabytes=2.0), 20: Cost(milliseconds=4.0, megabytes=4.0)},
    }
    lines = table(costs, [10, 20]).splitlines()
    assert lines[2] == "| softmax | 2.00 ms, 4.0 MB | 8.00 ms, 16.0 MB | - |"
    assert lines[3] == "| local | 1.50, 0.50 | 0.50, 0.25 | 20 |"


def measured_apart(name, length, dim):
    """Milliseconds and megabytes of a mechanism, from a process that has used no thread of torch's before."""
    import subprocess

    script = (
        "from pose_apps.bench.attention_costs import LayerCase, measure\n"
        f"case = LayerCase(name={name!r}, length={length}, batch=1, dim={dim}, heads=2, device='cpu')\n"
        "cost = measure(case, seconds=0.01)\n"
        "print(cost.milliseconds, cost.megabytes)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    return map(float, done.stdout.split())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_attention_is_timed_in_a_process_of_its_own():
    milliseconds, megabytes = measured_apart("fnet", 64, 16)
    assert 0 < milliseconds < 1000
    assert 0 <= megabytes < 1000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_multi_dimensional_attention_memory_is_bounded():
    _, megabytes = measured_apart("multi-dimensional", 512, 64)
    assert megabytes < 4 * 512 * 512 * 64 / 2**20 / 2  # half of what one feature each of all pairs takes


def test_sequence_lengths_over_the_time_budget_are_skipped(monkeypatch):
    from pose_apps.bench import attention_costs

    quick = {"softmax": 1.0, "local": 30.0}  # ms at 10 frames, and as the square of the length
    monkeypatch.setattr(
        attention_costs,
        "measure",
        lambda case, seconds: Cost(milliseconds=quick[case.name] * (case.length / 10) ** 2, megabytes=1.0),
    )
    costs = attention_costs.measure_all([10, 20, 80], max_seconds=1.0, names=("softmax", "local"))
    assert {name: list(row) for name, row in costs.items()} == {"softmax": [10, 20, 80], "local": [10, 20]}
    assert table(costs, [10, 20, 80]).splitlines()[3] == "| local | 30.00, 1.00 | 30.00, 1.00 | - | - |"


@pytest.mark.parametrize("name", ["softmax, map shared by 2", "blocks, 17 joints, 1 bone"])
def test_multi_layer_and_joint_variants_return_every_frame(name):
    from pose_apps.bench.attention_costs import LayerCase, prepare

    y = prepare(LayerCase(name=name, length=30, batch=1, dim=16, heads=2, device="cpu"))()
    assert y.shape == (17 if "joints" in name else 1, 30, 16)


def test_export_benchmark_reports_formats_and_lifter(tmp_path, capsys):
    out = tmp_path / "figures.json"
    assert main(["exports", "--frames", "60", "--formats", "bvh,csv", "--json", str(out)]) == 0
    figures, printed = json.loads(out.read_text()), capsys.readouterr().out
    assert list(figures["formats"]) == ["bvh", "csv"]
    assert figures["together"]["microseconds"] > 0
    assert all(figures["lifter"][name] > 0 for name in ("offline", "stream"))
    assert [line.split()[0] for line in printed.splitlines()] == [
        "format",
        "bvh",
        "csv",
        "together",
        "offline",
        "stream",
    ]
    assert main(["exports", "--formats", "xyz"]) == 2
