"""The page with several cameras: the calibrated people of a synthetic scene, without networks."""

import asyncio
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from web_fakes import FakePipeline, FakeSession, in_thread, receive, recording_begins, run, serving
from web_pages import PATIENCE, count_colour, keep, opened, wait_for_text

sys.path.append(str(Path(__file__).parents[2] / "multiview"))
import scenes

from pose.live import PushedFrames
from pose.live.several import SeveralLoop
from pose.live.several.calibration import GIVEN_ACCURACY
from pose.multiview.calibration_files import camera_json, read_cameras
from pose.results.cameras import write_cameras
from pose.structures.camera import Camera
from pose.structures.colours import SIDE_COLOURS
from pose.structures.types import Frame, FrameResult, People, Poses3D
from pose.world.clean import Steps

SECONDS, RATE = 3.0, 15.0
BEFORE = 12  # frames that are played before the page records


class Scene(FakePipeline):
    """A pipeline that sees two people in the images of two cameras, which it tells apart by their brightness."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        people = [scenes.person(1, SECONDS, away=(-0.8, 0.0)), scenes.person(5, SECONDS, away=(0.8, 0.3))]
        views = scenes.cameras(people=people, seed=2, seconds=SECONDS, rates=(RATE,))
        self.sizes = [view.size for view in views]
        self.tracks = [
            [scenes.track(view, index, one, number) for number, one in enumerate(people, 1)]
            for index, view in enumerate(views)
        ]
        self.exact = scenes.exact(views)
        self.file = folder / "given.json"
        write_cameras(
            self.file, [camera_json(name, one, GIVEN_ACCURACY) for name, one in zip("ab", self.exact, strict=True)]
        )
        self.sources = [PushedFrames("left"), PushedFrames("right")]
        self.begin = time.monotonic() - SECONDS  # capture time of the first image
        self.loop = SeveralLoop(self, self.sources, world=Steps(), cameras=self.file)

    def camera(self, size):
        return Camera.of(size)

    def for_cameras(self, count):
        return [self] * count

    def session(self, size):
        return SceneSession(self, size)

    def play(self, frames: range) -> None:
        """Push images of both cameras, and wait until they are processed."""
        for number in frames:
            for index, (source, size) in enumerate(zip(self.sources, self.sizes, strict=True)):
                image = np.full((size[1], size[0], 3), 90 + index, np.uint8)
                source.push(image, at=self.begin + number / RATE)
            end = time.monotonic() + 60
            while any(loop.status().processed <= number for loop in (self.loop, *self.loop._loops)):
                assert time.monotonic() < end, "an image is not processed"
                time.sleep(0.005)


class SceneSession(FakeSession):
    def lift(self, frame: Frame) -> list[FrameResult]:
        rows = [(one, min(frame.index, len(one) - 1)) for one in self._pipeline.tracks[int(frame.image[0, 0, 0]) - 90]]
        columns = {
            name: np.stack([getattr(one, name)[row] for one, row in rows])
            for name in ("keypoints", "scores", "joints", "root", "sigma")
        }
        keypoints = columns["keypoints"]
        boxes = np.concatenate([keypoints.min(axis=1), keypoints.max(axis=1)], axis=1)
        ids = np.array([one.number for one, _ in rows])
        people = People(frame.index, frame.time, ids, boxes, np.ones(2, np.float32), keypoints, columns["scores"])
        return [FrameResult(people, Poses3D(columns["joints"], columns["root"], columns["sigma"]))]


def test_the_page_gets_calibrated_people_and_records_the_cameras(tmp_path):
    scene = Scene(tmp_path)

    async def test():
        async with serving(scene, source=lambda: scene.loop, out=str(tmp_path)) as browser, browser.live() as live:
            hello, _ = await receive(live, "hello")
            assert hello["source"] == "left, right"
            assert (await receive(live, "status"))[0]["cameras"].startswith("calibrating: 0 of 10 s")
            await asyncio.to_thread(scene.play, range(BEFORE))
            await recording_begins(browser, live)
            await asyncio.to_thread(scene.play, range(BEFORE, BEFORE + 6))
            shown, image = await receive(live, "result")
            while shown["number"] < BEFORE + 4:
                shown, image = await receive(live, "result")
            assert image.startswith(b"\xff\xd8")
            status, _ = await receive(live, "status")
            await live.send_str('{"type":"record","on":false}')
            recorded, _ = await receive(live, "recorded")
            (url,) = [file["url"] for file in recorded["files"] if file["name"].endswith("-cameras.json")]
            async with browser.get(url) as answer:
                return shown, status, await answer.json()

    shown, status, cameras = run(test)
    assert [person["id"] for person in shown["people"]] == [1, 2]
    assert all(person["stage"] is not None for person in shown["people"])
    assert status["cameras"] == "2 cameras, calibration given"
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(cameras))
    for found, known in zip(read_cameras(path, ["a", "b"], scene.sizes), scene.exact, strict=True):
        np.testing.assert_allclose(found.translation, known.translation, atol=1e-4)


@pytest.mark.slow
def test_the_page_shows_calibrated_people(launch, tmp_path):
    """In a real browser."""
    scene = Scene(tmp_path)
    with (
        in_thread(pipeline=scene, source=lambda: scene.loop, out=str(tmp_path)) as address,
        opened(launch(), address, viewport={"width": 1280, "height": 860}) as page,
    ):
        wait_for_text(page, "calibration", "calibrating: 0 of 10 s")
        sides = [SIDE_COLOURS["left"], SIDE_COLOURS["right"]]
        end = time.monotonic() + PATIENCE / 1000
        for (
            number
        ) in itertools.count():  # like a camera, until all is shown: the text "2" disappears without new images
            scene.play(range(number, number + 1))
            text = {name: page.locator(f"#{name}").text_content() for name in ("calibration", "people")}
            counts = {name: [count_colour(page, name, side) for side in sides] for name in ("scene", "picture")}
            if (
                text["calibration"].startswith("2 cameras, calibration given")
                and text["people"] == "2"
                and sum(counts["scene"]) > 200  # the far side is paler
                and min(counts["picture"]) > 20
            ):
                break
            assert time.monotonic() < end, (text, counts)
            page.wait_for_timeout(1000 / RATE)
        keep(page, "several-cameras.png")
