"""A mailbox keeps the newest, never blocks who puts, and wakes who waits."""

import threading
import time

import pytest

from pose.live import Mailbox


def test_full_mailbox_drops_the_oldest():
    mailbox: Mailbox[int] = Mailbox(3)
    for number in range(10):
        mailbox.put(number)
    mailbox.close()
    assert list(mailbox) == [7, 8, 9]
    assert mailbox.dropped == 7


def test_get_respects_its_timeout():
    mailbox: Mailbox[int] = Mailbox(1)
    begun = time.monotonic()
    assert mailbox.get(timeout=0.05) is None
    assert time.monotonic() - begun >= 0.05
    assert mailbox.take() is None


def test_put_wakes_a_waiting_reader():
    mailbox: Mailbox[int] = Mailbox(1)
    taken: list[int | None] = []
    thread = threading.Thread(target=lambda: taken.append(mailbox.get(timeout=60)))
    thread.start()
    mailbox.put(5)
    thread.join(60)
    assert taken == [5]


def test_close_wakes_readers_and_rejects_items():
    mailbox: Mailbox[int] = Mailbox(2)
    taken: list[int | None] = []
    thread = threading.Thread(target=lambda: taken.append(mailbox.get()))
    thread.start()
    mailbox.close()
    thread.join(60)
    mailbox.put(1)
    assert taken == [None]
    assert mailbox.closed
    assert mailbox.take() is None


def test_zero_capacity_is_rejected():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Mailbox(0)


def test_a_smaller_capacity_drops_the_oldest_items():
    mailbox = Mailbox[int](8, room=lambda number: 3 if number == 8 else 100)  # 100: not above the capacity
    for number in range(9):
        mailbox.put(number)
    assert [mailbox.take() for _ in range(4)] == [6, 7, 8, None]
    assert mailbox.dropped == 6
    for number in range(10, 19):
        mailbox.put(number)
    assert mailbox.take() == 11
