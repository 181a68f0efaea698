"""Bodies of the live page: what the server sends, and what the page makes of it."""

import base64
import math

import numpy as np
import pytest
from pose_fakes import SIZE, STANDING, seen_result
from web_fakes import Clip, FakePipeline, FakeSession, in_thread, read_message, receive, run, serving
from web_pages import opened, pixels, wait_for_text

from pose.body.character.look import moving_bones
from pose.body.character.model import body_model
from pose.body.character.posing import pose_character, skin
from pose.body.fitted_bodies import FittedBodies
from pose.live import LiveResult
from pose.live.result import Stream
from pose.live.web.bodies import PageBodies
from pose.structures.skeletons import H36M17
from pose.world.upright import Upright


def live_result(result):
    pipeline = FakePipeline()
    stream = Stream(pipeline, FakeSession(pipeline, SIZE), SIZE)
    return LiveResult(np.zeros((SIZE[1], SIZE[0], 3), np.uint8), result, H36M17, 0.0, 0.1, stream)


def test_body_shape_is_sent_once_before_its_use():
    async def test():
        async with serving(source=Clip(), body=True) as browser, browser.live() as socket:
            hello, _ = await receive(socket, "hello")
            parents = hello["mesh"]["parents"]
            assert len(base64.b64decode(hello["mesh"]["triangles"])) == 6 * len(body_model("light").faces)
            shapes, results = [], 0
            while results < 6:
                message, _ = read_message(await socket.receive())
                if message["type"] == "body":
                    shapes.append((message["person"], message["shape"]))
                    rest = np.frombuffer(base64.b64decode(message["rest"]), "<i2").reshape(-1, 3)
                    assert len(rest) == len(parents) + len(body_model("light").vertices)
                    assert 1.3 < 1e-4 * np.ptp(rest[len(parents) :, 1]) < 2.2
                elif message["type"] == "result":
                    results += 1
                    for person in message["people"]:
                        assert (person["id"], person["figure"]["shape"]) in shapes
                        assert len(person["figure"]["pose"]) == 3 + 3 * len(hello["mesh"]["moving"])
                    await socket.send_str('{"type":"ack"}')
            assert len(shapes) == len(set(shapes)) == 1

    run(test)


def test_bodies_are_sent_only_on_request():
    async def test():
        async with serving(source=Clip()) as browser, browser.live() as socket:
            hello, _ = await receive(socket, "hello")
            assert hello["mesh"] is None
            result, _ = await receive(socket, "result")
            assert "figure" not in result["people"][0]

    run(test)


def test_page_body_pose_equals_exports():
    """Root and rotations, decoded as body.js does, give the vertices of our own skinning on the people's places."""
    live = live_result(seen_result(np.array([[0.4, 0.1, 4.0]], np.float32)))
    stage = Upright().place(live.result, np.array([0]))
    bodies = PageBodies()
    figure = bodies.of(live, [0], stage)[0]
    character = bodies.shapes[1].character
    places = stage.astype(float)[..., [0, 2, 1]] * (1, 1, -1)
    posed = pose_character(character, places)
    numbers = np.array(figure["pose"], float)
    np.testing.assert_allclose(numbers[:3] / 1000, posed.root[0], atol=6e-4)
    turns = numbers[3:].reshape(-1, 3) / 32767
    turns = np.concatenate([np.sqrt(np.maximum(0, 1 - (turns**2).sum(axis=1, keepdims=True))), turns], axis=1)
    same = np.abs((turns * posed.quaternions[0, moving_bones(character.model, fingers=True)]).sum(axis=1))
    np.testing.assert_allclose(same, 1, atol=1e-3)  # q and -q are the same rotation
    assert abs(skin(character, posed, 0)[:, 1].min()) < 0.1  # on the floor of the 3D view


def test_a_shape_is_refined_when_bones_turn_out_longer_and_old_people_are_forgotten():
    made = []
    fitted = FittedBodies(lambda character: made.append(character) or len(made))
    places = STANDING.astype(float)[None] * (1, -1, -1)
    assert fitted.of(1, places) == 1
    for _ in range(8):
        last = fitted.of(1, 1.2 * places)
    assert last == 2
    assert math.isclose(np.ptp(made[1].vertices[:, 1]) / np.ptp(made[0].vertices[:, 1]), 1.2, abs_tol=0.08)
    for number in range(2, 70):
        fitted.of(number, places)
    assert len(fitted._people) == 64
    assert 1 not in fitted._people


@pytest.mark.slow
def test_page_replaces_limbs_by_bodies(launch):
    scenes = []
    for body in (False, True):
        with in_thread(source=Clip(), body=body) as address, opened(launch(), address) as page:
            wait_for_text(page, "people", "^1$")
            scenes.append(pixels(page, "scene"))
    assert scenes[0] != scenes[1]
