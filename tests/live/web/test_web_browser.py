"""The page in a real browser, whose camera plays a clip."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import av
import jsonschema
import pytest
from web_fakes import TOKEN, Clip, FakePipeline, in_thread
from web_pages import (
    keep,
    opened,
    other_pixels,
    patient,
    pixels,
    wait_for_colours,
    wait_for_pixels,
    wait_for_rest,
    wait_for_text,
)

from pose.results import load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures.colours import SIDE_COLOURS

pytestmark = pytest.mark.slow

FAKE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def server(weights_dir, tmp_path_factory) -> Iterator[str]:
    """`pose-webcam --web` with the real networks; its address."""
    start = "import sys; from pose_apps.webcam.command import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "--web", "--port", "0"],
        env={**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir)},
        cwd=tmp_path_factory.mktemp("recordings"),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield re.search(r"http://\S+", line)[0]
        finally:
            process.terminate()
            assert process.wait(100) in (0, 130)


def download(page, action: Callable[[], None], folder: Path) -> Path:
    with page.expect_download() as expected:
        action()
    path = folder / expected.value.suggested_filename
    expected.value.save_as(path)
    return path


def test_browser_camera_shows_tracked_poses(launch, server, fake_camera, tmp_path):
    browser = launch(*FAKE, f"--use-file-for-fake-video-capture={fake_camera}")
    with opened(browser, server, color_scheme="light", viewport={"width": 1280, "height": 860}) as page:
        wait_for_text(page, "connection", "Connected")
        page.get_by_role("button", name="Start camera").click()
        wait_for_text(page, "people", "^1$")
        wait_for_text(page, "latency-p95", r"^\d+ ms$")
        sides = [SIDE_COLOURS["left"], SIDE_COLOURS["right"]]
        wait_for_colours(page, "picture", sides, lambda counts: min(counts) > 100)
        wait_for_colours(page, "scene", sides, lambda counts: sum(counts) > 500)  # the far side is paler
        keep(page, "light.png")

        _turns_the_3d_view(page)
        _records(page, tmp_path)
        snapshot = download(page, lambda: page.keyboard.press("s"), tmp_path)
        assert snapshot.read_bytes().startswith(b"\x89PNG")

        page.get_by_role("button", name="Stop camera").click()
        page.get_by_role("button", name="Start camera").wait_for()
        wait_for_text(page, "people", "^–$")


def _turns_the_3d_view(page) -> None:
    page.keyboard.press(" ")
    assert page.get_by_role("button", name="Resume").get_attribute("aria-pressed") == "true"
    scene = page.locator("#scene")
    before = wait_for_rest(page, "scene")  # paused: nothing moves by itself

    box = scene.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y - 30, steps=4)
    page.mouse.up()
    turned = other_pixels(page, "scene", {before})
    keep(page, "turned.png")

    scene.focus()
    page.keyboard.press("Home")
    wait_for_pixels(page, "scene", before)
    seen = {before, turned}
    for key in ("ArrowLeft", "ArrowUp", "+"):
        page.keyboard.press(key)
        seen.add(other_pixels(page, "scene", seen))
    page.keyboard.press("Home")

    picture = pixels(page, "picture")
    page.keyboard.press("m")
    assert pixels(page, "picture") != picture
    page.keyboard.press("m")
    assert pixels(page, "picture") == picture
    page.keyboard.press(" ")
    assert page.get_by_role("button", name="Pause").get_attribute("aria-pressed") == "false"


def _records(page, folder: Path) -> None:
    record = page.locator("#record")
    record.click()
    assert record.get_attribute("aria-pressed") == "true"
    for _ in range(20):  # images
        other_pixels(page, "picture", {pixels(page, "picture")})
    keep(page, "recording.png")
    page.keyboard.press("r")
    links = page.locator("#files a")
    page.wait_for_function("() => document.querySelectorAll('#files a').length === 4")
    files = [download(page, links.nth(row).click, folder) for row in range(4)]
    view, video, poses_npz, poses_json = (
        next(file for file in files if word in file.name) for word in ("-view.", "-video.mp4", ".npz", ".json")
    )
    for film in (view, video):
        with av.open(str(film)) as container:
            frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert len(frames) > 10
        assert frames[0].std() > 20
        assert abs(frames[0].astype(int) - frames[-1]).mean() > 1  # a film, not an image
    document = json.loads(poses_json.read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert sum(len(frame["people"]) for frame in document["frames"]) > 0.8 * len(document["frames"]) > 8
    assert len(load_poses(poses_npz)) == len(document["frames"])


@pytest.mark.parametrize(("width", "height", "name"), [(1280, 860, "dark.png"), (390, 844, "phone.png")])
def test_page_fits_the_screen_in_the_dark(launch, server, fake_camera, width, height, name):
    browser = launch(*FAKE, f"--use-file-for-fake-video-capture={fake_camera}")
    with opened(browser, server, color_scheme="dark", viewport={"width": width, "height": height}) as page:
        wait_for_text(page, "connection", "Connected")
        page.get_by_role("button", name="Start camera").click()
        wait_for_text(page, "people", "^1$")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(value) for value in re.findall(r"\d+", background)) < 60
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for tool in ("Stop camera", "Pause", "Record", "Snapshot", "Mirror", "Keys and help"):
            box = page.get_by_role("button", name=tool).bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
            assert 0 <= box["y"] <= box["y"] + box["height"] <= height
        wait_for_text(page, "latency-p95", r"^\d+ ms$")
        keep(page, name)
        page.keyboard.press("v")
        assert not page.locator("#picture").is_visible()
        assert page.locator("#scene").is_visible()
        page.keyboard.press("?")
        assert page.get_by_role("dialog", name="Keys").is_visible()
        page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("flags", "error", "words"),
    [
        (("--use-fake-device-for-media-stream",), None, "Access to the camera was denied. Allow it"),
        (("--use-fake-ui-for-media-stream",), None, "No camera was found. Connect one"),
        (FAKE, "NotReadableError", "The camera is in use by another program or tab"),
        (FAKE, "insecure", "Browsers allow camera access only for https pages and localhost"),
    ],
)
def test_unavailable_camera_is_explained(launch, flags, error, words):
    with in_thread() as address, closing(patient(launch(*flags))) as context:
        page = context.new_page()
        if error == "insecure":
            page.add_init_script("Object.defineProperty(navigator, 'mediaDevices', { value: undefined });")
        elif error:
            page.add_init_script(
                f"navigator.mediaDevices.getUserMedia = async () => {{ throw new DOMException('', '{error}'); }};"
            )
        page.goto(address)
        page.get_by_role("button", name="Start camera").click()
        wait_for_text(page, "message", "^" + re.escape(words))
        assert page.get_by_role("alert").first.is_visible()
        assert page.get_by_role("button", name="Start camera").is_enabled()


def test_server_source_is_shown_to_all_clients(launch):
    source = Clip(size=(320, 240), fps=25)
    with in_thread(pipeline=FakePipeline(people=2), source=source) as address:
        browser = launch()
        with opened(browser, address) as one, opened(browser, address) as other:
            for page in (one, other):
                wait_for_text(page, "people", "^2$")
                wait_for_text(page, "latency", r"^\d+ ms$")
                assert not page.locator("#welcome").is_visible()
                assert page.evaluate("document.getElementById('picture').width") == 320


def test_token_is_asked_for_once(launch):
    refused = ("status of 403",)
    with in_thread(token=TOKEN) as address, opened(launch(), address, errors=refused) as page:
        dialog = page.get_by_role("dialog")
        page.get_by_role("textbox", name="Token").fill("not the token at all")
        page.keyboard.press("Enter")
        page.get_by_text("Wrong token.").wait_for()
        page.get_by_role("textbox", name="Token").fill(TOKEN)
        page.keyboard.press("Enter")
        wait_for_text(page, "connection", "Connected")
        assert not dialog.is_visible()
        page.reload()
        wait_for_text(page, "connection", "Connected")


def test_token_in_the_address_is_used_and_hidden(launch):
    with in_thread(token=TOKEN) as address, opened(launch(), f"{address}#token={TOKEN}") as page:
        wait_for_text(page, "connection", "Connected")
        assert TOKEN not in page.url


def test_lost_connection_is_reestablished(launch):
    with in_thread() as address:
        context = patient(launch(*FAKE))
        page = context.new_page()
        page.goto(address)
        wait_for_text(page, "connection", "Connected")
        page.get_by_role("button", name="Start camera").click()
        wait_for_text(page, "people", "^1$")
    wait_for_text(page, "connection", "Not connected")
    wait_for_text(page, "message", "Trying again in")
    port = int(address.rpartition(":")[2])
    with in_thread(port=port):
        wait_for_text(page, "connection", "Connected")
        assert not page.locator("#message").is_visible()
        page.wait_for_function("() => Number(document.getElementById('fps').textContent) > 1")
        context.close()


def test_undecodable_image_is_skipped(launch):
    """One rejected promise does not stop the page, nor the server, which waits for an answer to each result."""
    broken = """
        const decode = window.createImageBitmap;
        let pictures = 0;
        window.createImageBitmap = (...what) => {
            pictures += 1;
            return pictures % 2 ? Promise.reject(new DOMException("broken", "InvalidStateError")) : decode(...what);
        };
    """
    with in_thread(source=Clip(size=(320, 240), fps=25)) as address, closing(patient(launch())) as context:
        page = context.new_page()
        page.add_init_script(broken)
        page.goto(address)
        wait_for_text(page, "people", "^1$")
        before = pixels(page, "picture")
        page.wait_for_function("before => document.getElementById('picture').toDataURL() !== before", arg=before)
        assert page.locator("#people").text_content() == "1"


def test_no_image_is_sent_before_the_hello(launch):
    """After it is lost, a connection is one before the server says hello; page and server count from there."""
    numbers = """
        window.sent = [];
        const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (data) {
            if (data instanceof Blob) {
                window.sent.push(window.greetings);
            }
            return send.call(this, data);
        };
        window.greetings = 0;
        const set = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage").set;
        Object.defineProperty(WebSocket.prototype, "onmessage", {
            set(handler) {
                const late = (event) => {
                    if (typeof event.data === "string" && event.data.includes('"type":"hello"')) {
                        setTimeout(() => { window.greetings += 1; handler(event); }, window.delay ?? 0);
                    } else {
                        handler(event);
                    }
                };
                set.call(this, late);
            },
        });
    """
    with in_thread() as address:
        context = patient(launch(*FAKE))
        page = context.new_page()
        page.add_init_script(numbers)
        page.goto(address)
        page.get_by_role("button", name="Start camera").click()
        wait_for_text(page, "people", "^1$")
        page.evaluate("window.delay = 1500")
    wait_for_text(page, "connection", "Not connected")
    port = int(address.rpartition(":")[2])
    with in_thread(port=port):
        page.evaluate("window.sent = []")
        wait_for_text(page, "connection", "Connected")
        page.wait_for_function("() => window.sent.length > 20")
        assert set(page.evaluate("window.sent")) == {2}
        context.close()
