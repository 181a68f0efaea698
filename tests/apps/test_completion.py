"""--print-completion, asked as bash asks when the user presses Tab."""

import shutil
import subprocess

import pytest
from pose_apps import run, weights
from pose_apps.evaluate import command as evaluate
from pose_apps.webcam import command as webcam

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")

COMMANDS = {"run": run.main, "eval": evaluate.main, "weights": weights.main, "webcam": webcam.main}
# Sources a script and calls the function that it registers; the reply is printed, a word a line.
TAB = """
source "$1"; shift
function_of() { local words; read -ra words <<< "$(complete -p "$1")"; local i
  for i in "${!words[@]}"; do [ "${words[i]}" = -F ] && echo "${words[i + 1]}"; done; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
"$(function_of "$1")" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(capsys):
    """What a command prints for a shell."""

    def printed(name: str, shell: str) -> str:
        with pytest.raises(SystemExit) as end:
            COMMANDS[name](["--print-completion", shell])
        assert not end.value.code
        return capsys.readouterr().out

    return printed


@pytest.fixture
def tab(script, tmp_path):
    """What bash offers for the last of some words."""

    def offered(*words: str) -> set[str]:
        path = tmp_path / f"{words[0]}-completion"
        if not path.exists():
            path.write_text(script(words[0].removeprefix("pose-"), "bash"))
        reply = subprocess.run(
            ["bash", "--norc", "-c", TAB, "bash", str(path), *words],
            capture_output=True, text=True, check=True, timeout=200, cwd=tmp_path,
        )  # fmt: skip
        assert not reply.stderr
        return {word for line in reply.stdout.splitlines() if (word := line.strip())}

    return offered


def test_bash_completes_options(tab):
    assert tab("pose-run", "--max") == {"--max-people"}
    assert tab("pose-run", "clip.mp4", "--no-ov") == {"--no-overlay", "--no-overwrite"}


def test_bash_completes_option_values(tab):
    assert tab("pose-run", "--device", "") == {"auto", "cpu", "cuda"}
    assert "rtmpose-m" in tab("pose-run", "--estimator", "rtmpose-")


def test_bash_completes_files_and_folders(tab, tmp_path):
    (tmp_path / "clip.mp4").touch()
    (tmp_path / "clips").mkdir()
    assert tab("pose-run", "--video", "cl") == {"clip.mp4", "clips"}
    assert tab("pose-run", "cl") == {"clip.mp4", "clips"}
    assert tab("pose-run", "--out", "cl") == {"clips"}


def test_bash_completes_subcommands(tab):
    assert tab("pose-eval", "vi") == {"video"}
    assert tab("pose-eval", "video", "--trac") == {"--tracker"}
    assert tab("pose-weights", "fe") == {"fetch"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_scripts_name_the_options(script, shell):
    printed = script("webcam", shell)
    assert "max-people" in printed
    assert "blazepose" in printed
