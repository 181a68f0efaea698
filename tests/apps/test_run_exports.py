"""`pose-run --formats` with the formats of other programs."""

import pytest
from pose_apps.run import main

from pose.export import FORMATS
from pose.utils.written_files import RECORD, WrittenFiles

pytestmark = pytest.mark.usefixtures("at_hand")


@pytest.fixture
def arguments(videos, tiny_lifter, tmp_path):
    clip = [str(videos / "dance.mp4"), "--out", str(tmp_path / "out"), "--end", "0.3", "--lifter", str(tiny_lifter)]
    return [*clip, "--formats", "bvh,trc,angles"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_formats_option_writes_exports_beside_the_result(arguments, tmp_path, capsys):
    assert main([*arguments, "--verbose"]) == 0
    assert names(tmp_path / "out") == [
        RECORD,
        "poses-angles.csv",
        "poses-person1.bvh",
        "poses-person1.trc",
        "poses.npz",
    ]
    said = capsys.readouterr().out
    assert "space: world frame with y up, floor at 0" in said
    line = next(line for line in said.splitlines() if line.startswith(f"{tmp_path / 'out' / 'poses-person1.bvh'}: "))
    assert line.removeprefix(f"{tmp_path / 'out' / 'poses-person1.bvh'}: ").startswith("9 frames at 30")
    lines = (tmp_path / "out" / "poses-person1.bvh").read_text().splitlines()
    assert "Frames: 9" in lines


def test_space_option_selects_the_export_frame(arguments, tmp_path, capsys):
    assert main([*arguments, "--space", "camera", "--verbose"]) == 0
    assert "space: camera frame with y up (x, -y, -z), not aligned with gravity" in capsys.readouterr().out
    assert main([*arguments, "--space", "world", "--no-world", "--overwrite"]) == 2
    assert capsys.readouterr().err == "error: --space: --no-world computes no world to export; give --space camera\n"


def test_overwrite_removes_earlier_exports(arguments, tmp_path, capsys):
    old = tmp_path / "out" / "poses-person7.bvh"
    old.parent.mkdir()
    old.write_text("of another run")
    record = WrittenFiles(old.parent)
    record.add(old)
    record.save()
    assert main(arguments) == 2
    assert "poses-person7.bvh exists; give --overwrite" in capsys.readouterr().err
    assert main([*arguments, "--overwrite", "--quiet"]) == 0
    assert not old.exists(), "files of two runs side by side belong to neither"


def test_user_files_survive_overwrite(arguments, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*arguments, "--quiet"]) == 0
    mine = {name: f"mine: {name}" for name in ("poses-person1-cleaned-by-hand.bvh", "poses-person7.bvh", ".new-x")}
    for name, text in mine.items():
        (out / name).write_text(text)
    (out / "poses-person1.bvh").write_text("cleaned by hand under its own name")
    (out / "overlay.mp4").symlink_to(tmp_path)
    assert main([*arguments, "--overwrite", "--quiet"]) == 0
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith(f"warning: {out / 'poses-person1.bvh'} has changed since pose-run wrote it")
    assert {name: (out / name).read_text() for name in mine} == mine
    assert (out / "poses-person1.bvh.kept").read_text() == "cleaned by hand under its own name"
    assert (out / "poses-person1.bvh").read_text().startswith("HIERARCHY")
    assert (out / "overlay.mp4").is_symlink()


def test_unknown_format_is_rejected_before_processing(arguments, tmp_path, capsys):
    assert main([*arguments, "--formats", "json,xyz"]) == 2
    said = capsys.readouterr().err
    assert said == f"error: --formats: 'xyz' is unknown; known: json, npz, overlay, {', '.join(FORMATS)}\n"
    assert not (tmp_path / "out").exists()
