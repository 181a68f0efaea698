"""The studio in a real browser: a clip with known mistakes is corrected, and nothing is lost."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pose_apps.run import main
from web_pages import SCREENSHOTS, opened, patient

from pose.config import load_preset
from pose.export.result import Result, load
from pose.pipeline import Pipeline
from pose.results.cache import open_cache
from pose.results.cache.keys import people_key, poses_key
from pose.results.cache.run import CachedRun
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import to_h36m17
from pose.structures.types import FrameResult
from pose.video import open_source

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("at_hand")]
TRUNK = [1, 4, 11, 14]


@contextmanager
def studio(folder: Path, weights: Path, *options: str) -> Iterator[tuple[str, str]]:
    """A running pose-studio: its address and token. It is killed at the end, as by a power cut."""
    call = [
        sys.executable,
        "-u",
        "-c",
        "from pose_apps.studio.command import main; main()",
        str(folder),
        "--no-browser",
        *options,
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


SWAPPED_S, JUMP_S, OTHER_JUMP_S, WRONG_HEIGHT_M, NOWHERE = 0.8, 0.5, 1.2, 2.3, (60, 60)


def damaged(result: FrameResult, one: int, two: int, skeleton) -> FrameResult:
    """A frame with known mistakes in the 2D: the ids of two people are swapped, one has swapped legs, joints jump."""
    people = result.people
    keypoints, ids = people.keypoints.copy(), people.ids.copy()
    legs = [
        [skeleton.names.index(f"{side}_{name}") for name in ("knee", "ankle", "heel", "foot_index")]
        for side in ("left", "right")
    ]
    for row in np.flatnonzero(people.ids == one):
        keypoints[row, legs[0] + legs[1]] = keypoints[row, legs[1] + legs[0]]
    for row in np.flatnonzero(people.ids == two):
        for at, joint in ((JUMP_S, "left_wrist"), (OTHER_JUMP_S, "right_ankle")):
            if abs(people.time - at) <= 0.1:
                keypoints[row, skeleton.names.index(joint)] = NOWHERE
    if people.time >= SWAPPED_S - 1e-6:
        ids = np.where(ids == one, two, np.where(ids == two, one, ids))
    return replace(result, people=replace(people, keypoints=keypoints, ids=ids))


def damage(video: Path, cache: Path, one: int, two: int) -> None:
    """Replace the stored 2D of a run by a damaged one, and forget its 3D."""
    pipeline = Pipeline(load_preset("fast"), lazy=True)
    with open_source(str(video)) as source, open_cache(str(cache)) as known:
        run = CachedRun(pipeline, source, known)
        assert run.found == "everything"
        wrong = ResultStore(None, pipeline.skeleton)
        for result in run.results():
            wrong.write(damaged(result, one, two, pipeline.skeleton))
        people = people_key(pipeline, source)
        for key in (people, poses_key(pipeline, source, people)):
            known.remove(key)
        CachedRun(pipeline, source, known).keep(wrong)
        known.remove(poses_key(pipeline, source, people))
        wrong.close()


def show(page, seconds):
    page.evaluate("time => studio.seek(studio.clip.frameAt(time))", seconds)
    page.wait_for_function("() => studio.clip.at(studio.frame) !== null")


def choose(page, person, begin, end=None):
    """Choose a person, a range, and the first frame of it."""
    page.evaluate("number => studio.choose(number)", person)
    if end is not None:
        show(page, begin)
        page.keyboard.press("i")
        show(page, end)
        page.keyboard.press("o")
    show(page, begin)


def use(page, tool, **values):
    """Fill in what a tool needs, click it, and keep its correction."""
    panel = page.locator("#tools details", has=page.locator(f"[data-tool={tool}]"))
    if panel.get_attribute("open") is None:
        panel.locator("summary").click()
    for name, value in values.items():
        field = page.locator(f"#{name}")
        (field.select_option if field.evaluate("one => one.tagName") == "SELECT" else field.fill)(value)
    page.click(f"[data-tool={tool}]")
    kept(page)


def drag(page, start, end):
    """Drag from a place of the image to another one."""
    spot = "([x, y]) => { const { scale: s, left, top } = studio.overlay.fit; return [left + s * x, top + s * y]; }"
    page.locator("#overlay").scroll_into_view_if_needed()
    box = page.locator("#overlay").bounding_box()
    for place, act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(*(box[side] + at for side, at in zip("xy", page.evaluate(spot, place), strict=True)))
        act()
    kept(page)


def kept(page):
    """Keep the correction that is shown, when it is computed."""
    page.wait_for_selector("#draft:not([hidden])")
    page.wait_for_selector("#keep:enabled")
    revision = page.evaluate("studio.project.revision")
    page.click("#keep")
    page.wait_for_function("revision => studio.project.revision > revision", arg=revision)
    assert page.locator("#message").is_hidden(), page.locator("#message").inner_text()


def test_ten_edits_remove_known_mistakes_and_nothing_is_lost(launch, videos, weights_dir, tmp_path):
    folder, browser, video = tmp_path / "studio", launch("--no-sandbox"), videos / "two-people" / "view-a.mp4"
    cache, run = folder / ".cache", ["--config", "fast", "--no-overlay", "--quiet"]
    assert main([str(video), *run, "--cache", str(cache), "--out", str(tmp_path / "truth")]) == 0
    truth = load(tmp_path / "truth" / "poses.npz")
    one, two = truth.people
    heights = {person: truth.table.world_info.heights[person][0] for person in (one, two)}
    damage(video, cache, one, two)
    with (
        studio(folder, weights_dir) as (address, token),
        opened(browser, f"{address}#token={token}", errors=("the server responded with a status of 400",)) as page,
    ):
        page.locator("#drop summary").click()
        page.select_option("#preset", "fast")
        page.fill("#height", str(WRONG_HEIGHT_M))  # so the floor is wrong, too
        page.set_input_files("#files", str(video))
        page.locator("#clips button", has_text="Open").click()
        page.wait_for_selector("#people label")
        (project,) = ask(address, token, "/projects")
        here = folder / project["id"]
        first = (here / "first.npz").read_bytes()
        before = error(load(here / "first.npz"), truth)
        assert before > 200

        end = float(truth.times[-1])
        choose(page, one, SWAPPED_S)
        use(page, "swap", other=str(two))
        choose(page, one, 0.0, end)
        use(page, "sides", limbs="legs")
        for at, joint in ((JUMP_S, "left_wrist"), (OTHER_JUMP_S, "right_ankle")):
            choose(page, two, at)
            ((x, y),) = points(truth, two, at, joint)
            drag(page, NOWHERE, (x, y))
        for person in (one, two):
            choose(page, person, 0.3)
            use(page, "height", metres=f"{heights[person]:.2f}")
            use(page, "floor")
            use(page, "rename", name=f"Person {person} of two")
        assert page.evaluate("studio.project.steps") == 10
        if SCREENSHOTS:
            page.screenshot(path=f"{SCREENSHOTS}/studio.png")
        name = page.evaluate("studio.clip.name")
        corrected = error(load(here / f"{name}.npz"), truth)
        print(f"error {before:.0f} mm, after ten edits {corrected:.0f} mm")
        assert corrected <= 0.2 * before

        page.keyboard.press("Control+z")
        page.wait_for_function("name => studio.clip.name !== name", arg=name)
        page.keyboard.press("Control+y")
        page.wait_for_function("name => studio.clip.name === name", arg=name)
        page.set_input_files(
            "#edits-open",
            {"name": "evil.json", "mimeType": "application/json", "buffer": json.dumps(
                {"format": "pose-edits", "version": 1, "edits": [
                    {"edit": "floor", "person": place(truth, one, 0.7), "height": 1e200}]}).encode()},
        )  # fmt: skip
        page.wait_for_selector("#message:not([hidden])")
        assert re.fullmatch(
            r"edit \d+ \(floor\): height: 1e\+200 is out of range; allowed: 0 to 5", page.inner_text("#message")
        )
        state = ask(address, token, f"/projects/{project['id']}")
    with studio(folder, weights_dir) as (address, token):  # the program was killed
        assert ask(address, token, f"/projects/{project['id']}") == state
    assert (here / "first.npz").read_bytes() == first  # can be restored
    given = ["--edits", str(here / "edits.json"), "--height", str(WRONG_HEIGHT_M)]
    call = [str(here / "clip.mp4"), *run, *given, "--cache", str(cache), "--out", str(tmp_path / "out")]
    assert main(call) == 0
    assert (tmp_path / "out" / "poses.npz").read_bytes() == (here / f"{name}.npz").read_bytes()


def test_a_run_that_was_killed_continues(videos, weights_dir, tmp_path):
    folder, video = tmp_path / "studio", videos / "two-people" / "view-a.mp4"
    with studio(folder, weights_dir) as (address, token):
        headers = {"Authorization": f"Bearer {token}"}
        query = f"{address}api/v1/projects?name=a.mp4&preset=fast"
        urllib.request.urlopen(urllib.request.Request(query, video.read_bytes(), headers), timeout=240).close()
        (project,) = ask(address, token, "/projects")
        path = f"/projects/{project['id']}"
        journal = folder / project["id"] / "journal"
        while not journal.exists() or journal.stat().st_size < 20_000:
            assert ask(address, token, path)["state"] in ("queued", "running")
            time.sleep(0.05)
    known = journal.stat().st_size
    with studio(folder, weights_dir) as (address, token):
        while (state := ask(address, token, path))["state"] != "done":
            assert state["state"] in ("queued", "running")
            assert not journal.exists() or journal.stat().st_size >= known  # it does not start over
            time.sleep(0.1)
    out = tmp_path / "out"
    assert main([str(video), "--config", "fast", "--no-overlay", "--quiet", "--cache", "off", "--out", str(out)]) == 0
    assert not journal.exists()
    whole, continued = load(out / "poses.npz"), load(folder / project["id"] / "first.npz")
    assert np.array_equal(whole.joints(), continued.joints(), equal_nan=True)


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
    two.locator("#tools summary", has_text="Limbs").click()
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
    two.locator("#take summary").click()
    two.click("#in-step")
    two.wait_for_function("() => studio.beside.clip")
    two.fill("#other-time", "30")  # the moment that belongs to this one
    shift = two.evaluate("studio.beside.shift")
    two.evaluate("studio.seek(50)")
    other = two.evaluate("studio.clip.frameAt(studio.clip.times[50] + studio.beside.shift)")
    assert shift != 0
    two.wait_for_function("frame => studio.beside.frame === frame && studio.beside.overlay.people.length", arg=other)
    two.click("#other-close")
    two.set_viewport_size({"width": 390, "height": 800})
    assert two.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = two.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a[href]")].filter((one) => one.offsetParent
          && !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label"))).map((one) => one.id)"""
    )
    assert unnamed == []
    context.close()


