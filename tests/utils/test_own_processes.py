"""The tests' own: no process that a test started outlives it."""

import subprocess
import sys

import pytest
from own_processes import ended_processes

FOREVER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(3600)"]


def fail_beside_a_process() -> None:
    process = subprocess.Popen(FOREVER, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    raise AssertionError("of the test")


def test_a_process_ends_though_the_test_fails():
    with pytest.raises(AssertionError, match="of the test"), ended_processes() as started:
        fail_beside_a_process()
    (process,) = started
    assert process.returncode not in (None, 0)
    assert process.stdout.closed


def test_one_that_has_ended_is_left_alone():
    with ended_processes() as started:
        assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
    assert [process.returncode for process in started] == [0]


@pytest.fixture(scope="module")
def left() -> list[subprocess.Popen]:
    return []


def test_every_test_is_held_to_it(left):
    left.append(subprocess.Popen(FOREVER))
    assert left[0].poll() is None


def test_what_the_test_before_left_has_ended(left):
    assert [process.returncode for process in left] in ([], [-9], [1])
