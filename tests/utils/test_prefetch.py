"""Reading ahead in a thread."""

import subprocess
import sys

SUSPENDED = """
import itertools, threading
from pose.utils.background import prefetch
from pose.utils.progress import StageTimes

frames = prefetch(itertools.count(), StageTimes(), threading.Event())
next(frames)
kept = [frames]
kept.append(kept)  # a cycle, as an exception's traceback makes: only the end of the interpreter closes the generator
"""


def test_a_program_ends_while_frames_are_still_read():
    subprocess.run([sys.executable, "-c", SUSPENDED], check=True, timeout=60)