def violations(page) -> list[str]:
    """What axe finds wrong on a page, of every rule."""
    found = axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


UNUSED = ("Cross-Origin-Opener-Policy",)  # a header that browsers ignore over http from another computer, and say so


def axe():
    return pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed (extra [dev])"
    ).Axe()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(launch, videos, weights_dir, tmp_path, scheme):
    browser, video = launch("--no-sandbox"), videos / "two-people" / "view-a.mp4"
    with studio(tmp_path / "studio", weights_dir, "--phone") as (address, token):
        headers = {"Authorization": f"Bearer {token}"}
        query = f"{address}api/v1/projects?name=a.mp4&preset=fast"
        urllib.request.urlopen(urllib.request.Request(query, video.read_bytes(), headers), timeout=240).close()
        phone = ask(address, token, "/phone")["address"]
        with opened(browser, f"{address}#token={token}", color_scheme=scheme) as page:
            page.locator("#clips button", has_text="Open").wait_for()
            page.locator("#drop summary").click()
            page.click("#phone")
            assert violations(page) == []
            page.click("#phone")
            page.set_input_files("#files", [str(video), str(video)])
            assert violations(page) == []
            page.locator("#several button", has_text="Cancel").click()
            page.locator("#clips button", has_text="Open").click()
            page.wait_for_selector("#people label")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                for panel in page.locator("#tools details, #take").all():
                    if panel.get_attribute("open") is None:
                        panel.locator("summary").click()
                    assert violations(page) == []
                assert page.evaluate("document.documentElement.scrollWidth") <= width
        with opened(browser, phone, errors=UNUSED, color_scheme=scheme) as page:
            page.locator("#film").wait_for(state="attached")
            assert violations(page) == []


