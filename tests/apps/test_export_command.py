"""`pose-export`: a file that another program can use, and mistakes in one line."""

import numpy as np
import pytest
import torch
from command_errors import error_line
from pose_apps.export import main

from pose.lifting.exchange import WindowLift
from pose.lifting.torch_lifter import TorchLifter


@pytest.mark.filterwarnings("ignore:`torch.jit.load` is")  # of a category that depends on torch
def test_exported_lifter_runs_without_the_package(tiny_lifter, tmp_path, capsys, rng):
    out = tmp_path / "lifter.ts"
    assert main([str(tiny_lifter), "--format", "torchscript", "--out", str(out)]) == 0
    assert "maximum difference to PyTorch" in capsys.readouterr().out
    keypoints = torch.from_numpy(rng.uniform(100, 500, (3, 31, 17, 2)).astype(np.float32))
    camera = torch.tensor([[600.0, 0, 320], [0, 600, 240], [0, 0, 1]], dtype=torch.float64).expand(3, 3, 3)
    times = (torch.arange(31, dtype=torch.float64) / 25).expand(3, 31)
    flags = (torch.tensor([True, False, True]), torch.tensor([False, False, True]))
    inputs = (keypoints, torch.ones(3, 31, 17), times, camera, *flags)
    with torch.inference_mode():
        expected = WindowLift(TorchLifter.load(tiny_lifter).network)(*inputs)
        for got, want in zip(torch.jit.load(str(out))(*inputs), expected, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_existing_export_is_kept_without_overwrite(tiny_lifter, tmp_path, capsys):
    out = tmp_path / "lifter.ts"
    out.write_text("mine")
    arguments = [str(tiny_lifter), "--format", "torchscript", "--out", str(out)]
    assert main(arguments) == 2
    assert "give --overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main([*arguments, "--overwrite"]) == 0
    assert out.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody", "--format", "onnx", "--out", "x.onnx"], "nobody is neither a file nor one of"),
        (["offline", "--format", "tflite", "--out", "x"], "onnx"),
        (["offline", "--format", "onnx", "--out", "nowhere/x.onnx"], "no such folder: nowhere"),
        (["offline", "--format", "onnx"], "--out"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in error_line(capsys)
