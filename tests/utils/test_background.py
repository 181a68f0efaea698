"""Work behind and reading ahead in threads: in order, bounded, complete; a fair lock."""

import subprocess
import sys
import threading

import pytest

from pose.utils.background import FairLock, in_background


def test_background_work_is_done_in_order():
    done, threads = [], set()

    def work(number):
        done.append(number)
        threads.add(threading.get_ident())

    with in_background(work) as give:
        for number in range(100):
            give(number)
    assert done == list(range(100))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_background_queue_is_bounded():
    gate, given = threading.Event(), []

    def ask():
        with in_background(lambda _: gate.wait(), max_queued=2) as give:
            for number in range(10):
                give(number)
                given.append(number)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(timeout=0.2)
    assert len(given) <= 3  # two wait, one is in work
    gate.set()
    asking.join(timeout=60)
    assert given == list(range(10))


def test_background_error_is_raised():
    done = []

    def work(number):
        if number == 3:
            raise OSError("the disk is full")
        done.append(number)

    def ask(numbers):
        with in_background(work) as give:
            for number in numbers:
                give(number)

    with pytest.raises(OSError, match="the disk is full"):
        ask(range(10_000))
    assert done == [0, 1, 2]
    with pytest.raises(OSError, match="the disk is full"):
        ask([3])


def test_error_of_the_block_is_not_replaced():
    def ask():
        with in_background(lambda _: None) as give:
            give(1)
            raise KeyError

    with pytest.raises(KeyError):
        ask()


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


def test_a_thread_that_asks_again_waits_for_the_others():
    lock, order, threads = FairLock(), [], []

    def enter(name):
        with lock:
            order.append(name)

    with lock:
        for name in ("second", "third"):
            threads.append(threading.Thread(target=enter, args=(name,)))
            threads[-1].start()
            while len(lock._waiting) < len(threads):
                pass
    with lock:
        order.append("first again")
    for thread in threads:
        thread.join()
    assert order == ["second", "third", "first again"]


def test_one_thread_at_a_time_holds_it_after_errors():
    lock, inside, most = FairLock(), [], []

    def work():
        for _ in range(200):
            try:
                with lock:
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
                    raise ValueError
            except ValueError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 800
    assert set(most) == {1}
