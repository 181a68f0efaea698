"""Movement analysis in a real browser: the live count of repetitions, and the report on a phone and on A4."""

import re
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from pose_fakes import seen_result
from web_fakes import Clip, FakePipeline, FakeSession, in_thread
from web_pages import keep, opened, patient

from pose.analysis import analyse
from pose.analysis.report import write_report
from pose.live import Captured
from pose.results import load_poses
from pose.structures.types import Frame, FrameResult

sys.path.append(str(Path(__file__).parents[2] / "analysis"))

from stick_figures import jump, squats, walk
from test_analyse_command import write

pytestmark = pytest.mark.slow

SIZE = (320, 240)
RATE = 10.0  # poses/s
# Keeps the texts that a page draws on its canvases.
TEXTS = """
    window.drawn = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        window.drawn.push(String(text));
        return draw.call(this, text, ...rest);
    };
"""


class Squats(FakePipeline):
    """A person who does squats, 4 m away."""

    def session(self, size):
        return _Session(self, size)


class _Session(FakeSession):
    _joints = squats(60, period=2.0, rate=RATE)[0].joints * np.array([1.0, -1.0, -1.0]) + np.array([0.0, 1.0, 4.0])

    def lift(self, frame: Frame) -> list[FrameResult]:
        body = self._joints[min(round(frame.time * RATE), len(self._joints) - 1)].astype(np.float32)
        return [seen_result(body[:1], body - body[:1], index=frame.index, time=frame.time, size=self._size)]


class Fast(Clip):
    """A source whose time is five times as fast as the clock, to shorten the test."""

    def frames(self, stop):
        for captured in super().frames(stop):
            frame = captured.frame
            yield Captured(Frame(frame.image, frame.index, frame.index / RATE), captured.at)


def test_the_page_counts_repetitions_beside_the_id(launch):
    with (
        in_thread(pipeline=Squats(), source=Fast(size=SIZE, fps=5 * RATE)) as address,
        closing(patient(launch(), reduced_motion="reduce")) as context,
    ):
        page = context.new_page()
        page.add_init_script(TEXTS)
        page.goto(address)
        page.wait_for_function(
            r"() => new Set(window.drawn.filter((text) => /^\d+ {2}squat \d+$/.test(text))).size >= 3"
        )
        drawn = page.evaluate("window.drawn")
        counts = [int(found[1]) for text in drawn if (found := re.match(r"\d+ {2}squat (\d+)$", text))]
        assert counts == sorted(counts), "a count never falls"
        keep(page, "repetitions.png")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("analysis")
    people = {1: walk(seconds=8)[0], 2: squats(2)[0], 3: jump(rate=30)[0]}
    table = load_poses(write(folder / "poses.npz", people))
    write_report(analyse(table), table, folder / "analysis.html", "walk.mp4")
    return folder / "analysis.html"


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light")])
def test_the_report_fits_the_screen(launch, report, width, scheme):
    with opened(launch(), report.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        cut = """[...document.querySelectorAll("table, svg, figure")].filter((one) => {
            const box = one.getBoundingClientRect();
            return box.left < -1 || box.right > innerWidth + 1;
        }).length"""
        assert page.evaluate(cut) == 0
        keep(page, f"analysis-{scheme}-{width}.png")


def test_the_report_prints_on_a4_without_cuts(launch, report):
    with opened(launch(), report.as_uri(), viewport={"width": 794, "height": 1123}) as page:
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
        pdf = page.pdf(prefer_css_page_size=True)
        boxes = {tuple(map(float, found)) for found in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)}
        ((across, down),) = boxes
        assert (across, down) == pytest.approx((595, 842), abs=1), "points of A4"
