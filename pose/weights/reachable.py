"""A weight that something else can stand in for: fetched where its server answers, and otherwise not waited for.

A machine that reaches a package mirror alone must not wait at every start for a server that it never reaches: whether
it answers is known within `PATIENCE`, and a no is remembered for a day in a file in the cache.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path

from pose.system.progress import say
from pose.system.whole_file import write_whole
from pose.weights.catalogue import Download, Weight, ZipMember
from pose.weights.store import CorruptWeightError, FetchError, Store

PATIENCE = 3.0  # s
REMEMBERED = 86_400.0  # s


def locate_if_reachable(store: Store, name: str) -> Path | str:
    """Path of the checked file, fetched if need be and its server answers; else the reason why it could not be had.

    Raises `CorruptWeightError` for a damaged file in a folder of the user's.
    """
    weight = store.weight(name)
    try:
        found = store.find(name)
    except CorruptWeightError as error:
        if error.path.parent != store.cache:
            raise
        found = None
    if found:
        return found
    if reason := remembered(store, weight):
        return reason
    reason = unreachable(store, weight)
    if reason is None:
        try:
            return store.fetch(name)
        except FetchError as error:
            reason = str(error.__cause__ or error)
    remember(store, weight, reason)
    return reason


def remembered(store: Store, weight: Weight) -> str | None:
    """Why the weight could not be had within the last day."""
    record = _record(store, weight)
    with suppress(OSError):
        if 0 <= time.time() - record.stat().st_mtime < REMEMBERED:
            return record.read_text(encoding="utf-8").strip() or None
    return None


def remember(store: Store, weight: Weight, reason: str) -> None:
    with suppress(OSError):
        store.cache.mkdir(parents=True, exist_ok=True)
        write_whole(_record(store, weight), f"{reason}\n")


def unreachable(store: Store, weight: Weight) -> str | None:
    """Why the weight's server does not answer, None where it does. Takes `PATIENCE` at most, whatever hangs."""
    if not isinstance(weight.source, Download | ZipMember):
        return None
    from pose.weights.download import answers

    url = weight.source.url
    answer: list[str | None] = []
    say(f"checking {weight.file} at {url}")
    # A name that is looked up cannot be told to stop, so a thread waits for it that nobody waits for.
    asking = threading.Thread(target=lambda: answer.append(answers(url, store.schemes, PATIENCE)), daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return answer[0] if answer else f"{url} did not answer within {PATIENCE:g} s"


def _record(store: Store, weight: Weight) -> Path:
    return (store.cache / weight.file).with_suffix(".unreachable")
