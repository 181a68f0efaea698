"""Processes that a test starts end with it, whatever happens in it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def ended_processes() -> Iterator[list[subprocess.Popen]]:
    """What is started inside is killed at the end, if it still runs. Gives the processes, as they are started."""
    started: list[subprocess.Popen] = []
    begin = subprocess.Popen.__init__

    def recorded(process: subprocess.Popen, *arguments, **options) -> None:
        begin(process, *arguments, **options)
        started.append(process)

    try:
        with mock.patch.object(subprocess.Popen, "__init__", recorded):
            yield started
    finally:
        for process in started:
            if process.poll() is None:
                with process:  # which closes its pipes and waits for it
                    process.kill()
