"""The report in a real browser, opened from disk."""

import os
from contextlib import closing

import numpy as np
import pytest
from pose_fakes import STANDING, run_info, seen_result

from pose.export import export, open_recording
from pose.files import NpzWriter
from pose.skeletons import H36M17
from pose.video import VideoWriter

pytestmark = pytest.mark.slow

SCREENSHOTS = os.environ.get("POSE_WEB_SCREENSHOTS")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Two people who sway for two seconds, with a video whose pictures get lighter."""
    folder = tmp_path_factory.mktemp("report")
    with (
        NpzWriter(folder / "poses.npz", run_info(H36M17)) as writer,
        VideoWriter(folder / "overlay.mp4", (320, 240), fps=25) as video,
    ):
        for frame in range(50):
            body = STANDING + np.float32(0.1 * np.sin(frame / 8)) * np.eye(17, dtype=np.float32)[:, 13:14]
            roots = [(0, 0, 4), (1, 0, 5)] if 10 <= frame < 40 else [(0, 0, 4)]
            writer.write(seen_result(roots, body, index=frame, time=frame / 25))
            video.write(np.full((240, 320, 3), 5 * frame, np.uint8), frame / 25)
    (made,) = export(open_recording(folder / "poses.npz"), ["html"], folder, "poses")
    return made.path


def opened(browser, page_file, **options):
    context = browser.new_context(**{"reduced_motion": "reduce", "offline": True, **options})
    page = context.new_page()
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.wrong.append(message.text))
    page.goto(page_file.as_uri())
    page.wait_for_function("window.report && window.report.video.readyState >= 2")
    return context, page


def picture_of(page, identity):
    return page.evaluate(f"document.getElementById('{identity}').toDataURL()")


def test_one_time_moves_video_scene_and_charts(launch, page_file):
    context, page = opened(launch(), page_file)
    with closing(context):
        before = picture_of(page, "scene")
        page.locator("#time").fill("30")
        page.wait_for_function("Math.abs(window.report.video.currentTime - 1.2) < 0.05")
        assert page.locator("#clock").inner_text() == "1.20 s"
        assert picture_of(page, "scene") != before
        assert page.locator("#charts figure").count() == 13
        page.locator("#people label").nth(1).click()
        assert page.locator("#missing").inner_text() == "seen from 0.40 s to 1.56 s; no frame missing"
        page.keyboard.press("]")
        assert page.locator("#clock").inner_text() == "1.96 s"
        chart = page.locator("#charts canvas").first
        chart.click(position={"x": chart.bounding_box()["width"] / 2, "y": 20})
        assert page.evaluate("window.report.frame") in (24, 25)
        page.locator("body").press(",")
        assert page.evaluate("window.report.frame") in (23, 24)
        assert page.wrong == []


def test_space_plays_to_the_end(launch, page_file):
    context, page = opened(launch(), page_file)
    with closing(context):
        page.locator("body").press(" ")
        assert page.locator("#play").inner_text() == "Pause"
        page.wait_for_function("window.report.frame === 49", timeout=20_000)
        page.wait_for_function("document.getElementById('play').textContent === 'Play'")
        assert page.wrong == []


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "dark")])
def test_it_fits_the_screen_light_and_dark(launch, page_file, width, height, scheme):
    context, page = opened(launch(), page_file, viewport={"width": width, "height": height}, color_scheme=scheme)
    with closing(context):
        page.evaluate("window.report.seek(20)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, shade[4:-1].split(","))) < 200) == (scheme == "dark")
        if SCREENSHOTS:
            page.screenshot(path=f"{SCREENSHOTS}/report-{scheme}-{width}.png", full_page=True)
        assert page.wrong == []
