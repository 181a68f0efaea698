"""`pose-lift` on keypoints of other programs."""

import json

import numpy as np
import pytest
from pose_apps.lift import main


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    entries = [
        {"image_id": f, "track_id": t, "keypoints": rng.uniform(50, 400, 51).tolist()} for f in range(9) for t in (4, 6)
    ]
    (tmp_path / "people.json").write_text(json.dumps(entries))
    return tmp_path


def test_json_input_writes_one_file_per_person(results, tiny_lifter, capsys):
    call = ["people.json", "--fps", "30", "--image-size", "640x480", "--lifter", str(tiny_lifter)]
    assert main(call) == 0
    assert capsys.readouterr().out == "people-3d-person4.npz: 9 frames\npeople-3d-person6.npz: 9 frames\n"
    with np.load("people-3d-person6.npz") as answer:
        assert answer["joints3d"].shape == (9, 17, 3)
        np.testing.assert_allclose(answer["timestamps"], np.arange(9) / 30)
    assert main(call) == 2
    assert "people-3d-person4.npz exists" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["640", "0x480", "640 x 480"])
def test_invalid_image_size_is_rejected(results, capsys, size):
    assert main(["people.json", "--fps", "30", "--image-size", size]) == 2
    assert "expected width x height in px, such as 1920x1080" in capsys.readouterr().err
