"""The report in a real browser, opened from disk."""

import os
from contextlib import closing

import numpy as np
import pytest
from pose_fakes import STANDING, run_info, seen_result
from web_pages import patient

from pose.export import export, open_selection
from pose.results import NpzWriter
from pose.structures.skeletons import H36M17
from pose.video import VideoWriter

pytestmark = pytest.mark.slow

SCREENSHOTS = os.environ.get("POSE_WEB_SCREENSHOTS")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Two people who sway for two seconds, with a video whose images get lighter."""
    folder = tmp_path_factory.mktemp("report")
    with (
        NpzWriter(folder / "poses.npz", run_info(H36M17)) as writer,
        VideoWriter(folder / "overlay.mp4", (320, 240), fps=25) as video,
    ):
        for frame in range(50):
            body = STANDING + np.float32(0.1 * np.sin(frame / 8)) * np.eye(17, dtype=np.float32)[:, 13:14]
            second = 10 <= frame < 40 and frame not in (20, 21)
            result = seen_result([(0, 0, 4), (1, 0, 5)] if second else [(0, 0, 4)], body, index=frame, time=frame / 25)
            result.poses.swapped[-1, 0] = frame in (12, 13, 14, 30)  # of the second person while they are there
            writer.write(result)
            video.write(np.full((240, 320, 3), 5 * frame, np.uint8), frame / 25)
    (made,) = export(open_selection(folder / "poses.npz"), ["html"], folder, "poses")
    return made.path


def opened(browser, page_file, **options):
    context = patient(browser, **{"reduced_motion": "reduce", "offline": True, **options})
    page = context.new_page()
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.wrong.append(message.text))
    page.goto(page_file.as_uri())
    page.wait_for_function("window.report && window.report.video.readyState >= 2")
    return context, page


def picture_of(page, identity):
    return page.evaluate(f"document.getElementById('{identity}').toDataURL()")


def test_report_time_is_shared_by_all_views(launch, page_file):
    context, page = opened(launch(), page_file)
    with closing(context):
        before = picture_of(page, "scene")
        page.locator("#time").fill("30")
        page.wait_for_function("Math.abs(window.report.video.currentTime - 1.2) < 0.05")
        assert page.locator("#clock").inner_text() == "1.20 s"
        assert picture_of(page, "scene") != before
        assert page.locator("#charts figure").count() == 13
        page.locator("#people label").nth(1).click()
        page.get_by_role("button", name="0.80–0.88 s").click()
        assert page.evaluate("window.report.frame") == 20
        page.locator("#time").fill("30")
        page.keyboard.press("]")
        assert page.locator("#clock").inner_text() == "1.96 s"
        chart = page.locator("#charts canvas").first
        chart.click(position={"x": chart.bounding_box()["width"] / 2, "y": 20})
        assert page.evaluate("window.report.frame") in (24, 25)
        page.locator("body").press(",")
        assert page.evaluate("window.report.frame") in (23, 24)
        assert page.wrong == []


def test_report_marks_missing_and_repaired_frames(launch, page_file):
    context, page = opened(launch(), page_file, color_scheme="light")
    with closing(context):
        page.locator("#people label").nth(1).click()
        facts = page.locator("#repairs div")
        said = {row.locator("dt").inner_text(): row.locator("dd").inner_text() for row in facts.all()}
        assert said["Seen"] == "0.40 s to 1.56 s, 28 frames"
        assert said["Missing"].split() == ["2", "frames", "0.80–0.88", "s"]
        assert said["Legs: left and right swapped"].split() == ["4", "frames", "0.48–0.60", "s", "1.20–1.24", "s"]
        assert said["Arms: left and right swapped"] == "no frame"
        page.get_by_role("button", name="1.20–1.24 s").click()
        assert page.evaluate("window.report.frame") == 30
        colours = """(share, lane) => {
            const canvas = document.getElementById('marks');
            const at = [Math.round(share * canvas.width), Math.round(lane * canvas.height)];
            return Array.from(canvas.getContext('2d').getImageData(...at, 1, 1).data).join();
        }"""
        shown = page.evaluate(f"""() => {{
            const colour = {colours};
            const places = [[0.1, 0.1], [0.45, 0.1], [21.2 / 49, 0.1], [13 / 49, 0.47], [0.5, 0.47]];
            return places.map(([share, lane]) => colour(share, lane));
        }}""")
        nobody, present, missing, legs, fine = shown
        assert nobody == fine == "0,0,0,0", shown
        assert len({present, missing, legs, nobody}) == 4, shown
        assert page.wrong == []


def test_space_key_plays_the_report(launch, page_file):
    context, page = opened(launch(), page_file)
    with closing(context):
        page.evaluate("""() => {
            const play = document.getElementById("play");
            window.said = [];
            new MutationObserver(() => window.said.push(play.textContent)).observe(play, { childList: true });
        }""")
        page.locator("body").press(" ")
        page.wait_for_function("window.said.includes('Play')")
        assert page.evaluate("window.said") == ["Pause", "Play"]
        assert page.evaluate("window.report.frame") == 49
        assert page.wrong == []


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 900, "light"), (1280, 900, "dark"), (390, 844, "dark")])
def test_report_fits_the_screen(launch, page_file, width, height, scheme):
    context, page = opened(launch(), page_file, viewport={"width": width, "height": height}, color_scheme=scheme)
    with closing(context):
        page.evaluate("window.report.seek(20)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, shade[4:-1].split(","))) < 200) == (scheme == "dark")
        if SCREENSHOTS:
            page.screenshot(path=f"{SCREENSHOTS}/report-{scheme}-{width}.png", full_page=True)
        assert page.wrong == []
