"""A real browser, and what its camera sees."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import av
import pytest
from web_pages import PATIENCE

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium on this machine."""
    pytest.importorskip("playwright", reason="playwright is not installed (extra [dev])")
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="session")
def fake_camera(videos, tmp_path_factory) -> Path:
    """Four seconds of a dance in the form that Chromium's fake camera plays, again and again."""
    path = tmp_path_factory.mktemp("camera") / "dance.y4m"
    with av.open(str(videos / "dance.mp4")) as clip, av.open(str(path), "w", format="yuv4mpegpipe") as out:
        stream = out.add_stream("rawvideo", rate=30)
        stream.width, stream.height, stream.pix_fmt = 384, 496, "yuv420p"
        for frame in clip.decode(video=0):
            if frame.time >= 4:
                break
            frame.pts = None
            out.mux(stream.encode(frame.reformat(format="yuv420p")))
        out.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def launch(chromium) -> Iterator[Callable]:
    """Starts the browser with some flags."""
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())

        def start(*flags: str):
            browser = playwright.chromium.launch(executable_path=chromium, args=list(flags), timeout=PATIENCE)
            stack.callback(browser.close)
            return browser

        yield start
