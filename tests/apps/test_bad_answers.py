"""What commands answer to unusual calls, and to untrusted settings and sources: one line, soon."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest
from command_errors import error_line
from pose_apps.batch.command import main as batch
from pose_apps.convert import main as convert
from pose_apps.run import main
from pose_apps.run import main as run
from pose_apps.support.intrinsics import read_intrinsics
from pose_apps.train import main as train
from pose_apps.webcam.command import main as webcam
from pose_fakes import run_info, seen_result

from pose.errors import PoseError
from pose.functions import convert as convert_in_python
from pose.live.web.settings import WebSettings
from pose.results import NpzWriter
from pose.structures.skeletons import H36M17
from pose.utils.whole_file import whole_file
from pose.utils.written_files import KEPT, RECORD
from pose.video.images import read_image


@pytest.fixture
def poses(tmp_path) -> Path:
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for frame in range(20):
            writer.write(seen_result([(0, 0, 4)], index=frame, time=frame / 25))
    return path


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_a_damaged_image_writes_nothing_to_stderr(tmp_path, capfd, rng, suffix):
    path = tmp_path / f"a{suffix}"
    _, data = cv2.imencode(suffix, rng.integers(0, 255, (64, 64, 3), np.uint8))
    content = bytearray(data.tobytes())
    content[len(content) // 2 : len(content) // 2 + 20] = bytes(20)
    path.write_bytes(content[: len(content) * 3 // 4])
    read_image(path)
    os.write(2, b"another message\n")
    assert capfd.readouterr().err == "another message\n"


def test_messages_of_other_threads_are_kept_while_an_image_is_decoded(capfd):
    code = "import os; from pose.utils.native_stderr import quiet_image_decoders as q\n"
    code += "with q(): os.write(2, b'libpng error: x\\nmine\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b"mine\n"


def test_brackets_of_an_ipv6_address_are_accepted():
    assert WebSettings(host="[::1]").host == "::1"


@pytest.mark.parametrize("below", [[], ["a", "b"]])
def test_web_refuses_a_file_in_place_of_the_folder_for_recordings(tmp_path, capsys, below):
    (tmp_path / "taken").write_text("mine")
    out = tmp_path.joinpath("taken", *below)
    assert webcam(["--web", "--out", str(out)]) == 2
    assert error_line(capsys).startswith(f"error: --out {out}: ")


def test_once_needs_a_source_that_ends(capsys):
    assert webcam(["--web", "--once"]) == 2
    assert error_line(capsys).startswith("error: --once: needs --source")


@pytest.mark.parametrize("words", [["--zzzzqqqq"], ["--" + "a" * 5000]])
def test_an_unknown_option_is_answered_in_a_short_line(words, capsys):
    assert run(["clip.mp4", *words]) == 2
    assert len(error_line(capsys)) < 160


def test_a_long_value_is_not_repeated(poses, capsys):
    assert convert([str(poses), "--to", "a" * 5000]) == 2
    assert len(error_line(capsys)) < 400
    assert run(["clip.mp4", "--max-people", "9" * 3000 + "x"]) == 2
    assert len(error_line(capsys)) < 200


@pytest.mark.parametrize("main", [batch, webcam])
def test_help_contains_no_control_characters(main, capsys):
    with pytest.raises(SystemExit):
        main(["--help-all"])
    said = capsys.readouterr().out
    assert [character for character in said if not character.isprintable() and character != "\n"] == []


def test_conversions_at_the_same_time_keep_no_file_of_each_other(poses, tmp_path):
    """None of them is a user's file. Both write the same formats."""
    out, statuses = tmp_path / "out", []
    code = "import sys; from pose_apps.convert import main; sys.exit(main())"
    words = [sys.executable, "-c", code, str(poses), "--out", str(out), "--overwrite", "--quiet", "--to"]
    for _ in range(2):
        processes = [subprocess.Popen([*words, to]) for to in ("bvh,csv", "csv,bvh")]
        statuses += [process.wait(200) for process in processes]
    assert statuses == [0] * 4
    names = sorted(path.name for path in out.iterdir())
    assert names == [RECORD, "poses-person1.bvh", "poses.csv"]
    (out / "poses.csv").write_text("mine")
    assert convert([str(poses), "--out", str(out), "--overwrite", "--quiet", "--to", "csv"]) == 0
    assert (out / f"poses.csv{KEPT}").read_text() == "mine"


def test_threads_may_convert_into_one_folder(poses, tmp_path):
    out = tmp_path / "out"
    threads = [
        threading.Thread(target=convert_in_python, args=(poses, [to]), kwargs={"out": out, "overwrite": True})
        for to in ("bvh", "csv", "trc", "csv")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [path.name for path in out.iterdir() if KEPT in path.name]


@pytest.mark.parametrize(
    ("words", "said"), [(["--end", "0"], "--end 0: is not after"), (["--cache", "{file}"], "is a file")]
)
def test_batch_checks_options_once_and_not_for_each_clip(tmp_path, capsys, words, said):
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "a.mp4").write_text("no video")
    words = [word.format(file=tmp_path / "taken") for word in words]
    assert batch([str(tmp_path / "a.mp4"), "--out", str(tmp_path / "out"), *words]) == 2
    assert said in error_line(capsys)
    assert not (tmp_path / "out").exists()


def test_an_error_names_the_file_and_not_its_hidden_part(tmp_path):
    with pytest.raises(PoseError) as caught, whole_file(tmp_path / "a.glb") as hidden:
        raise PoseError(f"cannot write {hidden}: no space")
    assert str(caught.value) == f"cannot write {tmp_path / 'a.glb'}: no space"


def test_a_mark_of_byte_order_is_accepted_in_a_file_of_intrinsics(tmp_path):
    texts = {"a.json": "[[500, 0, 320], [0, 500, 240], [0, 0, 1]]", "a.txt": "500 0 320\n0 500 240\n0 0 1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert read_intrinsics(str(tmp_path / name))[0].tolist() == [500, 0, 320]


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
