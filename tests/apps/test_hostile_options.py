"""Untrusted settings and sources: each error is one line, soon."""

import pytest
from command_errors import error_line
from pose_apps.run import main
from pose_apps.train import main as train

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{before}'])}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "uses an alias"),
        ("max_people: 3\n" + 70_000 * "#", "a config file has at most 65536"),
        ("max_people: " + 100 * "[", "nests more than 20 deep"),
        ("max_people: .inf", "expected a whole number, got inf"),
        ("detect_every: .nan", "expected a number, got nan"),
        ("seed: 18446744073709551616", "out of range"),
        ("max_people: &a 3", "no.mp4"),  # an anchor that nothing refers to is harmless
    ],
)
def test_invalid_config_files_give_a_one_line_error(tmp_path, text, said, capsys):
    (tmp_path / "a.yaml").write_text(text)
    assert main(["no.mp4", "--out", str(tmp_path / "out"), "--config", str(tmp_path / "a.yaml")]) == 2
    assert said in error_line(capsys)


@pytest.mark.parametrize(
    ("text", "said"),
    [(BOMB, "uses an alias"), ("train: {seed: 18446744073709551616}", "seed: must be 0 to 2^63")],
)
def test_invalid_recipes_give_a_one_line_error(tmp_path, text, said, capsys):
    (tmp_path / "a.yaml").write_text(text)
    arguments = ["lifter", "--data.mocap", "no.npz", "--out", str(tmp_path / "out"), "--quiet"]
    assert train([*arguments, "--config", str(tmp_path / "a.yaml")]) == 2
    assert said in error_line(capsys)


@pytest.mark.parametrize("address", ["http://[::1", "http://", "http://x:99999999/", "http://x:port/", "rtsp://x:0/a"])
def test_invalid_addresses_give_a_one_line_error(tmp_path, address, capsys):
    assert main([address, "--out", str(tmp_path / "out")]) == 2
    assert error_line(capsys).startswith("error: cannot read this address: ")
