"""Download of weights that have a fallback, only if their server answers quickly.

Some machines reach only a package mirror. They must not wait for an unreachable server at every start. The check takes
at most `MAX_WAIT_S`, and a failure is remembered for a day in a file in the cache.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path

from pose.networks.weights.catalogue import Download, Weight, ZipMember
from pose.networks.weights.store import CorruptWeightError, FetchError, Store
from pose.utils.progress import print_progress
from pose.utils.whole_file import write_whole

MAX_WAIT_S = 3.0
FAILURE_EXPIRY_S = 86_400.0


def locate_if_reachable(store: Store, name: str) -> Path | str:
    """Locate a weight, downloaded if its server answers within `MAX_WAIT_S`, or return why it is unavailable.

    Raises:
        UsageError: If the catalogue has no such name.
        CorruptWeightError: If a file in one of the user's folders is damaged.
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
    if reason := recorded_failure(store, weight):
        return reason
    reason = no_answer_reason(store, weight)
    if reason is None:
        try:
            return store.fetch(name)
        except FetchError as error:
            reason = str(error.__cause__ or error)
    record_failure(store, weight, reason)
    return reason


def recorded_failure(store: Store, weight: Weight) -> str | None:
    """Return why the weight was not available within the last day; None if no failure is recorded."""
    record = _record(store, weight)
    with suppress(OSError):
        if 0 <= time.time() - record.stat().st_mtime < FAILURE_EXPIRY_S:
            return record.read_text(encoding="utf-8").strip() or None
    return None


def record_failure(store: Store, weight: Weight, reason: str) -> None:
    """Write the reason why a weight is not available to a file in the cache, for `recorded_failure`."""
    with suppress(OSError):
        store.cache.mkdir(parents=True, exist_ok=True)
        write_whole(_record(store, weight), f"{reason}\n")


def no_answer_reason(store: Store, weight: Weight) -> str | None:
    """Return why the server of a weight does not answer; None if it answers. Takes at most `MAX_WAIT_S`."""
    if not isinstance(weight.source, Download | ZipMember):
        return None
    from pose.networks.weights.download import unavailable_reason

    url = weight.source.url
    reasons: list[str | None] = []
    print_progress(f"checking {weight.file} at {url}")
    # A name lookup cannot be cancelled, so it runs in a daemon thread.
    request = threading.Thread(
        target=lambda: reasons.append(unavailable_reason(url, store.schemes, MAX_WAIT_S)), daemon=True
    )
    request.start()
    request.join(MAX_WAIT_S)
    return reasons[0] if reasons else f"{url} did not answer within {MAX_WAIT_S:g} s"


def _record(store: Store, weight: Weight) -> Path:
    return (store.cache / weight.file).with_suffix(".unreachable")
