"""The studio in a real browser: a clip with known mistakes is corrected, and nothing is lost."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from pose_apps.run import main
from web_pages import SCREENSHOTS, opened, patient

from pose.export.result import Result, load
from pose.structures.skeletons import to_h36m17

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("at_hand")]
TRUNK = [1, 4, 11, 14]


@contextmanager
def studio(folder: Path, weights: Path) -> Iterator[tuple[str, str]]:
    """A running pose-studio: its address and token. It is killed at the end, as by a power cut."""
    call = [
        sys.executable,
        "-u",
        "-c",
        "from pose_apps.studio.command import main; main()",
        str(folder),
        "--no-browser",
    ]
    environment = os.environ | {"POSE_WEIGHTS_DIR": str(weights)}
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stdout is not None
    try:
        found = re.search(r"(http://\S+/)#token=(\S+)", process.stdout.readline())
        assert found is not None
        yield found[1], found[2]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def ask(address, token, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}api/v1{path}", data, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=240) as answer:
        return json.loads(answer.read())


def place(result: Result, person: int, time: float) -> dict[str, float]:
    table, at = result.table, np.abs(result.times - time).argmin()
    row = (table.id == person) & (table.frame_index == table.frames[at])
    points, _ = to_h36m17(table.keypoints[row], table.scores[row], table.skeleton)
    x, y = points[0, TRUNK].mean(axis=0).tolist()
    return {"time": float(result.times[at]), "x": x, "y": y}


def points(result: Result, person: int, time: float, *names: str) -> list[list[float]]:
    table, at = result.table, np.abs(result.times - time).argmin()
    row = (table.id == person) & (table.frame_index == table.frames[at])
    return [table.keypoints[row][0, table.skeleton.index(name)].tolist() for name in names]


def error(result: Result, truth: Result) -> float:
    """Mean error of all joints of both people in the world, mm; a missing person counts 1 m."""
    known = np.isfinite(truth.joints()).all(axis=-1)
    off = [
        np.linalg.norm(result.joints(people=[one])[0] - truth.joints(people=[one])[0], axis=-1)
        if one in result.people
        else np.ones(known.shape[1:])
        for one in truth.people
    ]
    return 1000 * float(np.nan_to_num(np.array(off), nan=1.0)[known].mean())


def show(page, time):
    page.evaluate("time => studio.seek(studio.clip.frameAt(time))", time)
    page.wait_for_function("() => studio.clip.at(studio.frame) !== null")


def kept(page):
    """Keep the correction that is shown, when it is computed."""
    page.wait_for_selector("#draft:not([hidden])")
    page.wait_for_selector("#keep:enabled")
    revision = page.evaluate("studio.project.revision")
    page.click("#keep")
    page.wait_for_function("revision => studio.project.revision > revision", arg=revision)
    assert page.locator("#message").is_hidden(), page.locator("#message").inner_text()


def test_ten_edits_remove_known_mistakes_and_nothing_is_lost(launch, videos, weights_dir, tmp_path):
    folder, browser = tmp_path / "studio", launch("--no-sandbox")
    with (
        studio(folder, weights_dir) as (address, token),
        opened(browser, f"{address}#token={token}", errors=("the server responded with a status of 400",)) as page,
    ):
        page.select_option("#preset", "fast", force=True)
        page.set_input_files("#files", str(videos / "two-people" / "view-a.mp4"))
        page.locator("#clips button", has_text="Open").click()
        page.wait_for_selector("#people label")
        (project,) = ask(address, token, "/projects")
        here = folder / project["id"]
        truth = load(here / "first.npz")
        one, two = truth.people
        left, right = points(truth, one, 0.3, "left_knee", "right_knee")
        damage = [
            {"edit": "swap", "person": place(truth, one, 0.8), "other": place(truth, two, 0.8)},
            {
                "edit": "sides",
                "person": place(truth, one, 0.3),
                "limbs": "legs",
                "until": 0.6,
                "left": right,
                "right": left,
            },
            {"edit": "joint", "person": place(truth, two, 0.5), "joint": "left_wrist", "x": 60, "y": 60},
            {"edit": "floor", "person": place(truth, one, 0.7), "height": 0.35},
        ]
        changed = {"revision": 0, "edits": {"format": "pose-edits", "version": 1, "edits": damage}}
        ask(address, token, f"/projects/{project['id']}/edits", changed)
        page.wait_for_function(
            "() => studio.project.revision === 1 && studio.clip.name !== 'first'"
        )  # it was another tab's
        damaged = load(here / f"{page.evaluate('studio.clip.name')}.npz")
        before = error(damaged, truth)
        assert before > 100

        for number, seek, tool in ((one, 0.8, "swap"), (one, 0.3, "sides"), (one, 0.7, "floor")):
            page.evaluate("number => studio.choose(number)", number)
            show(page, 0.6)
            page.keyboard.press("o")
            show(page, seek)
            page.keyboard.press("i")
            if tool == "sides":
                page.keyboard.press("i")
                show(page, 0.6)
                page.keyboard.press("o")
                show(page, seek)
            page.select_option("#other", str(two))
            page.click(f"[data-tool={tool}]")
            kept(page)
        page.evaluate("number => studio.choose(number)", two)
        show(page, 0.5)
        page.select_option("#joint", "left_wrist")
        ((x, y),) = points(truth, two, 0.5, "left_wrist")
        spot = "([x, y]) => { const { scale: s, left, top } = studio.overlay.fit; return [left + s * x, top + s * y]; }"
        page.locator("#overlay").scroll_into_view_if_needed()
        box = page.locator("#overlay").bounding_box()
        page.mouse.move(*(box[side] + at for side, at in zip("xy", page.evaluate(spot, [60, 60]), strict=True)))
        page.mouse.down()
        page.mouse.move(*(box[side] + at for side, at in zip("xy", page.evaluate(spot, [x, y]), strict=True)), steps=4)
        page.mouse.up()
        kept(page)
        if SCREENSHOTS:
            page.screenshot(path=f"{SCREENSHOTS}/studio.png")
        name = page.evaluate("studio.clip.name")
        corrected = load(here / f"{name}.npz")
        print(f"error {before:.0f} mm, after four edits {error(corrected, truth):.0f} mm")
        assert error(corrected, truth) <= 0.2 * before

        page.keyboard.press("Control+z")
        page.wait_for_function("name => studio.clip.name !== name", arg=name)
        page.keyboard.press("Control+y")
        page.wait_for_function("name => studio.clip.name === name", arg=name)
        page.set_input_files(
            "#edits-open",
            {"name": "evil.json", "mimeType": "application/json", "buffer": json.dumps(
                {"format": "pose-edits", "version": 1, "edits": [damage[3] | {"height": 1e200}]}).encode()},
        )  # fmt: skip
        page.wait_for_selector("#message:not([hidden])")
        assert re.fullmatch(
            r"edit \d+ \(floor\): height: 1e\+200 is out of range; allowed: 0 to 5", page.inner_text("#message")
        )
        state = ask(address, token, f"/projects/{project['id']}")
    with studio(folder, weights_dir) as (address, token):  # the program was killed
        assert ask(address, token, f"/projects/{project['id']}") == state
    out, cache = tmp_path / "out", str(folder / ".cache")
    call = [
        str(here / "clip.mp4"),
        "--config",
        "fast",
        "--edits",
        str(here / "edits.json"),
        "--out",
        str(out),
        "--no-overlay",
    ]
    assert main([*call, "--cache", cache, "--quiet"]) == 0
    assert (out / "poses.npz").read_bytes() == (here / f"{name}.npz").read_bytes()


@pytest.fixture
def ready(videos, weights_dir, tmp_path):
    """The address of a studio with one clip that is ready, with the token."""
    with studio(tmp_path / "studio", weights_dir) as (address, token):
        video = (videos / "two-people" / "view-a.mp4").read_bytes()
        headers = {"Authorization": f"Bearer {token}"}
        query = f"{address}api/v1/projects?name=a.mp4&preset=fast"
        urllib.request.urlopen(urllib.request.Request(query, video, headers), timeout=240).close()
        yield f"{address}#token={token}"


def test_two_windows_a_phone_and_the_keyboard(launch, ready):
    browser = launch("--no-sandbox")
    context = patient(browser, reduced_motion="reduce")
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        page.goto(ready)
        page.locator("#clips button", has_text="Open").click()
        page.wait_for_selector("#people label")
    for page, name in ((one, "Anna"), (two, "Bob")):
        page.fill("#name", name)
        page.click("[data-tool=rename]")
        page.wait_for_selector("#keep:enabled")
    one.click("#keep")
    one.wait_for_function("() => studio.project.revision === 1")
    two.click("#keep")
    two.wait_for_selector("#message:not([hidden])")
    assert "changed in another window" in two.inner_text("#message")
    two.wait_for_function("() => studio.clip.people[0].name === 'Anna'")
    assert two.evaluate("studio.project.steps") == 1

    two.evaluate("studio.seek(0)")
    two.locator("#overlay").focus()
    for key, frame in ((".", 1), (".", 2), (",", 1)):
        two.keyboard.press(key)
        two.wait_for_function("frame => studio.frame === frame", arg=frame)
    two.select_option("#joint", "left_wrist")
    two.locator("#overlay").focus()
    two.keyboard.press("Shift+ArrowRight")
    two.keyboard.press("Enter")
    two.wait_for_selector("#draft:not([hidden])")
    assert two.evaluate("studio.draft[0].joint") == "left_wrist"
    two.keyboard.press("Escape")
    two.wait_for_selector("#draft", state="hidden")

    times = two.evaluate(
        """async () => {
          const times = [];
          for (const share of [0.9, 0.1, 0.5]) {
            const begun = performance.now();
            studio.seek(Math.floor(share * studio.clip.length));
            await new Promise((resolve) => studio.video.addEventListener("seeked", resolve, { once: true }));
            times.push(performance.now() - begun);
          }
          return times;
        }"""
    )
    print("seeks took", [round(each) for each in times], "ms")
    two.set_viewport_size({"width": 390, "height": 800})
    assert two.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = two.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a[href]")].filter((one) => one.offsetParent
          && !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label"))).map((one) => one.id)"""
    )
    assert unnamed == []
    context.close()