def test_a_phone_sends_a_video_and_several_cameras_give_one_result(launch, videos, weights_dir, tmp_path):
    browser, folder = launch("--no-sandbox"), tmp_path / "studio"
    views = [str(videos / "two-people" / f"view-{name}.mp4") for name in "ab"]
    with studio(folder, weights_dir, "--phone") as (address, token):
        with opened(browser, f"{address}#token={token}") as page:
            page.click("#phone")
            page.wait_for_function("() => document.getElementById('phone-address').textContent")
            phone = page.inner_text("#phone-address")
            assert page.evaluate("document.getElementById('phone-code').width") > 25
            with opened(browser, phone, errors=UNUSED, viewport={"width": 390, "height": 800}) as small:
                if SCREENSHOTS:
                    small.screenshot(path=f"{SCREENSHOTS}/studio-phone.png")
                small.set_input_files("#film", str(videos / "squats.mp4"))
                small.wait_for_function("() => document.getElementById('said').textContent.startsWith('Sent')")
            page.locator("#clips li", has_text="squats").locator("button", has_text="Open").wait_for()
            page.locator("#drop summary").click()
            page.select_option("#preset", "fast")
            page.set_input_files("#files", views)
            page.click("#several-cameras")
            page.locator("#clips li", has_text="2 cameras").locator("button", has_text="Open").click()
            page.wait_for_selector("#people label")
            show(page, 0.5)
            for camera in ("2", "1"):
                page.select_option("#camera-choice", camera)
                page.wait_for_function(
                    "camera => studio.clip.camera === camera && studio.clip.at(studio.frame)", arg=int(camera)
                )
                width, height = page.evaluate("studio.clip.size")
                shown = np.array(page.evaluate("studio.clip.at(studio.frame).map((row) => row.points)"))
                assert ((shown > 0) & (shown < [width, height])).mean() > 0.9
            page.select_option("#camera-choice", "2")
            page.wait_for_function("() => studio.clip.camera === 2 && studio.clip.at(studio.frame)")
            use(page, "rename", name="Anna")
            wrist = page.evaluate(
                "() => studio.clip.at(studio.frame)[0].points[studio.clip.meta.skeleton.names.indexOf('left_wrist')]"
            )
            drag(page, wrist, (wrist[0] + 60, wrist[1] - 60))
            assert page.evaluate("studio.clip.camera") == 2
            state = page.evaluate("studio.project")
        (project,) = (one for one in ask(address, token, "/projects") if one["cameras"] == 2)
        assert [edit["person"]["camera"] for edit in state["edits"]] == [2, 2]
        here, out = folder / project["id"], tmp_path / "out"
        call = [str(here / "clip.mp4"), str(here / "camera2.mp4"), "--config", "fast", "--no-overlay", "--quiet"]
        call += ["--edits", str(here / "edits.json"), "--cache", str(folder / ".cache")]
        assert main([*call, "--out", str(out)]) == 0
        assert (out / "poses.npz").read_bytes() == (here / f"{state['result']}.npz").read_bytes()
        corrected, first = load(out / "poses.npz"), load(here / "first.npz")
        assert corrected.table.run.settings["names"] == {"1": "Anna"}
        assert not np.array_equal(corrected.joints(), first.joints(), equal_nan=True)
        wanted = np.linalg.norm(
            np.diff(load(folder / project["id"] / "first.npz").joints()[:, :, [1, 4]], axis=2), axis=-1
        )
        assert 0.1 < np.nanmedian(wanted) < 0.4  # m between the hips
