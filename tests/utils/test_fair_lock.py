"""A lock that threads get in the order in which they asked for it."""

import threading

from pose.utils.background import FairLock


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
