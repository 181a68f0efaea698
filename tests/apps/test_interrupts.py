"""Ctrl-C: how a run ends, without a traceback."""

import signal
import subprocess
import sys

import pytest
from pose_apps.support.interrupts import Interrupts

pytestmark = pytest.mark.usefixtures("usual_signals")


def interrupt(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def test_first_interrupt_only_sets_the_stop_event():
    with Interrupts() as interrupts:
        assert not interrupts.stop.is_set()
        interrupt(3)
        assert interrupts.stop.is_set()


@pytest.mark.parametrize("tolerated", [0, 1])
def test_only_one_interrupt_beyond_the_tolerated_raises(tolerated):
    def work(interrupts: Interrupts) -> None:
        with interrupts.raised_after(tolerated):
            try:
                interrupt(tolerated)
                assert interrupts.stop.is_set() == bool(tolerated)
                interrupt()
            finally:
                interrupt(2)

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            work(interrupts)
        interrupt()
    assert interrupts.stop.is_set()


def test_signal_handler_is_restored_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def run(code: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    return done.returncode, done.stdout, done.stderr


def test_interrupt_during_import_prints_one_line():
    code = "import pose_apps, signal; signal.raise_signal(signal.SIGINT)"
    assert run(code) == (-signal.SIGINT, "", "interrupted\n")  # a shell reports 130


def test_interrupt_during_exit_prints_no_traceback():
    code = """
import signal, sys
from pose_apps.support.command import run_command

@run_command
def main(argv=None):
    signal.raise_signal(signal.SIGINT)

status = main()
signal.raise_signal(signal.SIGINT)
sys.exit(status)
"""
    assert run(code) == (130, "", "interrupted\n")


def test_interrupt_in_a_callback_ends_the_command():
    """Python ignores exceptions of such callbacks: Ctrl-C in one did nothing."""
    code = """
import pose_apps, signal, time
class Freed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
Freed()
time.sleep(100)
"""
    assert run(code) == (-signal.SIGINT, "", "interrupted\n")
