"""What two do at the same moment: each test stops one of them at the step where the other one comes."""

import os
import shutil
import threading
from pathlib import Path

from pose.utils import work_folder
from pose.utils.silence import silenced
from pose.utils.work_folder import folder_lock


def test_who_comes_to_a_folder_that_is_being_removed_is_not_alone_in_it(tmp_path, monkeypatch):
    """As two programs that begin at the same time, and both clean up."""
    folder = tmp_path / "left"
    folder.mkdir()
    lock = work_folder._lock

    def late(place: Path) -> int | None:
        shutil.rmtree(place)
        return lock(place)

    monkeypatch.setattr(work_folder, "_lock", late)
    with folder_lock(folder) as alone:
        assert alone is False


def test_two_threads_that_silence_a_stream_give_it_back(tmp_path):
    """The first one leaves while the second one is within."""
    path, entered, left = tmp_path / "errors", threading.Event(), threading.Event()

    def second() -> None:
        with silenced(stream, stream.fileno()):
            entered.set()
            left.wait(60)

    with path.open("w") as stream:
        thread = threading.Thread(target=second)
        with silenced(stream, stream.fileno()):
            thread.start()
            entered.wait(0.3)  # where it may come in
            os.write(stream.fileno(), b"not to be read")
        left.set()
        thread.join()
        os.write(stream.fileno(), b"said")
    assert path.read_text() == "said"
