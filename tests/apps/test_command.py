"""Exit statuses and one-line errors, as every command has them."""

import errno
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonargparse import ArgumentParser
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import ConfigFile, add_options, config_of
from pose_apps.weights import main as pose_weights

from pose.errors import PoseError, UsageError
from pose.utils.options import REQUIRED, Options, argument, option


def raising(error: BaseException):
    @run_command
    def main(argv=None):
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (PoseError("clip.mp4 holds no video"), 1, "clip.mp4 holds no video"),
        (UsageError("two\nlines"), 2, "two lines"),
        (OSError(errno.ENOSPC, "No space left on device", "out.json"), 1, "out.json: No space left on device"),
        (OSError(errno.EIO, "Input/output error"), 1, "Input/output error"),
        (
            ImportError("libGL.so.1: cannot open shared object file: No such file or directory"),
            1,
            "libGL.so.1: cannot open shared object file: No such file or directory; "
            "if it is cv2's: python -m pip install --force-reinstall --no-deps opencv-python-headless",
        ),
    ],
)
def test_errors_print_one_line_and_set_the_exit_status(error, status, line, capsys):
    assert raising(error)([]) == status
    assert capsys.readouterr() == ("", f"error: {line}\n")


@pytest.mark.parametrize(
    ("interrupt", "line"),
    [(KeyboardInterrupt(), "interrupted"), (KeyboardInterrupt("9 frames kept"), "interrupted: 9 frames kept")],
)
def test_ctrl_c_exits_with_130(interrupt, line, capsys):
    assert raising(interrupt)([]) == 130
    assert capsys.readouterr() == ("", f"{line}\n")


@pytest.mark.parametrize("status", [None, 0, 3])
def test_the_status_of_the_command_is_kept(status):
    assert run_command(lambda argv=None: status)([]) == (status or 0)


def test_unexpected_exceptions_keep_their_traceback():
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())([])
    with pytest.raises(OSError, match="no errno"):
        raising(OSError("no errno"))([])


@dataclass(frozen=True, kw_only=True)
class Asked(Options):
    video: str = option(REQUIRED, "a file")
    device: str = option("auto", "where", choices=("auto", "cpu"))
    people: int = option(1, "how many")
    size: int | None = option(None, "px")
    at_most: int = option(2, "limit", minimum=1, maximum=4)
    score: float = option(0.5, "at least")
    loop: bool = option(False, "again")
    files: list[str] = argument([], "more")


