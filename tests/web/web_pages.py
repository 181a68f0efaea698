"""A page in a browser, and what is on it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

PATIENCE = 60_000  # ms, on a busy machine
# Where to keep the screenshots that the tests take, for a person to look at.
SCREENSHOTS = os.environ.get("POSE_WEB_SCREENSHOTS")


@contextmanager
def opened(browser, address: str, *, errors: tuple[str, ...] = (), **options) -> Iterator:
    """A page; at its end nothing may have gone wrong on it but `errors`."""
    wrong: list[str] = []
    with closing(browser.new_context(**{"reduced_motion": "reduce", **options})) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        yield page
        assert [text for text in wrong if not any(known in text for known in errors)] == []


def wait_for_text(page, identity: str, pattern: str) -> None:
    page.wait_for_function(
        "([id, pattern]) => new RegExp(pattern).test(document.getElementById(id).textContent)", arg=[identity, pattern]
    )


def pixels(page, canvas: str) -> str:
    return page.evaluate(f"document.getElementById('{canvas}').toDataURL()")


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


def keep(page, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / name)
