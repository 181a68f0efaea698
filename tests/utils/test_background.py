"""Work behind: in order, bounded, complete, and no error is lost."""

import threading

import pytest

from pose.utils.background import in_background


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
