"""A page in a browser, and what is on it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

PATIENCE = 240_000  # ms, on a busy machine
# Where to keep the screenshots that the tests take, for a person to look at.
SCREENSHOTS = os.environ.get("POSE_WEB_SCREENSHOTS")


def patient(browser, **options):
    """A new context of a browser, which waits as long as a busy machine needs. Close it."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context


@contextmanager
def opened(browser, address: str, *, errors: tuple[str, ...] = (), **options) -> Iterator:
    """A page; at its end nothing may have gone wrong on it but `errors`."""
    wrong: list[str] = []
    with closing(patient(browser, **{"reduced_motion": "reduce", **options})) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
        page.goto(address)
        yield page
        assert [text for text in wrong if not any(known in text for known in errors)] == []


def wait_for_text(page, identity: str, pattern: str) -> None:
    page.wait_for_function(
        "([id, pattern]) => new RegExp(pattern).test(document.getElementById(id).textContent)", arg=[identity, pattern]
    )


def pixels(page, canvas: str) -> str:
    return page.evaluate(f"document.getElementById('{canvas}').toDataURL()")


def other_pixels(page, canvas: str, known: set[str]) -> str:
    """What a canvas shows once it is none of those."""
    page.wait_for_function(
        "([id, known]) => !known.includes(document.getElementById(id).toDataURL())", arg=[canvas, [*known]]
    )
    return pixels(page, canvas)


def wait_for_pixels(page, canvas: str, wanted: str) -> None:
    page.wait_for_function("([id, wanted]) => document.getElementById(id).toDataURL() === wanted", arg=[canvas, wanted])


def wait_for_rest(page, canvas: str) -> str:
    """What a canvas shows once nothing moves on it any more."""
    end, before = time.monotonic() + PATIENCE / 1000, ""
    while (now := pixels(page, canvas)) != before:
        assert time.monotonic() < end, "it always moves"
        before = now
        page.wait_for_timeout(500)
    return now


def count_colour(page, canvas: str, colour: tuple[int, int, int]) -> int:
    """Pixels of a canvas that have nearly that colour."""
    return page.evaluate(
        """([id, colour]) => {
            const canvas = document.getElementById(id);
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) {
                count += colour.every((value, channel) => Math.abs(data[i + channel] - value) < 12);
            }
            return count;
        }""",
        [canvas, list(colour)],
    )


def wait_for_colours(
    page, canvas: str, colours: list[tuple[int, int, int]], enough: Callable[[list[int]], bool]
) -> None:
    """Wait until the numbers of pixels of these colours are enough. A canvas is drawn some time after the texts."""
    end = time.monotonic() + PATIENCE / 1000
    while not enough(counts := [count_colour(page, canvas, colour) for colour in colours]):
        assert time.monotonic() < end, (canvas, counts)
        page.wait_for_timeout(100)


def keep(page, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / name)
