"""What the page looks like in each of its states, in a real browser."""

import threading

import pytest
from web_fakes import Clip, FakePipeline, in_thread
from web_pages import keep, opened, patient, wait_for_text

pytestmark = pytest.mark.slow

TOOLS = ("pause", "record", "snapshot", "mirror")
SIZE = (320, 240)


def enabled(page) -> set[str]:
    return {tool for tool in TOOLS if page.locator(f"#{tool}").is_enabled()}


def style(page, selector: str, what: str) -> str:
    return page.evaluate("([s, w]) => getComputedStyle(document.querySelector(s))[w]", [selector, what])


def pale_blue(page) -> int:
    """Pixels of the 3D view that differ from the colours of floor and background: those of a blue uncertainty spot."""
    return page.evaluate(
        """() => {
            const canvas = document.getElementById("scene");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) {
                count += data[i + 2] - data[i] > 40;
            }
            return count;
        }"""
    )


def test_uncertain_body_has_a_halo(launch):
    found = []
    for sigma in (20, 150):
        with (
            in_thread(pipeline=FakePipeline(sigma=sigma), source=Clip(size=SIZE, fps=25)) as address,
            opened(launch(), address, color_scheme="light") as page,
        ):
            wait_for_text(page, "people", "^1$")
            found.append(pale_blue(page))
    assert found[1] > 1.5 * found[0] > 0


def test_video_end_is_not_an_error(launch):
    turns = threading.Semaphore(20)
    with (
        in_thread(source=Clip(count=60, size=SIZE, fps=25, turns=turns)) as address,
        opened(launch(), address) as page,
    ):
        wait_for_text(page, "people", "^1$")
        turns.release(40)
        wait_for_text(page, "connection", "Ended")
        assert page.inner_text("#message")
        assert page.get_attribute("#message", "data-kind") == "note"
        assert page.get_attribute("#views", "data-stale") != "true"
        assert enabled(page) == {"snapshot", "mirror"}
        keep(page, "ended.png")


def test_ended_clip_can_be_replayed_and_its_recording_downloaded(launch):
    turns: list[threading.Semaphore] = []

    def source() -> Clip:
        turns.append(threading.Semaphore(20))
        return Clip(count=60, size=SIZE, fps=25, turns=turns[-1])

    with in_thread(source=source) as address, opened(launch(), address) as page:
        wait_for_text(page, "people", "^1$")
        page.keyboard.press("r")
        wait_for_text(page, "record", "^Stop")
        turns[-1].release(40)
        wait_for_text(page, "connection", "Ended")
        wait_for_text(page, "files", "view")
        (item,) = page.locator("#files li").all()
        name = item.locator("b").inner_text()
        offered = {link.get_attribute("download") for link in item.locator("a").all()}
        view = next(file for file in offered if file.startswith(f"{name}-view."))
        assert offered - {view} == {f"{name}-{file}" for file in ("video.mp4", "poses.json", "poses.npz")}
        assert "kept until" in item.inner_text()
        keep(page, "recorded.png")

        page.get_by_role("button", name="Play again").click()
        wait_for_text(page, "connection", "Connected")
        assert not page.get_by_role("button", name="Play again").is_visible()
        turns[-1].release(40)
        wait_for_text(page, "connection", "Ended")

        page.reload()
        wait_for_text(page, "people", "^1$")
        wait_for_text(page, "files", "poses.npz")
        assert page.locator("#files b").all_inner_texts() == [name]


def test_frozen_source_is_marked(launch):
    turns = threading.Semaphore(20)
    with in_thread(source=Clip(size=SIZE, fps=25, turns=turns)) as address, opened(launch(), address) as page:
        wait_for_text(page, "people", "^1$")
        wait_for_text(page, "connection", "No new image")
        assert float(style(page, "#picture", "opacity")) < 0.6
        assert [page.inner_text(f"#{number}") for number in ("people", "fps", "latency")] == ["\u2013"] * 3
        assert "record" not in enabled(page)
        wait_for_text(page, "message", "The source sends no images")
        keep(page, "frozen.png")
        turns.release(10_000)
        wait_for_text(page, "people", "^1$")
        wait_for_text(page, "connection", "Connected")
        assert style(page, "#picture", "opacity") == "1"
        assert "record" in enabled(page)


def test_buttons_are_disabled_until_usable(launch):
    with in_thread() as address, opened(launch(), address) as page:
        wait_for_text(page, "connection", "Connected")
        assert enabled(page) == set()  # the camera is not started
    with (
        in_thread(source=Clip(size=SIZE, fps=25)) as address,
        opened(launch(), address) as page,
    ):
        wait_for_text(page, "people", "^1$")
        assert enabled(page) == set(TOOLS)
        page.keyboard.press(" ")
        assert enabled(page) == {"pause", "snapshot", "mirror"}


def test_lost_server_dims_the_page(launch):
    with in_thread(source=Clip(size=SIZE, fps=25)) as address:
        context = patient(launch())
        page = context.new_page()
        page.goto(address)
        wait_for_text(page, "people", "^1$")
        assert style(page, "#picture", "opacity") == "1"
    wait_for_text(page, "message", "Trying again in")
    assert float(style(page, "#picture", "opacity")) < 0.6
    page.wait_for_selector("#message[data-kind=trouble]")  # but for the moments in which it tries again
    assert enabled(page) == {"snapshot", "mirror"}
    port = int(address.rpartition(":")[2])
    with in_thread(port=port, source=Clip(size=SIZE, fps=25)):
        wait_for_text(page, "connection", "Connected")
        assert style(page, "#picture", "opacity") == "1"
        context.close()


def test_page_fits_320_px(launch):
    with in_thread(source=Clip(size=SIZE, fps=25)) as address:
        small = {"width": 320, "height": 640}
        with opened(launch(), address, viewport=small) as page:
            wait_for_text(page, "people", "^1$")
            assert page.evaluate("document.documentElement.scrollWidth") == 320
            for line in ("h1", "#connection", "figcaption.below", *(f"#{tool}" for tool in TOOLS)):
                height = page.evaluate(
                    """selector => {
                        const range = document.createRange();
                        range.selectNodeContents(document.querySelector(selector));
                        const tops = [...range.getClientRects()].map((box) => box.bottom);
                        return Math.max(...tops) - Math.min(...tops);
                    }""",
                    line,
                )
                assert height < 10, f"{line} takes more than a line"
            # All boxes at one moment: status texts of the live page change, and with them the height of what is below.
            boxes = page.evaluate(
                """selectors => Object.fromEntries(selectors.map((selector) => {
                    const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
                    return [selector, [top, bottom]];
                }))""",
                ["#scene", "figcaption.below", *(f"#{tool}" for tool in TOOLS)],
            )
            assert boxes["#scene"][1] <= boxes["figcaption.below"][0]
            assert len({round(boxes[f"#{tool}"][0]) for tool in TOOLS}) == 1
            keep(page, "narrow.png")