def asked(*argv: str) -> Asked:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", action=ConfigFile)
    add_options(parser, Asked)
    return config_of(Asked, parse_arguments(parser, argv))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--vidio", "a"], "unknown option '--vidio': did you mean --video?"),
        (
            ["--qqq=1"],
            "unknown option '--qqq=1': known: --at-most, --config, --device, --help, --help-all, --loop, --no-loop, "
            "--people, --print-completion, --print_config, --score, --size, --version, --video",
        ),
        (["--device", "tpu"], "--device: expected one of auto, cpu, got tpu"),
        (["--people", "many"], "--people: expected a whole number, got many"),
        (["--people", "2.5"], "--people: expected a whole number, got 2.5"),
        (["--size", "big"], "--size: expected a whole number, got big"),
        (["--score", "nan"], "--score: expected a number, got nan"),
        (["--people"], "--people: expected one argument"),
        (["--loop=yes"], "--loop or --no-loop: takes no value"),
        (["-x"], "unrecognized arguments: -x"),
        (["--config", "none.yaml"], "--config: none.yaml: no such file"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(argv, words):
    with pytest.raises(UsageError) as caught:
        asked("--video", "clip.mp4", *argv)
    assert str(caught.value) == words


def test_a_missing_option_is_named():
    with pytest.raises(UsageError, match="missing: --video"):
        asked()


def test_out_of_range_value_is_quoted_as_typed(capsys):
    command = run_command(lambda argv=None: asked(*argv) and 0)
    assert command(["--video", "clip.mp4", "--at-most", "9"]) == 2
    assert capsys.readouterr().err == "error: --at-most: 9 is out of range; allowed: 1 to 4\n"


def test_file_named_like_an_option_is_not_rewritten_in_messages(capsys):
    def fail(argv=None):
        asked(*argv)
        raise UsageError("at_most: no such file")

    assert run_command(fail)(["--video", "a", "at_most"]) == 2
    assert capsys.readouterr().err == "error: at_most: no such file\n"
    assert run_command(fail)(["--video", "a"]) == 2
    assert capsys.readouterr().err == "error: --at-most: no such file\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command given; known: list, fetch, verify, bundle"),
        (["fetsh"], "unknown command 'fetsh': did you mean fetch?"),
        (["qqq", "--json"], "unknown command 'qqq': known: list, fetch, verify, bundle"),
        (["list", "--jsn"], "unknown option '--jsn': did you mean --json?"),
    ],
)
def test_unknown_subcommand_lists_the_known_ones(words, message, capsys):
    assert pose_weights(words) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("peopel: 3", "--config: FILE: unknown key 'peopel': did you mean people?"),
        ("device: tpu", "--config: FILE: device: expected one of auto, cpu, got tpu"),
        ("people: some", "--config: FILE: people: expected a whole number, got some"),
        ("people: {a: 1}", "--config: FILE: people: expected a whole number, got {'a': 1}"),
        ("people: yes", "--config: FILE: people: expected a whole number, got True"),
        ("people: 1.5", "--config: FILE: people: expected a whole number, got 1.5"),
        ("score: .nan", "--config: FILE: score: expected a number, got nan"),
        ("people: null", "people: needs a value"),
        ("loop: 3", "--config: FILE: loop: expected true or false, got 3"),
        ("files: a.npz", "--config: FILE: files: expected a list, such as [one, two], got a.npz"),
        ("files: [[a]]", "--config: FILE: files: expected text, got ['a']"),
        ("3: a", "--config: FILE: unknown key '3': known: KEYS"),
        (
            "help: yes",
            "--config: FILE: unknown key 'help': known: at_most, device, files, loop, people, score, size, video",
        ),
        (
            "config: other.yaml",
            "--config: FILE: unknown key 'config': known: at_most, device, files, loop, people, score, size, video",
        ),
        ("[1, 2]", "--config: FILE: expected lines such as `max_people: 3`"),
        ("a: [1", "--config: FILE: not readable as YAML: line 1: expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_config_files_are_validated_like_options(text, words, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(text)
    with pytest.raises(UsageError) as caught:
        asked("--video", "a", "--config", str(config))
    known = "at_most, device, files, loop, people, score, size, video"
    assert str(caught.value) == words.replace("FILE", str(config)).replace("KEYS", known)


def test_options_are_parsed_to_their_types(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("video: 0\nscore: 1\nsize: null\nloop: yes\n")
    assert asked("--config", str(config)) == Asked(video="0", score=1.0, loop=True)
    config.write_text("files: [a, ~/b, 3]\n")
    assert asked("--video", "a", "--config", str(config)).files == ["a", str(Path.home() / "b"), "3"]
    assert asked("--video", "a", "--config", str(config), "c").files == ["c"]
    assert asked("--video", "a").files == []
    assert asked("--video", "a", "--size", "7", "--score", "1e-3", "--no-loop") == Asked(video="a", size=7, score=0.001)


def test_help_exits_with_0(capsys):
    with pytest.raises(SystemExit) as caught:
        run_command(lambda argv=None: asked(*argv) and 0)(["--help"])
    assert caught.value.code == 0
    assert "--people" in capsys.readouterr().out


def test_tilde_in_paths_is_expanded(monkeypatch, tmp_path):
    """Also where the shell leaves it alone: behind `=`, in a file of settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    parser = ArgumentParser(prog="pose-test", exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_argument("--out", type=str)
    parser.add_argument("--lifter", type=str)
    parser.add_argument("--name", type=str, default="a~b")
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("results", nargs="*", type=str)
    settings = tmp_path / "settings.yaml"
    settings.write_text("lifter: ~/mine.safetensors\n")
    parsed = parse_arguments(parser, ["--config", str(settings), "--out=~/poses", "~/first", "second"])
    assert (parsed.out, parsed.lifter) == (str(tmp_path / "poses"), str(tmp_path / "mine.safetensors"))
    assert parsed.results == [str(tmp_path / "first"), "second"]
    assert (parsed.name, parsed.size) == ("a~b", 3)
